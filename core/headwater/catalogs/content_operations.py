"""The operations of a content commit: planned from key views alone, and then applied to the two indexes of content.

``plan_commit`` asks three questions, in this order. Is the request sound against the state that its author saw (``expected``)?
If not, it is refused, because it would never work. Is each touched key at HEAD as it was at ``expected``? Does the resulting
state have a namespace above every key? Every *no* to these two is a conflict, and all conflicts are reported at once. An author
who names no state is assumed to have seen one in which the request was sound: differences from it at HEAD are conflicts, because
another commit was faster, and only a request that is unsound in every state is refused. Because the resulting state is judged,
the order of the operations does not matter, and no operation can orphan a child. Merges check namespaces by the same
``namespace_conflicts``.

``apply_operations`` carries out such a plan within a change. The two indexes are edited together, and only here: ``content`` is by
key, content key -> ``ContentValue``; ``ids`` is the way back, 16 bytes content id -> the content key's bytes, and the
``IcebergMetadata`` of a table or view whose metadata is stored. So a rename changes both, and a new version without stored
metadata only the first.

This module must not know branches, tags or catalogs' definitions: it edits the commit that it is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Protocol
from uuid import UUID, uuid4

from headwater.catalogs.content import (
    Content,
    ContentKey,
    ContentType,
    ContentValue,
    IcebergTable,
    IcebergView,
    Namespace,
    check_namespace_key,
    content_digest,
    content_fault,
    content_type_of,
    type_text,
    without_id,
)
from headwater.catalogs.stored_metadata import store_metadata
from headwater.commits import Head, Transaction
from headwater.errors import ConflictError, RefusedError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.index import Index, IndexEditor, IndexValue
from headwater.store import ObjectId


@dataclass(frozen=True, slots=True)
class Put:
    """Create (content without id), change (with its id) or, together with a Delete of the old key, rename (with its id).

    expected_content    the content that the key must hold at HEAD; its id is compared if it has one
    metadata            the document behind ``metadata_location`` of an Iceberg table or view, to be stored with it
    """

    key: ContentKey
    content: Content
    expected_content: Content | None = None
    metadata: MetadataParts | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the key. Together with a Put of the same key without id: replace the content by a new one of the same type."""

    key: ContentKey


@dataclass(frozen=True, slots=True)
class Unmodified:
    """Require that the key exists and is as it was at the expected commit; nothing is written."""

    key: ContentKey


ContentOperation = Put | Delete | Unmodified


