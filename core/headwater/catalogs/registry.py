"""The registry of a realm: its catalogs, and the branches and tags that each of them lists.

The realm's reference ``catalogs`` lists the catalogs. Its index ``by-name`` has the live ones. Its index ``by-id`` has all of
them until the collector has removed their last reference; the byte in its value tells which of a deleted catalog's own
references are gone already (see ``OwnRefKind.bit``).

Each catalog's reference ``cat/<id>/refs`` lists its branches and tags in the index ``refs``: key ``b`` or ``t``, 0x00 and the
name; value 1 byte kind and 8 bytes of the time at which the name was last listed, in microseconds, big-endian.

``catalog_ids_at``, ``own_references_at`` and ``ref_references_at`` read the same lists at an earlier commit: the names that
were listed then, whether or not they have rows now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from headwater.catalogs.catalog_definition import CatalogDefinition, CatalogState
from headwater.clock import Micros, as_text
from headwater.commits import Head, Transaction, read_head, read_log, sound_times
from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.index import Index, IndexValue, after_prefix
from headwater.settings import sound_seconds
from headwater.store import ObjectId, ReadableRows, RealmReader, RealmStore, Reference, UnreadableRow, id_text

BY_NAME = "by-name"
BY_ID = "by-id"


def find_definition(rows: RealmStore, *, name: str | None = None, catalog_id: str | None = None) -> CatalogDefinition | None:
    """Find the current definition of a live catalog by its name, or of any catalog by its id."""
    catalogs = _catalogs_head(rows)
    if catalogs is None:
        return None
    if name is not None:
        return definition_in(rows, catalogs.index(BY_NAME), name)
    return definition_in(rows, catalogs.index(BY_ID), catalog_id or "")


def read_definition(rows: RealmStore, name: str) -> CatalogDefinition:
    """Read the current definition of a live catalog; raises NotFoundError, which says until when a deleted one can be restored."""
    definition = find_definition(rows, name=name)
    if definition is not None:
        return definition
    deleted = (
        definition.held_until for definition in deleted_definitions(rows) if definition.name == name and definition.held_until
    )
    until = max(deleted, default=None)
    advice = "" if until is None else f"; one that was deleted can be undeleted until {as_text(until)}"
    raise NotFoundError(f"realm {rows.realm!r} has no catalog {name!r}{advice}")


class CatalogEntry:
    """One catalog of the registry: its definition, as old as a realm handle's may be, and the rows of its branches and tags.

    definition    the one that was read last
    """

    def __init__(self, rows: RealmStore, definition: CatalogDefinition) -> None:
        self.rows = rows
        self.definition = definition
        self._checked: tuple[ObjectId | None, float] = (None, 0.0)

    @property
    def label(self) -> str:
        """The catalog and its realm, for messages."""
        return f"catalog {self.definition.name!r} of realm {self.rows.realm!r}"

    def reference(self, kind: RefKind, name: str) -> str:
        return content_reference(self.definition.id, kind, name)

    def find_ref_row(self, kind: RefKind, name: str) -> Reference | None:
        return self.rows.find_reference(self.reference(kind, name), fresh=True)

    def check_active(self) -> CatalogDefinition:
        """Read the definition now, and keep it in this handle; raises NotFoundError when the catalog was deleted."""
        now = find_definition(self.rows, catalog_id=self.definition.id)
        if now is None or now.state is not CatalogState.ACTIVE:
            raise NotFoundError(f"{self.label} was deleted")
        self.definition = now
        return now

    def check_alive(self) -> CatalogDefinition:
        """Check that the catalog exists, by a definition as old as a realm handle's may be: reading it every time would cost a round trip.

        Changes that this process makes to the realm's catalogs are seen at once. A commit to a catalog that was deleted in that time is
        there after an undelete, because the hold is longer.
        """
        clock = self.rows.clock
        catalogs = self.rows.find_reference(CATALOGS)
        pointer = None if catalogs is None else catalogs.pointer
        checked, since = self._checked
        if pointer is None or pointer != checked or clock.monotonic() - since > self.rows.settings.realm_handle_ttl_seconds:
            self.check_active()
            self._checked = (pointer, clock.monotonic())
        return self.definition

    def default_branch(self) -> str:
        """The default branch's name, by a definition that is no older than ``check_alive`` allows; the last one of a deleted catalog."""
        with suppress(NotFoundError):
            self.check_alive()
        return self.definition.default_branch


def definition_in(rows: RealmReader, index: Index, key: str) -> CatalogDefinition | None:
    value = index.get(key.encode())
    return None if value is None else rows.read_object(definition_id_of(value), CatalogDefinition)


def all_definitions(rows: RealmStore, *, index: str = BY_NAME) -> list[tuple[CatalogDefinition, IndexValue]]:
    """The definitions in an index, in its order, each with its entry.

    raises        CorruptionError when one is missing
    """
    catalogs = _catalogs_head(rows)
    values = [] if catalogs is None else [value for _, value in catalogs.index(index).range()]
    definitions = []
    for value, definition in zip(values, rows.read_many(list(map(definition_id_of, values)), CatalogDefinition), strict=True):
        if definition is None:
            raise CorruptionError(
                f"realm {rows.realm!r} lists a catalog whose definition {id_text(definition_id_of(value))} is not there"
            )
        definitions.append((definition, value))
    return definitions


