"""A store in one SQLite file: WAL, synchronous FULL, one connection per thread, several processes on one machine.

``database_file`` knows connections, transactions and what SQLite's errors mean, ``backend`` the tables.
"""

from headwater.store.backends.sqlite.backend import KIND, SqliteBackend

__all__ = ["KIND", "SqliteBackend"]
