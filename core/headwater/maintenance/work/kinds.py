"""The kinds of tasks, as they are stored."""

from __future__ import annotations

__all__ = ["COLLECT", "EXPORT", "IMPORT", "LOAD", "PURGE", "RESTORE"]

COLLECT, PURGE, IMPORT = "gc", "purge", "import"
EXPORT, LOAD, RESTORE = "export", "load", "restore"