class ConflictKind(StrEnum):
    KEY_EXISTS = "KEY_EXISTS"
    KEY_DOES_NOT_EXIST = "KEY_DOES_NOT_EXIST"
    PAYLOAD_DIFFERS = "PAYLOAD_DIFFERS"
    CONTENT_ID_DIFFERS = "CONTENT_ID_DIFFERS"
    VALUE_DIFFERS = "VALUE_DIFFERS"
    NAMESPACE_ABSENT = "NAMESPACE_ABSENT"
    NOT_A_NAMESPACE = "NOT_A_NAMESPACE"
    NAMESPACE_NOT_EMPTY = "NAMESPACE_NOT_EMPTY"
    KEY_CONFLICT = "KEY_CONFLICT"
    """A content would stand under two keys."""
    UNEXPECTED_HASH = "UNEXPECTED_HASH"
    """A branch or tag is at another commit than the caller saw; no key is to blame."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One contradiction between a request and HEAD. ``key`` is None if it concerns the branch or tag itself.

    others        further keys that the message names, which nobody asked about
    """

    kind: ConflictKind
    key: ContentKey | None
    message: str
    others: tuple[ContentKey, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.key is None else f"{self.kind} {self.key}: {self.message}"


def first_conflicts(*conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """The first conflict of each kind on each key."""
    first: dict[tuple[ConflictKind, ContentKey | None], Conflict] = {}
    for conflict in chain(*conflicts):
        first.setdefault((conflict.kind, conflict.key), conflict)
    return tuple(first.values())


_SHOWN = 50
"""Conflicts that a message names; the details of its error have all."""


def conflicts_text(conflicts: Sequence[Conflict]) -> str:
    """The number of conflicts, and the first of them in words."""
    noun = "conflict" if len(conflicts) == 1 else "conflicts"
    return f"{len(conflicts):,} {noun}: {_listed(conflicts)}"


def _listed(conflicts: Sequence[Conflict]) -> str:
    left = len(conflicts) - _SHOWN
    return "; ".join(map(str, conflicts[:_SHOWN])) + (f"; and {left:,} more" if left > 0 else "")


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One key to be set. ``content_id`` None asks for a new id; the object of an ``object_id`` holds an equal content already."""

    key: ContentKey
    content: Content
    digest: bytes
    content_id: UUID | None
    object_id: ObjectId | None = None
    metadata: MetadataParts | None = None


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The writes and removals of a commit. Operations without an effect are in neither list."""

    removals: tuple[ContentKey, ...]
    writes: tuple[PlannedWrite, ...]


def plan_commit(expected: ContentView | None, head: ContentView, operations: Sequence[ContentOperation]) -> CommitPlan:
    """Plan operations that were made from the state ``expected`` and are applied to the state ``head``.

    expected    the touched keys that exist; None: the author names no state
    head        the touched keys and their ancestors that exist, and below each deleted namespace at least one key that survives,
                if there is one
    raises      RefusedError that names every unsound operation; ConflictError whose ``details`` are all the Conflicts
    """
    request = _Request(operations)
    faults = list(_no_contents(request))
    assumed = expected if expected is not None or faults else _assumed(head, request)
    faults = faults or [*_contradictions(request), *_faults(assumed or {}, request)]
    if faults:
        raise RefusedError("commit refused: " + "; ".join(faults))
    conflicts = first_conflicts(_changes_since(assumed or {}, head, request), _namespace_conflicts(head, request))
    if conflicts:
        raise ConflictError(conflicts_text(conflicts), details=conflicts)
    return _planned(head, request)


class _Request:
    """The operations by kind and key."""

    def __init__(self, operations: Sequence[ContentOperation]) -> None:
        self.operations = operations
        self.puts = {operation.key: operation for operation in operations if isinstance(operation, Put)}
        self.deletes = {operation.key for operation in operations if isinstance(operation, Delete)}
        self.unmodified = {operation.key for operation in operations if isinstance(operation, Unmodified)}


def _no_contents(request: _Request) -> Iterator[str]:
    """Faults of contents to put or compare with, in any state."""
    for key, put in request.puts.items():
        for content in (put.content, *(() if put.expected_content is None else (put.expected_content,))):
            fault = content_fault(content)
            if fault:
                yield f"{key} {fault}"


def _contradictions(request: _Request) -> Iterator[str]:
    """Faults of the operations in any state."""
    marks: set[tuple[type, ContentKey]] = set()
    for operation in request.operations:
        mark = (type(operation), operation.key)
        if mark in marks:
            yield f"{operation.key} has two operations {type(operation).__name__}"
        marks.add(mark)
    for key in request.unmodified:
        if key in request.puts or key in request.deletes:
            yield f"{key} is Unmodified and something else"
    first: dict[UUID, ContentKey] = {}
    for key, put in request.puts.items():
        content_id = put.content.id
        if content_id is not None and first.setdefault(content_id, key) != key:
            yield f"content id {content_id} is put at {first[content_id]} and at {key}"
        if put.metadata is not None and not isinstance(put.content, (IcebergTable, IcebergView)):
            yield f"{key} is {type_text(content_type_of(put.content))}, and metadata belongs to an Iceberg table or view"
        if isinstance(put.content, Namespace):
            try:
                check_namespace_key(key)
            except RefusedError as fault:
                yield str(fault)


def _assumed(head: ContentView, request: _Request) -> ContentView:
    """The state assumed for an author who names none: the request is sound in it, and it is as close to HEAD as possible."""
    assumed = dict(head)
    moved = {head[key].content_id for key in request.deletes if key in head}
    gone = [key for key in request.deletes if key not in head]
    for key, put in request.puts.items():
        given, kind, now = put.content.id, content_type_of(put.content), head.get(key)
        if key in request.deletes:
            if now is not None and now.type != kind:
                assumed[key] = _any_version(kind, now.content_id)
        elif given is None or given in moved:
            assumed.pop(key, None)
        elif gone:  # a rename whose content another commit has deleted or renamed
            assumed.pop(key, None)
            assumed[gone.pop()] = _any_version(kind, given)
        elif now is None or now.content_id != given:
            assumed[key] = _any_version(kind, given)
    return assumed


def _any_version(kind: ContentType, content_id: UUID) -> ContentValue:
    """Any version of a content."""
    return ContentValue(kind, content_id, b"", ObjectId(0))


def _faults(expected: ContentView, request: _Request) -> Iterator[str]:
    """Faults of the puts in the state that their author saw."""
    renamed = {expected[key].content_id: expected[key] for key in request.deletes if key in expected}
    for key, put in request.puts.items():
        fault = _put_fault(put, expected.get(key), renamed, is_readded=key in request.deletes)
        if fault:
            yield f"{key} {fault}"


def _put_fault(put: Put, before: ContentValue | None, renamed: Mapping[UUID, ContentValue], *, is_readded: bool) -> str:
    given, kind = put.content.id, content_type_of(put.content)
    if is_readded:
        if given is not None:
            return "is deleted and put with an id: without the Delete it is a change, without the id a new content in its place"
        return _type_fault(before, kind)
    if before is None:
        if given is None:
            return ""
        if given not in renamed:
            return f"is new and carries the content id {given}: leave the id out, or delete the key that has it, to rename it"
        return _type_fault(renamed[given], kind)
    if given is None:
        return f"exists and is put without an id: its content id is {before.content_id}"
    if before.type == kind and given != before.content_id:
        return f"has the content id {before.content_id}, not {given}"
    return _type_fault(before, kind)


def _type_fault(before: ContentValue | None, kind: ContentType) -> str:
    if before is None or before.type == kind:
        return ""
    return f"would turn {type_text(before.type)} into {type_text(kind)}: delete it in one commit, and create it in the next"


def _changes_since(expected: ContentView, head: ContentView, request: _Request) -> Iterator[Conflict]:
    """Conflicts of touched keys that changed since the expected commit, or differ from what a put expects at HEAD."""
    for operation in request.operations:
        key = operation.key
        before, now = expected.get(key), head.get(key)
        conflict = None
        if not isinstance(operation, Put):
            conflict = _existing(key, before, now)
        elif key not in request.deletes:
            conflict = _existing(key, before, now) if before else _created(key, now)
        if conflict is None and isinstance(operation, Put) and operation.expected_content is not None:
            conflict = _against_content(key, operation.expected_content, now)
        if conflict is not None:
            yield conflict


def _created(key: ContentKey, now: ContentValue | None) -> Conflict | None:
    if now is None:
        return None
    return Conflict(ConflictKind.KEY_EXISTS, key, f"is taken by {type_text(now.type)} {now.content_id}")


def _existing(key: ContentKey, before: ContentValue | None, now: ContentValue | None) -> Conflict | None:
    if now is None:
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, "was deleted since" if before else "is not there")
    if before is None:
        return Conflict(
            ConflictKind.KEY_EXISTS, key, f"was not there at the expected commit, but since {now.content_id} was created"
        )
    return value_conflict(key, now, before, _OTHERWISE)


def _against_content(key: ContentKey, content: Content, now: ContentValue | None) -> Conflict | None:
    if now is None:
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, "is not there, and its put expects a content")
    wanted = ContentValue(content_type_of(content), content.id or now.content_id, content_digest(content), now.object_id)
    return value_conflict(key, now, wanted, _OTHERWISE)


