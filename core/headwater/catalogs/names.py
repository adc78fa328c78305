"""The names of a catalog's references, and the index that lists its branches and tags.

``cat/<id>/refs`` carries the index ``refs``: key ``b`` or ``t``, 0x00 and the name; value 1 byte kind and 8 bytes of the time at
which the name was last listed, in microseconds, big-endian.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from headwater.clock import Micros
from headwater.errors import RefusedError, UnreadableError
from headwater.index import Index, Value

__all__ = [
    "CATALOGS",
    "NAMES",
    "CatalogPart",
    "ListedName",
    "NameKind",
    "OwnPart",
    "checked_name",
    "content_reference",
    "listed_names",
    "name_key",
    "own_reference",
    "parse_reference",
]

CATALOGS = "catalogs"
"""The realm's reference that lists its catalogs."""
NAMES = "refs"
"""The index of branches and tags."""

_CATALOG_ID = r"(?P<id>[0-9a-f]{16})"
_REFERENCE = re.compile(rf"cat/{_CATALOG_ID}/(?:(?P<folder>heads|tags)/(?P<name>.+)|(?P<part>refs|roles|grants))")
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._/-]*[A-Za-z0-9_-])?")
_COMMIT_HASH = re.compile(r"[0-9A-Fa-f]{16}")
_RESERVED = ("HEAD", "DETACHED")
_NAME_LIMIT = 200


class NameKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"

    @property
    def letter(self) -> bytes:
        return self.value[:1].encode()

    @property
    def folder(self) -> str:
        return "heads" if self is NameKind.BRANCH else "tags"


class OwnPart(StrEnum):
    """The references of a catalog that are neither branch nor tag."""

    REFS = "refs"
    ROLES = "roles"
    GRANTS = "grants"

    @property
    def bit(self) -> int:
        return 1 << list(OwnPart).index(self)


@dataclass(frozen=True, slots=True)
class ListedName:
    """An entry of the index: the name was, or is about to be, a reference."""

    kind: NameKind
    name: str
    listed: Micros

    @property
    def key(self) -> bytes:
        return name_key(self.kind, self.name)

    def reference(self, catalog_id: str) -> str:
        return content_reference(catalog_id, self.kind, self.name)

    def encode(self) -> Value:
        return Value(None, self.kind.letter + self.listed.to_bytes(8, "big"))

    @classmethod
    def decode(cls, key: bytes, value: Value) -> ListedName:
        letter, separator, name = bytes(key).partition(b"\0")
        data = bytes(value.data)
        kind = _BY_LETTER.get(letter)
        if kind is None or not separator or len(data) != 9 or data[:1] != letter:
            raise UnreadableError(f"index entry {bytes(key)!r}: {data!r} lists neither a branch nor a tag")
        return cls(kind, name.decode(), Micros(int.from_bytes(data[1:], "big")))


_BY_LETTER = {kind.letter: kind for kind in NameKind}


@dataclass(frozen=True, slots=True)
class CatalogPart:
    """What a reference name says: a branch or tag of a catalog, or one of its own references."""

    catalog_id: str
    part: NameKind | OwnPart
    name: str = ""


def name_key(kind: NameKind, name: str) -> bytes:
    return kind.letter + b"\0" + name.encode()


def content_reference(catalog_id: str, kind: NameKind, name: str) -> str:
    return f"cat/{catalog_id}/{kind.folder}/{name}"


def own_reference(catalog_id: str, part: OwnPart) -> str:
    return f"cat/{catalog_id}/{part}"


def parse_reference(reference: str) -> CatalogPart | None:
    """What a reference name stands for, or None where it is no catalog's."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        return None
    if found["part"]:
        return CatalogPart(found["id"], OwnPart(found["part"]))
    kind = NameKind.BRANCH if found["folder"] == "heads" else NameKind.TAG
    return CatalogPart(found["id"], kind, found["name"])


def listed_names(names: Index, kind: NameKind | None = None) -> Iterator[ListedName]:
    """The entries of the index ``refs``: branches before tags, each by name."""
    entries = names.range() if kind is None else names.prefix(kind.letter + b"\0")
    return (ListedName.decode(key, value) for key, value in entries)


def checked_name(kind: NameKind, name: str) -> str:
    """The text as the name of a branch or tag.

    raises        RefusedError that says what is wrong with it
    """
    fault = _fault(name)
    if fault:
        raise RefusedError(f"{name!r} is no name for a {kind}: {fault}")
    return name


def _fault(name: str) -> str:
    if not 1 <= len(name) <= _NAME_LIMIT:
        return f"it has {len(name)} characters; 1 to {_NAME_LIMIT} are allowed"
    if name.upper() in _RESERVED:
        return "HEAD and DETACHED are reserved"
    if _COMMIT_HASH.fullmatch(name):
        return "16 hex digits are the hash of a commit"
    if not _NAME.fullmatch(name):
        return "use A-Z a-z 0-9 . _ / -, with a letter, a digit or _ at the start and no . or / at the end"
    if ".." in name or "//" in name or "/." in name or "./" in name:
        return "two of . and / must not stand side by side"
    return ""
