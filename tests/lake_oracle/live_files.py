"""Which files one version of a table or view reaches: by its document, its manifest lists and manifests, read with fastavro.

Knows nothing of Headwater.
"""

from __future__ import annotations

import gzip
import io
import json
import os.path
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fastavro

DELETED_ENTRY = 2
NEWEST_FORMAT = 3


class ReferrerFault(StrEnum):
    """Why the files of a version are not all known, or may not go."""

    UNREADABLE = "unreadable"
    ENCRYPTED = "encrypted"
    TOO_NEW = "too new"
    GC_DISABLED = "gc.enabled=false"


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version of a table or view, as somebody committed it.

    owner         its table: a uuid, or a name where it has none
    text          the document
    """

    owner: str
    metadata_location: str
    text: bytes

    @property
    def document(self) -> dict[str, Any]:
        return read_document(self.text)


@dataclass(frozen=True, slots=True)
class ReachedFiles:
    """The files of a version, as real paths.

    must          has to be there
    may           is live if it is there: metadata files, version hints, checksums
    spelled       how paths are written, where that is not how they really are
    """

    must: frozenset[str]
    may: frozenset[str]
    spelled: frozenset[str] = frozenset()
    faults: frozenset[ReferrerFault] = frozenset()
    places: tuple[str, ...] = ()

    @property
    def all(self) -> frozenset[str]:
        return self.must | self.may


def read_document(data: bytes) -> dict[str, Any]:
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("a document is an object")
    return document


def real_path(path: str) -> str:
    """The local file that a path means to whoever opens it; what is on another storage stays as it is."""
    if path.startswith("file:"):
        path = path.removeprefix("file:")
        path = path.removeprefix("//") if path.startswith("//") else path
    elif "://" in path:
        return path
    return os.path.normpath("/" + path.lstrip("/"))


def careless_path(path: str) -> str:
    """What the most careless of all readers makes of a path: two with the same one may be the same file to somebody."""
    path = real_path(path)
    while (decoded := unquote(path, errors="replace")) != path:
        path = decoded
    path = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
    return os.path.normpath("/" + path.lstrip("/"))


class LiveReader:
    """Reads what versions reach, and remembers it: what was read once stays known, whatever becomes of the files."""

    def __init__(self) -> None:
        self._versions: dict[KeptVersion, ReachedFiles] = {}
        self._manifests: dict[str, tuple[list[str], tuple[int, int]]] = {}
        self._broken: set[str] = set()

    def break_file(self, path: str) -> None:
        """Note that somebody has damaged a list or a manifest: what it named is live, and nobody else can know it any more."""
        self._broken.add(path)

    def read(self, version: KeptVersion) -> ReachedFiles:
        if version not in self._versions:
            self._versions[version] = self._reached(version)
        reached = self._versions[version]
        if self._broken.isdisjoint(reached.must):
            return reached
        return replace(reached, faults=reached.faults | {ReferrerFault.UNREADABLE})

    def read_many(self, versions: Iterable[KeptVersion]) -> frozenset[str]:
        return frozenset().union(*(self.read(version).all for version in versions))

    def _reached(self, version: KeptVersion) -> ReachedFiles:
        document = version.document
        properties = document.get("properties") or {}
        places = [document["location"], *(properties[name] for name in PLACE_PROPERTIES if properties.get(name))]
        may = list(_beside(version.metadata_location, document))
        must: list[str] = []
        faults: set[ReferrerFault] = set()
        if "view-uuid" not in document:
            if str(properties.get("gc.enabled", "true")).lower() == "false":
                faults.add(ReferrerFault.GC_DISABLED)
            if document["format-version"] > NEWEST_FORMAT:
                faults.add(ReferrerFault.TOO_NEW)
            must += list(self._of_table(document, faults))
            may += map(checksum_of, must)
        return ReachedFiles(
            must=frozenset(map(real_path, must)),
            may=frozenset(map(real_path, may)),
            spelled=frozenset([*must, *may]),
            faults=frozenset(faults),
            places=tuple(dict.fromkeys(map(real_path, places))),
        )

    def _of_table(self, document: dict[str, Any], faults: set[ReferrerFault]) -> Iterable[str]:
        for name in ("statistics", "partition-statistics"):
            yield from (entry["statistics-path"] for entry in document.get(name) or ())
        for snapshot in document.get("snapshots") or ():
            if snapshot.get("key-id") is not None:
                faults.add(ReferrerFault.ENCRYPTED)
            if "manifest-list" in snapshot:
                yield snapshot["manifest-list"]
                yield from self._of_list(snapshot["manifest-list"], faults)
            for manifest in snapshot.get("manifests") or ():
                yield manifest
                yield from self._of_manifest(manifest, None, faults)

    def _of_list(self, path: str, faults: set[ReferrerFault]) -> Iterator[str]:
        try:
            listed = list(fastavro.reader(io.BytesIO(Path(real_path(path)).read_bytes())))
        except (OSError, ValueError, EOFError, IndexError, KeyError):
            faults.add(ReferrerFault.UNREADABLE)
            return
        for manifest in listed:
            if manifest.get("key_metadata") is not None:
                faults.add(ReferrerFault.ENCRYPTED)
            yield manifest["manifest_path"]
            yield from self._of_manifest(manifest["manifest_path"], manifest, faults)

    def _of_manifest(self, path: str, listed: dict[str, Any] | None, faults: set[ReferrerFault]) -> Iterator[str]:
        try:
            held, (length, entries) = self._entries(path)
        except (OSError, ValueError, EOFError, IndexError, KeyError):
            faults.add(ReferrerFault.UNREADABLE)
            return
        if listed is not None:
            said = [listed.get(name) for name in ("added_files_count", "existing_files_count", "deleted_files_count")]
            if listed["manifest_length"] != length or (None not in said and sum(said) != entries):
                faults.add(ReferrerFault.UNREADABLE)
        yield from held

    def _entries(self, path: str) -> tuple[list[str], tuple[int, int]]:
        if path not in self._manifests:
            data = Path(real_path(path)).read_bytes()
            entries = list(fastavro.reader(io.BytesIO(data)))
            held = [entry["data_file"]["file_path"] for entry in entries if self._is_held(entry)]
            self._manifests[path] = held, (len(data), len(entries))
        return self._manifests[path]

    def _is_held(self, entry: dict[str, Any]) -> bool:
        return bool(entry["status"] != DELETED_ENTRY)


PLACE_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


def _beside(metadata_location: str, document: dict[str, Any]) -> Iterator[str]:
    """Metadata files, and what Hadoop's file systems and catalogs put beside them."""
    metadata = [metadata_location, *(entry["metadata-file"] for entry in document.get("metadata-log") or ())]
    folders = {f"{document['location'].rstrip('/')}/metadata", *(path.rpartition("/")[0] for path in metadata)}
    for path in [*metadata, *(f"{folder}/version-hint.text" for folder in folders)]:
        yield path
        yield checksum_of(path)


def checksum_of(path: str) -> str:
    """Where Hadoop's local file system keeps the checksum of a file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"
