"""Names of the metadata files that clients of a catalog write, by which its imports know them again.

A file is written before the commit that names it, and stays where the commit does not happen. By its name alone it is not news from
outside, for this catalog; for every other one it is a file like any.

    00003-ce7c1722-5acc-84ea-826a-20d40e2f8e95.metadata.json     a number and a UUID, as every reader of Iceberg takes it apart
          6 random bytes, version 8 (RFC 9562: free to use) and ``4ea``, the variant and 14 random bits, 6 bytes BLAKE2b of the
          catalog's id
"""

from __future__ import annotations

import hashlib
import re
import secrets
from uuid import UUID

__all__ = ["is_own_name", "own_name"]

_VERSION_8 = 0x8
_MARK = 0x4EA
_VARIANT = 0b10
_NAME = re.compile(r"[0-9]+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\w+)?\.metadata\.json")


def own_name(catalog_id: str, version: int) -> str:
    """A new name for a metadata file of a table or view that is written for a commit to this catalog."""
    random = secrets.randbits(62)
    number = (
        random >> 14 << 80 | _VERSION_8 << 76 | _MARK << 64 | _VARIANT << 62 | (random & 0x3FFF) << 48 | _mark_of(catalog_id)
    )
    return f"{version:05d}-{UUID(int=number)}.metadata.json"


def is_own_name(catalog_id: str, name: str) -> bool:
    """Whether a file of this name was written by a client of this catalog, whether or not its commit happened."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    number = UUID(match[1]).int
    return number >> 64 & 0xFFFF == _VERSION_8 << 12 | _MARK and number & (1 << 48) - 1 == _mark_of(catalog_id)


def _mark_of(catalog_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(catalog_id.encode(), digest_size=6).digest(), "big")
