"""The handlers by the kind of their task, and what a handler is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import COLLECT, EXPORT, IMPORT, LOAD, PURGE, PURGE_TABLE, RESTORE
from headwater.store import Store
from headwater.tasks import Claim
from headwater_workers.kinds.export import run as export_realm
from headwater_workers.kinds.gc import run as collect_garbage
from headwater_workers.kinds.imports import run as import_tables
from headwater_workers.kinds.load import run as load_realm
from headwater_workers.kinds.purge import run as purge_realm
from headwater_workers.kinds.purge_table import run as purge_table
from headwater_workers.kinds.restore import run as restore_realm

__all__ = ["KINDS", "Handler"]


class Handler(Protocol):
    def __call__(self, store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
        """Do the task that is claimed; returns its outcome.

        raises        RefusedError and MissingError: it can never be done · FencedError and StoppedError, from ``claim.check`` ·
                      NotYetError: it waits, which is no failure · anything else: it is tried again later
        """
        ...


KINDS: Mapping[str, Handler] = {
    COLLECT: collect_garbage,
    EXPORT: export_realm,
    IMPORT: import_tables,
    LOAD: load_realm,
    PURGE: purge_realm,
    PURGE_TABLE: purge_table,
    RESTORE: restore_realm,
}
