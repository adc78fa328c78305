"""What one version of a table or view names, by its document alone. Pure; a document may be anything that its storage held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from headwater.errors import RefusedError
from headwater.iceberg.import_rules import PATH_PROPERTIES
from headwater.iceberg.metadata_json import logged_files, objects_in, statistics_files
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import LiveFile
from headwater.typed_values import json_decoder

KNOWN_FORMAT = 3
"""The newest format version of tables whose files can be told."""
_HINT = "version-hint.text"
_NAMING = {
    "snapshots": "",
    "statistics": "statistics-path",
    "partition-statistics": "statistics-path",
    "metadata-log": "metadata-file",
}
"""The lists of a document that name files, each with the member that has the path."""
_DOCUMENTS = json_decoder(dict[str, Any])


class DocumentFiles(NamedTuple):
    """The files that a version names, and where its table lies.

    table         what its table is known by: its uuid, or its location where it has none
    places        the table's places
    files         what it names itself, but for lists and manifests
    lists         manifest lists
    manifests     manifests that version 1 names itself
    block         why its files are not all told, or may not go: a code, and a detail
    """

    table: str
    places: tuple[str, ...]
    files: tuple[LiveFile, ...]
    lists: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    block: tuple[PlaceReason, str] | None = None


def document_files(text: bytes, metadata_location: str | None) -> DocumentFiles:
    """Tell what a version names.

    text              its document, as plain JSON
    metadata_location the metadata file, where that is known
    raises            RefusedError for what is no document of a table or view
    """
    try:
        document = _DOCUMENTS.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise RefusedError(f"it is no JSON object ({type(fault).__name__})") from None
    location = document.get("location")
    if not isinstance(location, str):
        raise RefusedError("it has no location")
    uuid = document.get("table-uuid") or document.get("view-uuid")
    table = uuid.lower() if isinstance(uuid, str) else location.rstrip("/")
    properties = document.get("properties")
    named = properties if isinstance(properties, dict) else {}
    places = [location, *(path for name in PATH_PROPERTIES if isinstance(path := named.get(name), str) and path)]
    files = [*_beside(document, metadata_location, location), *map(LiveFile, statistics_files(document))]
    lists, manifests = _snapshot_files(document)  # a view has none; a document that claims to be one may have some
    block = _block(document, named)
    return DocumentFiles(table, tuple(dict.fromkeys(places)), tuple(files), tuple(lists), tuple(manifests), block)


def _snapshot_files(document: dict[str, Any]) -> tuple[dict[str, None], dict[str, None]]:
    """The manifest lists, and the manifests that snapshots of version 1 name themselves."""
    lists: dict[str, None] = {}
    manifests: dict[str, None] = {}
    for snapshot in objects_in(document, "snapshots"):
        if isinstance(snapshot.get("manifest-list"), str):
            lists[snapshot["manifest-list"]] = None
        else:
            manifests.update(dict.fromkeys(_inline(snapshot) or ()))
    return lists, manifests


def _inline(snapshot: dict[str, Any]) -> list[str] | None:
    inline = snapshot.get("manifests")
    return inline if isinstance(inline, list) and all(isinstance(path, str) for path in inline) else None


def _block(document: dict[str, Any], properties: dict[str, Any]) -> tuple[PlaceReason, str] | None:
    version = document.get("format-version")
    if not isinstance(version, int) or version > KNOWN_FORMAT:
        return (
            PlaceReason.REFERRER_TOO_NEW,
            f"it has format version {version!r}, and {KNOWN_FORMAT} is the newest that is known",
        )
    if (fault := _odd_shape(document)) is not None:
        return PlaceReason.REFERRER_UNREADABLE, fault
    is_encrypted = any(snapshot.get("key-id") is not None for snapshot in objects_in(document, "snapshots"))
    if is_encrypted or document.get("encryption-keys"):
        return PlaceReason.REFERRER_ENCRYPTED, "its manifests are encrypted"
    if (value := str(properties.get("gc.enabled", "true"))).lower() != "true":  # engines take whatever else it is for false
        return PlaceReason.GC_DISABLED, f"it has the property gc.enabled={value[:20]}"
    return None


def _odd_shape(document: dict[str, Any]) -> str | None:
    """Why it may name files that are not found in it."""
    for name, member in _NAMING.items():
        entries = document.get(name)
        if entries is None:
            continue
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            return f"its {name} are no list of objects"
        if member and not all(isinstance(entry.get(member), str) for entry in entries):
            return f"one of its {name} has no {member}"
    for snapshot in objects_in(document, "snapshots"):
        if not isinstance(snapshot.get("manifest-list"), str) and _inline(snapshot) is None:
            return f"snapshot {snapshot.get('snapshot-id')} names neither a manifest list nor manifests"
    return None


def _beside(document: dict[str, Any], metadata_location: str | None, location: str) -> Iterator[LiveFile]:
    """The metadata files, and what engines put beside them. All of these may be gone: engines delete old ones, and make others anew."""
    logged = logged_files(document)
    metadata = [path for path in (metadata_location, *logged) if path is not None]
    folders = dict.fromkeys(path.rpartition("/")[0] for path in metadata)
    folders.setdefault(f"{location.rstrip('/')}/metadata")
    yield from (LiveFile(path, must_exist=False) for path in metadata)
    yield from (LiveFile(checksum_of(path), must_exist=False) for path in metadata)
    for folder in folders:
        yield from hint_in(folder)


def hint_in(folder: str) -> tuple[LiveFile, LiveFile]:
    """The version hint that a catalog of Hadoop's keeps in a folder of metadata files, and its checksum."""
    hint = f"{folder}/{_HINT}"
    return LiveFile(hint, must_exist=False), LiveFile(checksum_of(hint), must_exist=False)


def checksum_of(path: str) -> str:
    """The file in which Hadoop's local file system keeps the checksum of a file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"
