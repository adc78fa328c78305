"""What kind of file a name tells of: what Iceberg writes, what Headwater writes for itself, and everything else, which is never let go."""

from __future__ import annotations

import re
from enum import StrEnum

from headwater.iceberg.layout import HINT_NAME, parse_metadata_name
from headwater.lake_files.work_folder import FOLDER

_MARKER = re.compile(r"_headwater-place-[0-9]{6,}-[0-9a-f]{16}\.json")
_DATA = re.compile(r".+\.(?:parquet|orc|avro|puffin|stats)")


class FileKind(StrEnum):
    """What a file is, by its name alone."""

    METADATA = "metadata"
    HINT = "hint"
    CHECKSUM = "checksum"
    DATA = "data"
    """Data, deletes, manifests, lists of them, and statistics: who refers to it tells which."""
    OWN = "own"
    UNKNOWN = "unknown"


def file_kind_of(path: str, place: str) -> FileKind:
    """The kind of a file.

    path          its strict key
    place         the location that it lies in, without a slash at the end
    """
    folders = path[len(place) + 1 :].split("/")
    name = folders.pop()
    if is_marker(name) or FOLDER in folders:
        return FileKind.OWN
    if any(_is_odd_folder(folder) for folder in folders):
        return FileKind.UNKNOWN
    if name.startswith(".") and name.endswith(".crc"):
        return FileKind.UNKNOWN if _named(name[1:-4]) is FileKind.UNKNOWN else FileKind.CHECKSUM
    return _named(name)


def is_marker(name: str) -> bool:
    """Whether a name is one of a place's markers (``place_markers``)."""
    return _MARKER.fullmatch(name) is not None


def _named(name: str) -> FileKind:
    if name == HINT_NAME:
        return FileKind.HINT
    if parse_metadata_name(name) is not None:
        return FileKind.METADATA
    if _DATA.fullmatch(name) and not name.startswith((".", "_")):
        return FileKind.DATA
    return FileKind.UNKNOWN


def _is_odd_folder(name: str) -> bool:
    """Whether writers keep something of their own in a folder: ``_temporary``, ``.spark-staging``. A partition may well be ``_day=1``."""
    return name.startswith(("_", ".")) and "=" not in name