def listed_definitions(rows: RealmStore, *, index: str = BY_NAME) -> ReadableRows[CatalogDefinition]:
    """The definitions in an index, in its order; unreadable ones by their key."""
    catalogs = _catalogs_head(rows)
    entries = (
        [] if catalogs is None else [(key.decode(errors="replace"), value) for key, value in catalogs.index(index).range()]
    )
    targets = [value.object_id for _, value in entries if value.object_id is not None]
    definitions = dict(zip(targets, rows.read_each(targets, CatalogDefinition), strict=True))
    readable, unreadable = [], []
    for name, value in entries:
        definition = definitions.get(value.object_id or ObjectId(0))
        if isinstance(definition, CatalogDefinition):
            readable.append(definition)
            continue
        fault = "its definition is not there" if definition is None else str(definition)
        row = UnreadableRow(what="catalog", id=value.object_id or ObjectId(0), name=repr(name), realm=rows.realm, fault=fault)
        unreadable.append(row)
    return ReadableRows(readable, unreadable)


def deleted_definitions(rows: RealmStore) -> ReadableRows[CatalogDefinition]:
    """The definitions of the deleted catalogs that still exist, oldest creation first; unreadable ones may be among them."""
    definitions = listed_definitions(rows, index=BY_ID)
    deleted = (definition for definition in definitions if definition.state is CatalogState.DELETED)
    return ReadableRows(deleted, definitions.unreadable)


def store_definition(tx: Transaction, definition: CatalogDefinition) -> None:
    """Put a definition into the indexes that its state requires."""
    value = IndexValue(tx.add_object(definition), b"")
    tx.index(BY_ID).put(definition.id.encode(), value)
    name = definition.name.encode()
    named = definition_in(tx.reader, tx.index(BY_NAME), definition.name)
    if definition.state is CatalogState.ACTIVE:
        tx.index(BY_NAME).put(name, value)
    elif named is not None and named.id == definition.id:  # another catalog may have the name by now
        tx.index(BY_NAME).remove(name)


def hold_seconds(rows: RealmStore, definition: CatalogDefinition) -> float:
    """How long a catalog can be restored after its deletion."""
    return sound_seconds(definition.hold_seconds, rows.settings.catalog_hold_seconds)


def definition_id_of(value: IndexValue) -> ObjectId:
    if value.object_id is None:
        raise CorruptionError("an entry of the catalogs points to no definition")
    return value.object_id


def gone_parts(value: IndexValue) -> int:
    """The bits of the own references that are gone."""
    return value.data[0] if value.data else 0


def lost_list_error(rows: RealmStore, definition: CatalogDefinition, names: Sequence[str]) -> CorruptionError:
    """The error for a catalog that has branches or tags, and no reference that lists them."""
    reference = own_reference(definition.id, OwnRefKind.REFS)
    return CorruptionError(
        f"reference {reference!r} of realm {rows.realm!r}, which lists the branches and tags of catalog {definition.name!r}, is not there,"
        f" but {len(names)} of them are ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''}): it was lost; restore it from"
        " a backup of the database"
    )


def _catalogs_head(rows: RealmStore) -> Head | None:
    try:
        return read_head(rows, CATALOGS, fresh=True)
    except NotFoundError as fault:
        raise NotFoundError(f"realm {rows.realm!r} has no reference {CATALOGS!r}: it was not bootstrapped") from fault


def catalog_ids_at(catalogs: Head) -> list[str]:
    """The ids of all catalogs that a commit of the reference ``catalogs`` lists, deleted ones included."""
    return [key.decode() for key, _ in catalogs.index(BY_ID).range()]


def own_references_at(catalogs: Head) -> list[str]:
    """The names of the catalogs' own references at a commit of ``catalogs``, except those that the collector removed before it."""
    return [
        own_reference(key.decode(), part)
        for key, entry in catalogs.index(BY_ID).range()
        for part in OwnRefKind
        if not gone_parts(entry) & part.bit
    ]


def ref_references_at(refs: Head, catalog_id: str) -> list[str]:
    """The references of the branches and tags that a commit of a catalog's ``refs`` lists."""
    return [entry.reference(catalog_id) for entry in listed_refs(refs.index(REFS_INDEX))]


def read_ref_names(rows: RealmStore, catalog_id: str) -> Index:
    """Read the index ``refs`` of a catalog as it is now; raises NotFoundError when the catalog has no such reference."""
    refs = read_head(rows, own_reference(catalog_id, OwnRefKind.REFS), fresh=True)
    return Index() if refs is None else refs.index(REFS_INDEX)


