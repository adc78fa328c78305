"""Whether a table's metadata grew out of an earlier version: by its log, by the logs of the versions between, or by its snapshots.

Writers cut the log in a document (``write.metadata.previous-versions-max``), but mostly leave the files that drop out of it. So the
oldest that a log names has a log that reaches further back, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headwater.catalogs.content.types import IcebergTable
from headwater.catalogs.iceberg import Found, UnfitError, canonical, is_within
from headwater.catalogs.iceberg.documents import decode, parse
from headwater.catalogs.iceberg.grouping import File
from headwater.catalogs.iceberg.names import parse_name
from headwater.catalogs.iceberg.storage import Storage
from headwater.errors import RefusedError

__all__ = ["Earlier", "Proof", "document_of", "earlier", "log_of", "prove_by_snapshots", "reaches_its_beginning"]

_FILES = 64
"""Files between two versions that are read: with the logs that writers keep as a rule, 6400 versions."""

Document = Mapping[str, Any]


class Proof(NamedTuple):
    """Of a table, against the version at ``metadata_location`` that the catalog has.

    says          what proves it, or what is missing
    """

    metadata_location: str
    is_forward: bool
    says: str


class Earlier(NamedTuple):
    """The first of an earlier version's locations that was looked for, and how many files were read to find it.

    location      None: none of them was found
    says          where the way back ended
    """

    location: str | None
    files: int
    says: str


def earlier(found: Found, is_wanted: Callable[[str], bool], storage: Storage) -> Earlier:
    """The nearest earlier version of which something is wanted. Reads files between only where the table's own log is too short.

    raises        UnavailableError when the storage does not answer
    """
    log, seen = found.log, {found.metadata_location}
    for number in range(_FILES + 1):
        new = [location for location in log if location not in seen]
        wanted = next((location for location in reversed(new) if is_wanted(location)), None)
        if wanted is not None:
            return Earlier(wanted, number, "")
        seen.update(new)
        document = next(_readable(found, new, storage), None)
        if document is None:
            oldest = new[0].rpartition("/")[2] if new else ""
            return Earlier(
                None, number, f"its log reaches back to {oldest}, and no file leads further" if new else "no log leads further"
            )
        log = log_of(document)
    return Earlier(None, _FILES, f"{_FILES} files of logs do not reach back that far")


def prove_by_snapshots(found: Found, there: IcebergTable, before: Document | None) -> Proof:
    """By the uuid, and by what is in the new document of the old one.

    before        the document of ``there``, as far as it is known
    """
    lacks = _lacks(document_of(found), there, before)
    if lacks:
        return Proof(there.metadata_location, False, lacks)
    what = (
        "no snapshot was there before"
        if there.snapshot_id == -1
        else f"snapshot {there.snapshot_id} is an ancestor of its current one"
    )
    return Proof(there.metadata_location, True, f"of the same uuid and written later; {what}")


def _lacks(now: Document, there: IcebergTable, before: Document | None) -> str:
    """What keeps the new document from being proven to go on from the old one; an empty text: nothing."""
    uuid = now.get("table-uuid")
    if there.table_uuid is None or not isinstance(uuid, str) or uuid.lower() != there.table_uuid.lower():
        return "no uuid tells that it is the same table"
    if before is None:
        return "the catalog holds no metadata of its version to compare"
    for name in ("last-updated-ms", "last-sequence-number", "last-column-id"):
        if _number(now, name) < _number(before, name):
            return f"its {name} is {_number(now, name)}, and was {_number(before, name)} before"
    if there.snapshot_id == -1:
        return ""
    ancestors = list(_ancestors(now))
    if there.snapshot_id in ancestors:
        return ""
    if there.snapshot_id in _snapshots(now):
        return f"snapshot {there.snapshot_id} is none of the ancestors of its current one: it was rolled back, or the way there expired"
    return f"snapshot {there.snapshot_id} is not among its {len(_snapshots(now))} snapshots: it expired, or never was there"


def _ancestors(document: Document) -> Iterator[int]:
    """The current snapshot, and those before it as far as they are there."""
    snapshots = _snapshots(document)
    current, seen = document.get("current-snapshot-id"), set[int]()
    while isinstance(current, int) and current in snapshots and current not in seen:
        yield current
        seen.add(current)
        current = snapshots[current].get("parent-snapshot-id")


def _snapshots(document: Document) -> dict[int, Document]:
    snapshots = document.get("snapshots")
    listed: Sequence[Any] = snapshots if isinstance(snapshots, list) else ()
    return {one["snapshot-id"]: one for one in listed if isinstance(one, dict) and isinstance(one.get("snapshot-id"), int)}


def _readable(found: Found, locations: Sequence[str], storage: Storage) -> Iterator[Document]:
    """The documents of these that are there and of this table, the first first."""
    for location in locations:
        if not is_within(location, found.directory):
            continue
        try:
            document = decode(storage.read(File(canonical(location), 0)), path=location)
        except (UnfitError, RefusedError):
            continue
        if found.uuid is None or str(document.get("table-uuid")).lower() == found.uuid.lower():
            yield document


def log_of(document: Document) -> tuple[str, ...]:
    """The versions before a document, oldest first, as its log has them."""
    log = document.get("metadata-log")
    entries = (entry.get("metadata-file") for entry in (log if isinstance(log, list) else ()) if isinstance(entry, dict))
    return tuple(entry for entry in entries if isinstance(entry, str))


def document_of(found: Found) -> Document:
    """The metadata of a survey's outcome; empty where that has none."""
    return parse(found.document, path=found.metadata_location, size=len(found.document)) if found.document else {}


def reaches_its_beginning(found: Found) -> bool:
    """Whether a table's log tells of all versions that it ever had: then nothing was cut off."""
    first = parse_name((found.log[0] if found.log else found.metadata_location).rpartition("/")[2])
    return first is not None and first.number in (0, 1)


def _number(document: Document, name: str) -> int:
    value = document.get(name)
    return value if isinstance(value, int) else 0