_OTHERWISE = "is {now}, expected {wanted}"


def value_conflict(key: ContentKey, now: ContentValue, wanted: ContentValue, text: str) -> Conflict | None:
    """The conflict of a key that holds another content than the wanted one. ``text`` is a sentence about ``{now}`` and ``{wanted}``."""
    if now.type != wanted.type:
        kind, texts = ConflictKind.PAYLOAD_DIFFERS, (type_text(now.type), type_text(wanted.type))
    elif now.content_id != wanted.content_id:
        kind, texts = ConflictKind.CONTENT_ID_DIFFERS, (f"content {now.content_id}", str(wanted.content_id))
    elif now.digest != wanted.digest:
        kind, texts = ConflictKind.VALUE_DIFFERS, (f"value {now.digest.hex()[:12]}", wanted.digest.hex()[:12])
    else:
        return None
    return Conflict(kind, key, text.format(now=texts[0], wanted=texts[1]))


def _namespace_conflicts(head: ContentView, request: _Request) -> Iterator[Conflict]:
    puts = {key: content_type_of(put.content) for key, put in request.puts.items()}
    return namespace_conflicts(head, puts, request.deletes - puts.keys())


def _planned(head: ContentView, request: _Request) -> CommitPlan:
    stored = {(head[key].type, head[key].digest): head[key].object_id for key in request.deletes}
    writes = []
    for key, put in request.puts.items():
        kind, digest, now = content_type_of(put.content), content_digest(put.content), head.get(key)
        is_same = now is not None and key not in request.deletes and now.digest == digest
        if is_same and now is not None and put.metadata is not None and not now.has_metadata:
            is_same = False  # its document is put later
        if not is_same:
            writes.append(PlannedWrite(key, put.content, digest, put.content.id, stored.get((kind, digest)), put.metadata))
    return CommitPlan(removals=tuple(sorted(request.deletes - request.puts.keys())), writes=tuple(writes))


