"""The plan of an import: the tables of a survey against the contents of a catalog. Pure; nothing here reads or writes.

``LentPlaces`` remembers the places in which tables have files outside of their own folder: a new table in such a place would
have its rows read by another table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from headwater.catalogs.content import Content, ContentKey, IcebergTable, IcebergView, Namespace, content_type_of
from headwater.catalogs.importer.import_news import LineageProof
from headwater.catalogs.table_claims import TableClaim, normalise_location, places_around
from headwater.errors import RefusedError
from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable, SurveyOutcome, is_same_place


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A sound table of the survey and its key in the catalog."""

    key: ContentKey
    table: AcceptedTable

    def as_content(self) -> IcebergTable | IcebergView:
        """Convert the table to a content without an id."""
        if self.table.kind == "view":
            return IcebergView(
                metadata_location=self.table.metadata_location,
                version_id=self.table.version_id,
                schema_id=self.table.schema_id,
                view_uuid=self.table.uuid,
            )
        return IcebergTable(
            metadata_location=self.table.metadata_location,
            snapshot_id=-1 if self.table.snapshot_id is None else self.table.snapshot_id,
            schema_id=self.table.schema_id,
            spec_id=self.table.spec_id,
            sort_order_id=self.table.sort_order_id,
            table_uuid=self.table.uuid,
        )


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The tables by action: put, move forward (with the present content), leave unchanged, report."""

    new: tuple[WantedTable, ...] = ()
    forward: tuple[tuple[WantedTable, IcebergTable | IcebergView], ...] = ()
    unchanged: tuple[WantedTable, ...] = ()
    quarantined: tuple[QuarantinedTable, ...] = ()


def check_import_keys(outcomes: Iterable[SurveyOutcome]) -> tuple[list[WantedTable], list[QuarantinedTable]]:
    """The tables whose keys and locations are valid, in key order, and all quarantined outcomes, in the survey's order."""
    wanted: list[WantedTable] = []
    refused: list[QuarantinedTable] = []
    for outcome in outcomes:
        checked = outcome if isinstance(outcome, QuarantinedTable) else _with_key(outcome)
        if isinstance(checked, WantedTable):
            wanted.append(checked)
        else:
            refused.append(checked)
    return sorted(wanted, key=lambda table: table.key), refused


def plan_import(
    wanted: Sequence[WantedTable],
    present: Mapping[ContentKey, Content],
    *,
    is_sync: bool,
    proofs: Mapping[ContentKey, LineageProof] = MappingProxyType({}),
) -> ImportPlan:
    """Plan the import of tables of which no two share a key.

    present       the catalog's contents at their keys and at the namespaces above them
    is_sync       move a table forward if its new metadata follows the catalog's; otherwise only report the difference
    proofs        of that, for tables that were compared; for others their own log decides
    """
    new: list[WantedTable] = []
    forward: list[tuple[WantedTable, IcebergTable | IcebergView]] = []
    unchanged: list[WantedTable] = []
    quarantined: list[QuarantinedTable] = []
    for candidate in wanted:
        content = present.get(candidate.key)
        fault = next(_faults(candidate, content, present, proofs.get(candidate.key), is_sync=is_sync), None)
        if fault is not None:
            quarantined.append(fault)
        elif content is None:
            new.append(candidate)
        elif isinstance(content, IcebergTable | IcebergView) and not is_same_place(
            content.metadata_location, candidate.table.metadata_location
        ):
            forward.append((candidate, content))
        else:
            unchanged.append(candidate)
    return ImportPlan(tuple(new), tuple(forward), tuple(unchanged), tuple(quarantined))


def missing_namespaces(keys: Iterable[ContentKey], present: Mapping[ContentKey, Content]) -> list[ContentKey]:
    """The namespaces that the keys need and the catalog lacks, outer ones first."""
    return sorted({ancestor for key in keys for ancestor in key.ancestors()} - present.keys())


def quarantine_table(wanted: WantedTable, code: QuarantineCode, fault: str) -> QuarantinedTable:
    """Quarantine a sound table that cannot be imported."""
    message = f"{wanted.table.directory}: {wanted.key} {fault}"
    return QuarantinedTable(directory=wanted.table.directory, key=wanted.table.key, code=code, message=message)


def _with_key(table: AcceptedTable) -> WantedTable | QuarantinedTable:
    try:
        key = ContentKey(table.key)
    except RefusedError as fault:
        message = f"{table.directory} gives no key ({fault}): rename the folder, or import it from another location"
        return QuarantinedTable(directory=table.directory, key=table.key, code=QuarantineCode.BAD_KEY, message=message)
    try:
        for place in (table.directory, *table.paths):
            normalise_location(place)
    except RefusedError as fault:
        return QuarantinedTable(directory=table.directory, key=table.key, code=QuarantineCode.BAD_LOCATION, message=str(fault))
    return WantedTable(key, table)