def relisted_since(rows: RealmStore, newest: ObjectId, catalog_id: str, *, since: Micros) -> Mapping[str, Micros]:
    """When a name was listed first after ``since``, by reference, for the names that were, in the history of a ``refs``.

    A name that is alive is not listed again, so it was not alive at that time.
    """
    listed_since: dict[str, Micros] = {}
    for commit, time in sound_times(read_log(rows, newest)):
        if time <= since:
            break
        for operation in commit.commit.operations:
            if operation.index == REFS_INDEX and operation.value is not None:
                entry = ListedRef.from_entry(operation.key, operation.value)
                listed_since[entry.reference(catalog_id)] = time
    return listed_since


CATALOGS = "catalogs"
"""The realm's reference that lists its catalogs."""
REFS_INDEX = "refs"
"""The index of branches and tags."""

_CATALOG_ID = r"(?P<id>[0-9a-f]{16})"
_REFERENCE = re.compile(rf"cat/{_CATALOG_ID}/(?:(?P<folder>heads|tags)/(?P<name>.+)|(?P<part>refs|roles|grants))")
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._/-]*[A-Za-z0-9_-])?")
_COMMIT_HASH = re.compile(r"[0-9A-Fa-f]{16}")
_RESERVED = ("HEAD", "DETACHED")
_NAME_LIMIT = 200


class RefKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"

    @property
    def letter(self) -> bytes:
        return self.value[:1].encode()

    @property
    def folder(self) -> str:
        return "heads" if self is RefKind.BRANCH else "tags"


class OwnRefKind(StrEnum):
    """The references of a catalog that are neither branches nor tags."""

    REFS = "refs"
    ROLES = "roles"
    GRANTS = "grants"

    @property
    def bit(self) -> int:
        return 1 << list(OwnRefKind).index(self)


@dataclass(frozen=True, slots=True)
class NamedRef:
    """A branch or tag. ``head`` is None before its first commit."""

    kind: RefKind
    name: str
    head: ObjectId | None
    created: Micros

    @property
    def hash(self) -> str | None:
        return None if self.head is None else id_text(self.head)


@dataclass(frozen=True, slots=True)
class ListedRef:
    """An entry of the index ``refs``: a name that is, was, or is about to be a reference."""

    kind: RefKind
    name: str
    listed: Micros

    @property
    def key(self) -> bytes:
        return ref_key(self.kind, self.name)

    def reference(self, catalog_id: str) -> str:
        return content_reference(catalog_id, self.kind, self.name)

    def to_value(self) -> IndexValue:
        return IndexValue(None, self.kind.letter + self.listed.to_bytes(8, "big"))

    @classmethod
    def from_entry(cls, key: bytes, value: IndexValue) -> ListedRef:
        letter, separator, name = bytes(key).partition(b"\0")
        data = bytes(value.data)
        kind = _BY_LETTER.get(letter)
        if kind is None or not separator or len(data) != 9 or data[:1] != letter:
            raise CorruptionError(f"index entry {bytes(key)!r}: {data!r} lists neither a branch nor a tag")
        return cls(kind, name.decode(), Micros(int.from_bytes(data[1:], "big")))


_BY_LETTER = {kind.letter: kind for kind in RefKind}


@dataclass(frozen=True, slots=True)
class ParsedReference:
    """A parsed reference name: a branch or tag of a catalog, or one of its own references."""

    catalog_id: str
    part: RefKind | OwnRefKind
    name: str = ""


def ref_key(kind: RefKind, name: str) -> bytes:
    return kind.letter + b"\0" + name.encode()


def content_reference(catalog_id: str, kind: RefKind, name: str) -> str:
    return f"cat/{catalog_id}/{kind.folder}/{name}"


def own_reference(catalog_id: str, part: OwnRefKind) -> str:
    return f"cat/{catalog_id}/{part}"


def parse_reference(reference: str) -> ParsedReference | None:
    """Parse a reference name; None if it belongs to no catalog."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    if match["part"]:
        return ParsedReference(match["id"], OwnRefKind(match["part"]))
    kind = RefKind.BRANCH if match["folder"] == "heads" else RefKind.TAG
    return ParsedReference(match["id"], kind, match["name"])


def named_ref(row: Reference) -> NamedRef:
    """The branch or tag of a row."""
    part = parse_reference(row.name)
    assert part is not None and isinstance(part.part, RefKind), "the row of a branch or tag"
    return NamedRef(part.part, part.name, row.pointer, row.created)


def listed_refs(names: Index, kind: RefKind | None = None) -> Iterator[ListedRef]:
    """The entries of the index ``refs``: branches before tags, each by name."""
    entries = names.range() if kind is None else names.prefix(kind.letter + b"\0")
    return (ListedRef.from_entry(key, value) for key, value in entries)


def listed_refs_after(names: Index, kind: RefKind, name: str) -> Iterator[ListedRef]:
    """The entries of one kind from a name on, by name."""
    start, end = ref_key(kind, name), after_prefix(ref_key(kind, ""))
    return (ListedRef.from_entry(key, value) for key, value in names.range(start, end))


def checked_ref_name(kind: RefKind, name: str) -> str:
    """Check the name of a branch or tag and return it.

    raises        RefusedError that says what is wrong with it
    """
    fault = _name_fault(name)
    if fault:
        raise RefusedError(f"{name!r} is not a name for a {kind}: {fault}")
    return name


def _name_fault(name: str) -> str:
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
