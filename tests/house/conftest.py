"""Database servers for what is measured on them."""

from backend_fixtures import mongodb_server, postgresql_server

__all__ = ["mongodb_server", "postgresql_server"]