def _faults(
    wanted: WantedTable,
    content: Content | None,
    present: Mapping[ContentKey, Content],
    proof: LineageProof | None,
    *,
    is_sync: bool,
) -> Iterator[QuarantinedTable]:
    for ancestor in wanted.key.ancestors():
        above = present.get(ancestor)
        if above is not None and not isinstance(above, Namespace):
            yield quarantine_table(
                wanted, QuarantineCode.KEY_TAKEN, f"needs the namespace {ancestor}, which is {content_type_of(above).name}"
            )
    if content is None:
        return
    if not isinstance(content, IcebergTable | IcebergView) or isinstance(content, IcebergView) != (wanted.table.kind == "view"):
        yield quarantine_table(
            wanted, QuarantineCode.KEY_TAKEN, f"is {content_type_of(content).name} in the catalog: rename one of them"
        )
        return
    is_same = is_same_place(content.metadata_location, wanted.table.metadata_location)
    differs = _difference(wanted, content) if is_same else _hindrance(wanted, content, proof)
    if differs is not None:
        yield quarantine_table(wanted, QuarantineCode.NOT_FORWARD if is_sync else QuarantineCode.DIFFERS, differs)
    elif not is_same and not is_sync:
        fault = (
            f"is in the catalog with {content.metadata_location}, and {wanted.table.metadata_location} is the latest here:"
            " an import with mode sync moves it"
        )
        yield quarantine_table(wanted, QuarantineCode.DIFFERS, fault)


def _difference(wanted: WantedTable, content: IcebergTable | IcebergView) -> str | None:
    """The difference that shows that the catalog's file was rewritten under its name, as by a recreated table; None: nothing.

    No metadata log can show that such a file follows the one before it.
    """
    if other := _other(wanted, content):
        return other
    held, surveyed = _content_text(content), _content_text(wanted.as_content())
    if held == surveyed or (_uuid(content) is None and held == _content_text(type(content)(metadata_location=""))):
        return None  # the same; or someone put it with its location alone
    return (
        f"is in the catalog with {content.metadata_location} at {held}, which was written anew since, and is at {surveyed}:"
        " decide which one is right and put it by hand"
    )


def _hindrance(wanted: WantedTable, content: IcebergTable | IcebergView, proof: LineageProof | None) -> str | None:
    """Why an import cannot move the catalog's content forward to the table found; None: it can."""
    if other := _other(wanted, content):
        return other
    if proof is not None and proof.metadata_location == content.metadata_location:
        return None if proof.is_forward else _unproven(wanted, content, proof)
    location = wanted.table.metadata_location
    if isinstance(content, IcebergView):
        is_held = content.version_id in wanted.table.versions
        lacks = None if is_held else f"version {content.version_id} ({content.metadata_location})"
        where = location
    else:
        is_logged = any(is_same_place(content.metadata_location, entry) for entry in wanted.table.log)
        lacks = None if is_logged else content.metadata_location
        where = f"the metadata log of {location}"
    if lacks is None:
        return None
    return f"is in the catalog with {lacks}, which {where} does not have: decide which one is right and put it by hand"


def _unproven(wanted: WantedTable, content: IcebergTable | IcebergView, proof: LineageProof) -> str:
    return (
        f"is in the catalog with {content.metadata_location}, and nothing proves that {wanted.table.metadata_location} grew out of it"
        f" ({proof.says}): if it did, drop the table from the catalog and import it with mode once"
    )


def _other(wanted: WantedTable, content: IcebergTable | IcebergView) -> str | None:
    uuid = _uuid(content)
    if uuid is None or uuid == wanted.table.uuid:
        return None
    return (
        f"is another {wanted.table.kind} in the catalog (uuid {uuid}, here {wanted.table.uuid}): delete that one"
        " first, and import this one once a collection has released the location"
    )


def _uuid(content: IcebergTable | IcebergView) -> str | None:
    uuid = content.table_uuid if isinstance(content, IcebergTable) else content.view_uuid
    return None if uuid is None else uuid.lower()


def _content_text(content: IcebergTable | IcebergView) -> str:
    """The fields that a content copies from its metadata, without the location and the uuid, as text."""
    if isinstance(content, IcebergView):
        return f"version {content.version_id} with schema {content.schema_id}"
    return (
        f"snapshot {content.snapshot_id} with schema {content.schema_id}, spec {content.spec_id}"
        f" and sort order {content.sort_order_id}"
    )


class LentPlaces:
    """The places outside of their own folders in which the import's committed tables have files. Mostly there are none."""

    def __init__(self) -> None:
        self._folders: dict[bytes, list[tuple[str, str]]] = {}

    def note_tables(self, tables: Iterable[AcceptedTable]) -> None:
        for table in tables:
            for folder in table.elsewhere:
                for place in places_around(folder):
                    lent = self._folders.setdefault(place, [])
                    if (table.directory, folder) not in lent:
                        lent.append((table.directory, folder))

    def fault(self, claim: TableClaim) -> str:
        """Why a new table may not have a place: another directory's table has files there. An empty text: it may."""
        for place in claim.places() if self._folders else ():
            for other, folder in self._folders.get(place, ()):
                if other != claim.location:
                    return f"the table in {other} has files in {folder}, which would be its place: drop that one, or exclude this one"
        return ""


def find_intrusions(wishes: Sequence[TableClaim], elsewhere: Mapping[UUID, Sequence[str]]) -> dict[UUID, str]:
    """Find tables that have files in a place that another of them wants: the folder by content id."""
    if not any(elsewhere.values()):
        return {}
    wanted: dict[bytes, set[UUID]] = {}
    for wish in wishes:
        for place in wish.places():
            wanted.setdefault(place, set()).add(wish.content_id)
    return {
        content_id: folder
        for content_id, folders in elsewhere.items()
        for folder in folders
        if any(wanted.get(place, set()) - {content_id} for place in places_around(folder))
    }
