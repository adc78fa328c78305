"""What manifests and manifest lists name: the files of a snapshot, without the statistics that most of their bytes are.

source        Apache Iceberg, table specification, "Manifests" and "Manifest Lists"
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, cast

from headwater.iceberg.avro_codecs import AvroFileError
from headwater.iceberg.avro_projection import Value, read_avro_fields

_EXISTING, _ADDED, _DELETED = 0, 1, 2
_STATUSES = {_EXISTING, _ADDED, _DELETED}
_ENTRY_FIELDS = ("status", "data_file.file_path")
_COUNTS = tuple((f"{kind}_files_count", f"{kind}_data_files_count") for kind in ("added", "existing", "deleted"))
_LIST_FIELDS: tuple[str | tuple[str, ...], ...] = ("manifest_path", "manifest_length", *_COUNTS, "key_metadata")
_OPTIONAL = ("manifest_length", *(name for names in _COUNTS for name in names), "key_metadata")
UNKNOWN = -1
"""A number that a list does not say: older writers say less."""


class ManifestEntries(NamedTuple):
    """The entries of a manifest.

    paths         of the files that it holds, as they are written: data and delete files; a deletion vector's is that of its Puffin file
    """

    paths: list[str]
    added: int
    existing: int
    deleted: int

    @property
    def total(self) -> int:
        return self.added + self.existing + self.deleted


class ListedManifest(NamedTuple):
    """A manifest as a manifest list names it; numbers are UNKNOWN where the list does not say them."""

    path: str
    length_bytes: int
    added: int
    existing: int
    deleted: int
    is_encrypted: bool

    @property
    def held(self) -> int:
        """How many files it holds; UNKNOWN if one of the numbers is."""
        return UNKNOWN if UNKNOWN in (self.added, self.existing) else self.added + self.existing

    @property
    def total(self) -> int:
        """How many entries it has; UNKNOWN if one of the numbers is."""
        counts = (self.added, self.existing, self.deleted)
        return UNKNOWN if UNKNOWN in counts else sum(counts)


def unlisted_manifest(path: str) -> ListedManifest:
    """A manifest of which nothing but its path is said: version 1 may name it without a list."""
    return ListedManifest(path, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, is_encrypted=False)


def read_manifest_entries(data: bytes) -> ManifestEntries:
    """Read which files a manifest holds: those of entries that are ADDED or EXISTING.

    raises        ValueError, with no text of the file, where it is broken or is no manifest
    """
    held: list[str] = []
    counts: Counter[int] = Counter()
    for block in read_avro_fields(data, _ENTRY_FIELDS):
        statuses, paths = cast(tuple[list[int], list[str]], block)
        of_block = Counter(statuses)
        if not of_block.keys() <= _STATUSES or not all(paths) or not {*map(type, paths)} <= {str}:
            raise AvroFileError("an entry of it has no path, or a status that is not known")
        counts += of_block
        is_whole = _DELETED not in of_block
        held += paths if is_whole else [path for status, path in zip(statuses, paths, strict=True) if status != _DELETED]
    return ManifestEntries(held, counts[_ADDED], counts[_EXISTING], counts[_DELETED])


def read_manifest_list(data: bytes) -> list[ListedManifest]:
    """Read which manifests a manifest list names.

    raises        ValueError, with no text of the file, where it is broken or is no manifest list
    """
    listed: list[ListedManifest] = []
    for block in read_avro_fields(data, _LIST_FIELDS, optional=_OPTIONAL):
        listed += map(_listed_manifest, *block)
    return listed


def _listed_manifest(path: Value, length: Value, added: Value, existing: Value, deleted: Value, key: Value) -> ListedManifest:
    if not isinstance(path, str) or not path:
        raise AvroFileError("a manifest in it has no path")
    return ListedManifest(path, _count(length), _count(added), _count(existing), _count(deleted), bool(key))


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else UNKNOWN