ContentView = Mapping[ContentKey, ContentValue]
"""What is there of the keys that were asked for."""


def namespace_conflicts(
    head: ContentView, puts: Mapping[ContentKey, ContentType | int], removals: Collection[ContentKey]
) -> Iterator[Conflict]:
    """Find the keys of the resulting state that lack a namespace above them.

    head          the existing entries of the touched keys and their ancestors, and of one surviving key below each of ``non_namespaces``
    puts          the type that each written key gets
    removals      the keys that are removed, and not written
    """
    for key in puts:
        if key not in head:
            yield from _missing_ancestors(key, head, puts, removals)
    going = sorted(key for key in non_namespaces(puts, removals) if key in head and head[key].type == ContentType.NAMESPACE)
    occupied = _child_by_ancestor([*(key for key in head if key not in removals), *puts]) if going else {}
    for key in going:
        if key in occupied:
            verb = f"become {type_text(puts[key])}" if key in puts else "be deleted"
            text = f"would {verb} above {occupied[key]}"
            yield Conflict(ConflictKind.NAMESPACE_NOT_EMPTY, key, text, others=(occupied[key],))


def non_namespaces(puts: Mapping[ContentKey, ContentType | int], removals: Collection[ContentKey]) -> set[ContentKey]:
    """The keys that are no namespaces in the resulting state: nothing may stand below them."""
    return {*removals, *(key for key, kind in puts.items() if kind != ContentType.NAMESPACE)}


def _missing_ancestors(
    key: ContentKey, head: ContentView, puts: Mapping[ContentKey, ContentType | int], removals: Collection[ContentKey]
) -> Iterator[Conflict]:
    for ancestor in key.ancestors():
        now = head.get(ancestor)
        kind = puts.get(ancestor, None if now is None or ancestor in removals else now.type)
        if kind != ContentType.NAMESPACE and now is not None and now.type == ContentType.NAMESPACE:
            continue  # reported once, as a namespace deleted above a key
        if kind is None:
            yield Conflict(ConflictKind.NAMESPACE_ABSENT, ancestor, f"would be needed as the namespace of {key}")
        elif kind != ContentType.NAMESPACE:
            yield Conflict(
                ConflictKind.NOT_A_NAMESPACE, ancestor, f"is {type_text(kind)}, and cannot be the namespace of {key}"
            )


def _child_by_ancestor(keys: Iterable[ContentKey]) -> dict[ContentKey, ContentKey]:
    return {ancestor: key for key in keys for ancestor in key.ancestors()}


CONTENT = "content"
IDS = "ids"


class EditableIndexes(Protocol):
    """Indexes that can be edited: those of a transaction, or of a preview that only shows the result."""

    def index(self, name: str) -> IndexEditor:
        """Read an index with its edits."""


