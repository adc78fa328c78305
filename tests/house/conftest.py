"""Database servers for what is measured on them, and an API server for the operator's journey."""

from backend_fixtures import mongodb_server, postgresql_server
from kube_fixtures import cluster, namespace

__all__ = ["cluster", "mongodb_server", "namespace", "postgresql_server"]
