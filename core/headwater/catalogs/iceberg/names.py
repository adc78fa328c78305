"""File names of table metadata: which naming scheme wrote them, and which number they carry."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

__all__ = ["HINT_NAME", "MetadataName", "Scheme", "is_hidden", "parse_name"]

HINT_NAME = "version-hint.text"

_CODEC = r"(?:\.(?:gz|gzip|zst|zstd|lz4|snappy|bz2|br|deflate|xz))?"
_METADATA = re.compile(rf"(?P<stem>.+?){_CODEC}\.metadata\.json{_CODEC}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_METASTORE = re.compile(r"([0-9]+)-.+")
_HADOOP = re.compile(r"v([0-9]+)")


class Scheme(StrEnum):
    """Who names files so. Numbers of different schemes do not compare.

    METASTORE     ``00003-<uuid>.metadata.json``: catalogs with a pointer
    HADOOP        ``v3.metadata.json``: tables whose file names are the pointer
    UNNUMBERED    everything else: ``<uuid>``, ``vfinal``, ``v3.1``
    """

    METASTORE = "metastore"
    HADOOP = "hadoop"
    UNNUMBERED = "unnumbered"


class MetadataName(NamedTuple):
    """``stem`` is the name without suffix and codec; ``number`` is -1 where there is none."""

    stem: str
    scheme: Scheme
    number: int


def parse_name(name: str) -> MetadataName | None:
    """What a file name says, or None when it is not one of table metadata.

    The codec in a name (``v3.gz.metadata.json``, the older ``v3.metadata.json.gz``) is not believed, the content decides; but
    a codec that nothing here can read still counts, so that such a file is met and not passed over.
    """
    match = _METADATA.fullmatch(name)
    if match is None or is_hidden(name):
        return None
    stem = match["stem"]
    if _UUID.fullmatch(stem):  # may well begin with eight digits and a dash
        return MetadataName(stem, Scheme.UNNUMBERED, -1)
    if numbered := _METASTORE.fullmatch(stem):
        return MetadataName(stem, Scheme.METASTORE, int(numbered[1]))
    if numbered := _HADOOP.fullmatch(stem):
        return MetadataName(stem, Scheme.HADOOP, int(numbered[1]))
    return MetadataName(stem, Scheme.UNNUMBERED, -1)


def is_hidden(name: str) -> bool:
    """Checksums, hidden files and what writers leave for a moment."""
    return name.startswith((".", "_")) or name.endswith((".crc", ".tmp", "~"))