class ContentEditor:
    """Edits the content of a branch. ``index`` and ``ids`` read the edited state."""

    def __init__(self, tx: EditableIndexes) -> None:
        self.index = tx.index(CONTENT)
        self.ids = tx.index(IDS)

    def put_key(self, key: ContentKey, value: ContentValue, metadata: ObjectId | None = None) -> None:
        """Set a key. ``metadata`` is given if and only if the value says that it is stored."""
        index_key = key.to_index()
        before = self._find(index_key)
        self.index.put(index_key, value.to_value())
        is_same = before is not None and before.content_id == value.content_id
        if is_same and before is not None and not (before.has_metadata or value.has_metadata):
            return
        if before is not None and not is_same:
            self._forget(before.content_id, index_key)
        self.ids.put(value.content_id.bytes, IndexValue(metadata, index_key))

    def remove_key(self, key: ContentKey) -> None:
        index_key = key.to_index()
        before = self._find(index_key)
        if before is not None:
            self.index.remove(index_key)
            self._forget(before.content_id, index_key)

    def _find(self, index_key: bytes) -> ContentValue | None:
        value = self.index.get(index_key)
        return None if value is None else ContentValue.from_value(value)

    def _forget(self, content_id: UUID, index_key: bytes) -> None:
        """Remove a content's entry from ``ids``, unless the content stands under another key by now."""
        entry = self.ids.get(content_id.bytes)
        if entry is not None and bytes(entry.data) == index_key:
            self.ids.remove(content_id.bytes)


def index_at(head: Head | None, name: str) -> Index:
    """Open an index of a commit; an empty one where nothing was committed yet."""
    return Index() if head is None else head.index(name)


def find_content_key(ids: Index, content_id: UUID) -> ContentKey | None:
    """Find the key of a content in a commit, given the commit's index ``ids``."""
    return find_content_keys(ids, [content_id]).get(content_id)


def find_content_keys(ids: Index, content_ids: Iterable[UUID]) -> dict[UUID, ContentKey]:
    """Find the keys of those contents that a commit has, in the order given."""
    values = ids.get_many(content_id.bytes for content_id in content_ids)
    return {UUID(bytes=content_id): ContentKey.from_index(bytes(value.data)) for content_id, value in values.items()}


def stored_metadata_of(ids: Index, content_id: UUID) -> ObjectId | None:
    """The stored ``IcebergMetadata`` of a content in a commit, if there is one."""
    value = ids.get(content_id.bytes)
    return None if value is None else value.object_id


def apply_operations(
    tx: Transaction,
    operations: Sequence[ContentOperation],
    expected: Index | None,
    ids: dict[ContentKey, UUID],
    *,
    is_head_seen: bool = False,
) -> dict[ContentKey, UUID]:
    """Plan operations against the head and edit the indexes; returns the ids of the keys that were created.

    expected      the content that the operations were made from; None: their author named no commit
    is_head_seen  ``expected`` is the head's content
    ids           ids for keys to be created, as far as they are known; new ids are added
    raises        what ``plan_commit`` raises · ConflictError where a known id stands under another key already
    """
    content = ContentEditor(tx)
    view = head_view(content.index, operations)
    expected_view = view if is_head_seen else None
    if expected is not None and not is_head_seen:
        expected_view = content_view(expected, (operation.key for operation in operations))
    plan = plan_commit(expected_view, view, operations)
    known = {value.content_id: value for value in view.values() if value.has_metadata}
    stored = {content_id: stored_metadata_of(content.ids, content_id) for content_id in known}
    created = {}
    content.ids.get_many(view[key].content_id.bytes for key in plan.removals)  # one bulk read instead of one for each removal
    for key in plan.removals:
        content.remove_key(key)
    _check_free(content.ids, plan, ids)
    for write in plan.writes:
        content_id = write.content_id
        if content_id is None:
            content_id = created[write.key] = ids[write.key] = ids.get(write.key) or uuid4()
        metadata = None
        if write.metadata is not None:
            metadata = store_metadata(tx, write.metadata, before=stored.get(content_id))
        elif content_id in known and known[content_id].digest == write.digest:  # renamed, with an equal value
            metadata = stored[content_id]
        object_id = tx.add_object(without_id(write.content)) if write.object_id is None else write.object_id
        kind = content_type_of(write.content)
        content.put_key(write.key, ContentValue(kind, content_id, write.digest, object_id, metadata is not None), metadata)
    return created


