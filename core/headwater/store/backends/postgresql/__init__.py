"""A store in PostgreSQL: two tables in a schema of their own, over a pool of connections that commit each statement.

Knows nothing of what the rows mean, nor of any other backend.
"""

from headwater.store.backends.postgresql.backend import KIND, PostgresqlBackend

__all__ = ["KIND", "PostgresqlBackend"]
