"""A database server for what is measured on one."""

from backend_fixtures import postgresql_server

__all__ = ["postgresql_server"]
