"""What a report goes by, beside the files: whether it may run, which tables are at home, how long files wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs import CatalogDefinition
from headwater.lake_files.lake_file_values import BlockedPlace, TablePlace
from headwater.lake_files.report_run import FileWaits
from headwater.store import RealmStore, Store

_GRACE, _DELAY = 7 * 24 * 3600.0, 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRules:
    """The rules of one report.

    check_going   raises MaintenanceStoppedError once somebody has stopped the maintenance of the store, the realm or the catalog
    prefixes      what ``spec.files.places`` gives to the catalog
    """

    check_going: Callable[[], None]
    is_home: Callable[[UUID], bool]
    waits: Callable[[TablePlace], FileWaits]
    prefixes: Sequence[str] = ()
    blocks: Sequence[BlockedPlace] = ()

    @classmethod
    def read(cls, store: Store, rows: RealmStore, definition: CatalogDefinition) -> ReportRules:
        return cls(
            check_going=lambda: None,
            is_home=lambda content_id: True,
            waits=lambda place: FileWaits(grace_seconds=_GRACE, delay_seconds=_DELAY),
        )
