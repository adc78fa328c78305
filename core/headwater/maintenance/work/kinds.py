"""The kinds of tasks, as they are stored."""

from __future__ import annotations

__all__ = ["COLLECT", "EXPORT", "IMPORT", "LOAD", "PURGE", "PURGE_TABLE", "RESTORE"]

COLLECT, PURGE, IMPORT = "gc", "purge", "import"
EXPORT, LOAD, RESTORE = "export", "load", "restore"
PURGE_TABLE = "purge-table"
