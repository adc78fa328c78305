"""What a report goes by, beside the files: whether it may run, which tables are at home, how long files wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs import CatalogDefinition
from headwater.catalogs.table_claims import find_homes
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, TablePlace
from headwater.lake_files.report_run import FileWaits
from headwater.policies import PolicyReader
from headwater.policies.stop_switch import check_not_stopped
from headwater.store import RealmStore, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRules:
    """The rules of one report.

    check_going   raises MaintenanceStoppedError once somebody has stopped the maintenance of the store, the realm or the catalog
    prefixes      what ``spec.files.places`` gives to the catalog
    blocks        those of some places that policies leave alone
    """

    check_going: Callable[[], None]
    is_home: Callable[[UUID], bool]
    waits: Callable[[TablePlace], FileWaits]
    prefixes: Sequence[str]
    blocks: Callable[[Sequence[TablePlace]], Sequence[BlockedPlace]]

    @classmethod
    def of_catalog(cls, store: Store, rows: RealmStore, definition: CatalogDefinition) -> ReportRules:
        policies = PolicyReader(rows, definition)
        homes = find_homes(rows, definition.id)

        def waits(place: TablePlace) -> FileWaits:
            rule = policies.files(place.content_id)
            return FileWaits(grace_seconds=rule.grace_seconds.value, delay_seconds=rule.delay_seconds.value)

        def blocks(places: Sequence[TablePlace]) -> list[BlockedPlace]:
            modes = ((place, policies.files(place.content_id).mode) for place in places)
            off = PlaceReason.POLICY_OFF
            return [
                BlockedPlace(location=place.location, code=off, detail=mode.source)
                for place, mode in modes
                if mode.value == "off"
            ]

        return cls(
            check_going=lambda: check_not_stopped(store, rows.realm, rows.key, definition.id, catalog=definition.name),
            is_home=homes.__contains__,
            waits=waits,
            prefixes=definition.files.places,
            blocks=blocks,
        )
