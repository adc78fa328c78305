"""The rules by which an import accepts a sound metadata document, and the locations that its files may lie in."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import msgspec

from headwater.errors import RefusedError
from headwater.iceberg.latest_metadata import MetadataChoice
from headwater.iceberg.layout import TableFiles
from headwater.iceberg.location import canonical_location, is_same_place, is_within
from headwater.iceberg.metadata_json import logged_files, named_files
from headwater.iceberg.spec import (
    RAW_VERSION,
    Document,
    FaultError,
    FaultKind,
    TableFacts,
    ViewFacts,
    check_table,
    check_view,
    is_view,
    stated_facts,
)
from headwater.iceberg.survey_outcomes import AcceptedTable, QuarantineCode, RejectedTable

PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
"""Where a table writes besides its location; the last two are what older writers know."""
_PLACES = ("location", *PATH_PROPERTIES)
_ADVICE = {
    FaultKind.UNSUPPORTED: (QuarantineCode.UNSUPPORTED_VERSION, "import it with a release that reads it"),
    FaultKind.INVALID: (QuarantineCode.INVALID, "restore it from a backup, or have its engine write the table anew"),
    FaultKind.INCONSISTENT: (QuarantineCode.INCONSISTENT, "the table is damaged, roll it back with its engine"),
}


def accept_metadata(
    document: Document, choice: MetadataChoice, table: TableFiles, allowed: Sequence[str], *, tolerate: Container[str] = ()
) -> AcceptedTable:
    """Accept the table of a metadata document. A table of the draft format 4 is accepted without validation.

    allowed       locations that the table's files may lie in
    tolerate      codes of faults for which a table is not refused
    raises        RejectedTable: UNSUPPORTED_VERSION, INVALID, INCONSISTENT, LOCATION_MISMATCH or OUTSIDE_ALLOWED
    """
    path = choice.file.path
    try:
        accepted = _accepted_table(
            check_view(document) if is_view(document) else check_table(document), document, choice, table
        )
    except FaultError as fault:
        code, advice = _ADVICE[fault.kind]
        if code not in tolerate or is_view(document):
            raise RejectedTable(code, f"{path} {fault}: {advice}") from fault
        accepted = _tolerated(document, choice, table, fault)
    _check_location(document, table, path)
    folders = _check_allowed(document, allowed, path)
    paths = tuple(location for what, location in _locations(document) if what in PATH_PROPERTIES)
    own = (table.directory, *paths)
    elsewhere = tuple(folder for folder in folders if not any(is_within(folder, place) for place in own))
    return msgspec.structs.replace(accepted, paths=paths, elsewhere=elsewhere)


def _tolerated(document: Document, choice: MetadataChoice, table: TableFiles, fault: FaultError) -> AcceptedTable:
    """Accept a table with a tolerated fault, by the facts that its document states."""
    code, _ = _ADVICE[fault.kind]
    try:
        facts = stated_facts(document)
    except FaultError as other:
        raise RejectedTable(code, f"{choice.file.path} {other}: this cannot be tolerated") from fault
    accepted = _accepted_table(facts, document, choice, table)
    evidence = (*accepted.evidence, f"tolerated ({code}): it {fault}")
    return msgspec.structs.replace(accepted, evidence=evidence, is_sound=fault.kind is not FaultKind.INVALID)


def _accepted_table(
    facts: TableFacts | ViewFacts, document: Document, choice: MetadataChoice, table: TableFiles
) -> AcceptedTable:
    accepted = AcceptedTable(
        directory=table.directory,
        key=table.key,
        metadata_location=choice.file.path,
        uuid=facts.uuid,
        format_version=facts.version,
        snapshot_id=None,
        schema_id=facts.schema_id,
        spec_id=0,
        sort_order_id=0,
        log=() if isinstance(facts, ViewFacts) else tuple(map(_spelled, logged_files(document))),
        rule=choice.rule,
        evidence=choice.evidence,
    )
    if isinstance(facts, ViewFacts):
        return msgspec.structs.replace(accepted, kind="view", version_id=facts.version_id, versions=facts.versions)
    return msgspec.structs.replace(
        accepted, snapshot_id=facts.snapshot_id, spec_id=facts.spec_id, sort_order_id=facts.sort_order_id
    )


def _check_location(document: Document, table: TableFiles, path: str) -> None:
    """Check the location of a document. Only one of the draft may lack it: its folder is its location."""
    location = document.get("location")
    if location is None and document.get("format-version") == RAW_VERSION:
        return
    if isinstance(location, str) and _writes_there(document, path):
        raise RejectedTable(
            QuarantineCode.LOCATION_MISMATCH,
            f"{path} is where a table at {location} writes its metadata (write.metadata.path), and an import finds tables by their own"
            " folders: register this file",
        )
    if not isinstance(location, str) or not is_same_place(location, table.directory):
        raise RejectedTable(
            QuarantineCode.LOCATION_MISMATCH,
            f"{path} records the location {location}, but lies in {table.directory}: a moved table has to be"
            " rewritten by its engine (rewrite_table_path) before it is imported",
        )


def _writes_there(document: Document, path: str) -> bool:
    """True if a table writes its metadata to the folder of this file, outside of its location."""
    properties = document.get("properties")
    place = properties.get("write.metadata.path") if isinstance(properties, dict) else None
    return (
        isinstance(place, str) and is_same_place(place, path.rpartition("/")[0]) and not is_within(path, document["location"])
    )


def _check_allowed(document: Document, allowed: Sequence[str], path: str) -> list[str]:
    """Check that every file a collector may one day delete for this table lies where the catalog allows; returns the files' folders."""
    is_raw = document.get("format-version") == RAW_VERSION and not is_view(document)
    folders: dict[str, bool] = {}
    of_files: dict[str, str] = {}
    for what, location in _locations(document):
        folder, _, name = location.rpartition("/")
        if what not in _PLACES and not (is_raw and _is_below(location)):
            of_files.setdefault(folder, location)
        if folder not in folders:  # ten thousand manifest lists may lie in one folder: it is checked once
            folders[folder] = _is_allowed(folder, allowed)
        if folders[folder] and name not in (".", ".."):
            continue
        if not (is_raw and _is_below(location)) and not _is_allowed(location, allowed):
            raise RejectedTable(
                QuarantineCode.OUTSIDE_ALLOWED,
                f"{path} has its {what} at {location}, outside of what the catalog allows ({', '.join(allowed) or 'nothing'}):"
                " add it to the catalog's allowedLocations if it is meant to be there",
            )
    return [_folder_of(location) for location in of_files.values()]


def _is_allowed(location: str, allowed: Sequence[str]) -> bool:
    return any(is_within(location, outer) for outer in allowed)


def _folder_of(location: str) -> str:
    """The folder of a file; the location itself if the folder is no valid place."""
    spelled = canonical_location(location)
    folder = spelled.rpartition("/")[0]
    return spelled if folder.endswith("/") else folder


def _is_below(location: str) -> bool:
    """True for a path of the draft format that is relative to the table and does not leave it."""
    first, *rest = location.split("/")
    return first != "" and ":" not in first and ".." not in (first, *rest)


def _locations(document: Document) -> Iterator[tuple[str, str]]:
    if isinstance(document.get("location"), str):
        yield "location", document["location"]
    properties = document.get("properties")
    if isinstance(properties, dict):
        yield from ((name, properties[name]) for name in PATH_PROPERTIES if isinstance(properties.get(name), str))
    yield from named_files(document)


def _spelled(location: str) -> str:
    try:
        return canonical_location(location)
    except RefusedError:
        return location