def _check_free(held: Index, plan: CommitPlan, ids: Mapping[ContentKey, UUID]) -> None:
    """Check that an id reserved for a new key stands under no other key.

    raises        ConflictError with a KEY_CONFLICT for each · RefusedError where two new keys are to get the same id
    """
    given: dict[bytes, ContentKey] = {}
    for write in plan.writes:
        if write.content_id is None and write.key in ids:
            other = given.setdefault(ids[write.key].bytes, write.key)
            if other != write.key:
                raise RefusedError(f"{write.key} would be the same content as {other}, {ids[write.key]}: leave one of them out")
    if not given:
        return
    conflicts = tuple(
        Conflict(
            ConflictKind.KEY_CONFLICT,
            given[content_id],
            f"would hold content {UUID(bytes=content_id)}, which stands at {ContentKey.from_index(bytes(value.data))}",
        )
        for content_id, value in held.get_many(given).items()
    )
    if conflicts:
        raise ConflictError(f"{len(conflicts):,} reserved content ids are taken: {_listed(conflicts)}", details=conflicts)


def put_copy(tx: Transaction, key: ContentKey, source: Content, value: ContentValue, metadata: MetadataParts | None) -> None:
    """Put a content of another commit with copies of all its objects, except those that it shares with the key's present version.

    source, value the content in the other commit, as an object and in its index
    metadata      its Iceberg metadata, where the other commit stores it
    """
    _put(tx, key, replace(value, object_id=tx.add_object(without_id(source))), metadata)


def put_content(tx: Transaction, key: ContentKey, content: Content, content_id: UUID, metadata: MetadataParts | None) -> None:
    """Put a content under a known id, whatever the key holds. Its metadata shares pieces with the present version of the content."""
    object_id = tx.add_object(without_id(content))
    _put(tx, key, ContentValue(content_type_of(content), content_id, content_digest(content), object_id), metadata)


def _put(tx: Transaction, key: ContentKey, value: ContentValue, metadata: MetadataParts | None) -> None:
    editor, held = ContentEditor(tx), None
    if metadata is not None:
        held = store_metadata(tx, metadata, before=stored_metadata_of(editor.ids, value.content_id))
    editor.put_key(key, replace(value, has_metadata=held is not None), held)


def survivors_below(
    content: Index, view: ContentView, going: Iterable[ContentKey], removed: Iterable[ContentKey]
) -> dict[ContentKey, ContentValue]:
    """The first key that is not removed below each of the keys that are namespaces now and will not be; none, where there is none."""
    removed_keys = {key.to_index() for key in removed}
    survivors = {}
    for key in going:
        if key in view and view[key].type == ContentType.NAMESPACE:
            below = content.prefix(key.child_prefix())
            survivor = next(((index_key, value) for index_key, value in below if index_key not in removed_keys), None)
            if survivor is not None:
                survivors[ContentKey.from_index(survivor[0])] = ContentValue.from_value(survivor[1])
    return survivors


def content_view(content: Index, keys: Iterable[ContentKey]) -> dict[ContentKey, ContentValue]:
    """The values of those keys that an index of content holds."""
    by_index_key = {key.to_index(): key for key in keys}
    values = content.get_many(by_index_key)
    return {by_index_key[key]: ContentValue.from_value(value) for key, value in values.items()}


def head_view(content: Index, operations: Sequence[ContentOperation]) -> dict[ContentKey, ContentValue]:
    """Read the touched keys, the namespaces above what is put, and one surviving key below each deleted namespace."""
    keys = {operation.key for operation in operations}
    keys.update(ancestor for operation in operations if isinstance(operation, Put) for ancestor in operation.key.ancestors())
    going = {operation.key for operation in operations if isinstance(operation, Delete)}
    view = content_view(content, keys)
    return view | survivors_below(content, view, going, going)
