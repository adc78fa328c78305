"""What a commit would do, and all that stands against it; decided from key views alone, without a store.

Three questions, in this order. Is the request sound against the state that its author saw (``expected``)? If not, it is
refused: it would never work. Is each touched key at HEAD as it was at ``expected``? Does the state that would result have a
namespace above every key? Every *no* to these two is a conflict, and all of them are reported at once.
An author who names no state is taken to have seen one in which the request was sound: what differs from it at HEAD is a conflict,
because another was faster, and only what no state would make right is refused.
Because the resulting state is judged, the order of the operations does not matter, and none can orphan a child.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from headwater.catalogs.content.keys import ContentKey, check_namespace_key
from headwater.catalogs.content.namespaces import View, holes
from headwater.catalogs.content.operations import Conflict, ConflictKind, Delete, Operation, Plan, Put, Unmodified, Write
from headwater.catalogs.content.types import (
    Content,
    ContentType,
    ContentValue,
    IcebergTable,
    IcebergView,
    Namespace,
    content_digest,
    content_fault,
    content_type_of,
    type_text,
)
from headwater.errors import ConflictError, RefusedError
from headwater.store import ObjectId

__all__ = ["View", "plan_commit"]


def plan_commit(expected: View | None, head: View, operations: Sequence[Operation]) -> Plan:
    """Decide about operations that were made from the state ``expected`` and meet the state ``head``.

    expected    the touched keys, as far as they were there; None: the author names no state
    head        the touched keys and their ancestors, and below each deleted namespace at least one key that is not deleted too,
                as far as they are there
    raises      RefusedError that names every unsound operation; ConflictError whose ``details`` are all the Conflicts
    """
    request = _Request(operations)
    faults = list(_no_contents(request))
    seen = expected if expected is not None or faults else _assumed(head, request)
    faults = faults or [*_contradictions(request), *_faults(seen or {}, request)]
    if faults:
        raise RefusedError("commit refused: " + "; ".join(faults))
    found: dict[tuple[ConflictKind, ContentKey | None], Conflict] = {}
    for conflict in (*_changes_since(seen or {}, head, request), *_holes(head, request)):
        found.setdefault((conflict.kind, conflict.key), conflict)
    if found:
        conflicts = tuple(found.values())
        noun = "conflict" if len(conflicts) == 1 else "conflicts"
        raise ConflictError(f"{len(conflicts)} {noun}: " + "; ".join(map(str, conflicts)), details=conflicts)
    return _planned(head, request)


class _Request:
    """The operations by kind and key."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.puts = {operation.key: operation for operation in operations if isinstance(operation, Put)}
        self.deletes = {operation.key for operation in operations if isinstance(operation, Delete)}
        self.unmodified = {operation.key for operation in operations if isinstance(operation, Unmodified)}


def _no_contents(request: _Request) -> Iterator[str]:
    """What cannot be put, or compared with, whatever the state."""
    for key, put in request.puts.items():
        for content in (put.content, *(() if put.expected_content is None else (put.expected_content,))):
            fault = content_fault(content)
            if fault:
                yield f"{key} {fault}"


def _contradictions(request: _Request) -> Iterator[str]:
    """What is wrong with the operations whatever the state."""
    seen: set[tuple[type, ContentKey]] = set()
    for operation in request.operations:
        mark = (type(operation), operation.key)
        if mark in seen:
            yield f"{operation.key} has two operations {type(operation).__name__}"
        seen.add(mark)
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


def _assumed(head: View, request: _Request) -> View:
    """The state that an author has in mind who names none: the request is sound in it, and it is as near to HEAD as that can be."""
    assumed = dict(head)
    moved = {head[key].content_id for key in request.deletes if key in head}
    gone = [key for key in request.deletes if key not in head]
    for key, put in request.puts.items():
        given, kind, now = put.content.id, content_type_of(put.content), head.get(key)
        if key in request.deletes:
            if now is not None and now.type != kind:
                assumed[key] = _some(kind, now.content_id)
        elif given is None or given in moved:
            assumed.pop(key, None)
        elif gone:  # a rename, whose content another has deleted or renamed
            assumed.pop(key, None)
            assumed[gone.pop()] = _some(kind, given)
        elif now is None or now.content_id != given:
            assumed[key] = _some(kind, given)
    return assumed


def _some(kind: ContentType, content_id: UUID) -> ContentValue:
    """Whatever version of a content."""
    return ContentValue(kind, content_id, b"", ObjectId(0))


def _faults(expected: View, request: _Request) -> Iterator[str]:
    """What is wrong with the puts in the state that their author saw."""
    renamed = {expected[key].content_id: expected[key] for key in request.deletes if key in expected}
    for key, put in request.puts.items():
        fault = _put_fault(put, expected.get(key), renamed, is_readded=key in request.deletes)
        if fault:
            yield f"{key} {fault}"


def _put_fault(put: Put, seen: ContentValue | None, renamed: Mapping[UUID, ContentValue], *, is_readded: bool) -> str:
    given, kind = put.content.id, content_type_of(put.content)
    if is_readded:
        if given is not None:
            return "is deleted and put with an id: without the Delete it is a change, without the id a new content in its place"
        return _type_fault(seen, kind)
    if seen is None:
        if given is None:
            return ""
        if given not in renamed:
            return f"is new and carries the content id {given}: leave the id out, or delete the key that has it, to rename it"
        return _type_fault(renamed[given], kind)
    if given is None:
        return f"exists and is put without an id: its content id is {seen.content_id}"
    if seen.type == kind and given != seen.content_id:
        return f"has the content id {seen.content_id}, not {given}"
    return _type_fault(seen, kind)


def _type_fault(seen: ContentValue | None, kind: ContentType) -> str:
    if seen is None or seen.type == kind:
        return ""
    return f"would turn {type_text(seen.type)} into {type_text(kind)}: delete it in one commit, and create it in the next"


def _changes_since(expected: View, head: View, request: _Request) -> Iterator[Conflict]:
    """Where a touched key is at HEAD not as it was at the expected commit, or not as the put says that it has to be."""
    for operation in request.operations:
        key = operation.key
        seen, now = expected.get(key), head.get(key)
        conflict = None
        if not isinstance(operation, Put):
            conflict = _existing(key, seen, now)
        elif key not in request.deletes:
            conflict = _existing(key, seen, now) if seen else _created(key, now)
        if conflict is None and isinstance(operation, Put) and operation.expected_content is not None:
            conflict = _against_content(key, operation.expected_content, now)
        if conflict is not None:
            yield conflict


def _created(key: ContentKey, now: ContentValue | None) -> Conflict | None:
    if now is None:
        return None
    return Conflict(ConflictKind.KEY_EXISTS, key, f"is taken by {type_text(now.type)} {now.content_id}")


def _existing(key: ContentKey, seen: ContentValue | None, now: ContentValue | None) -> Conflict | None:
    if now is None:
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, "was deleted since" if seen else "is not there")
    if seen is None:
        return Conflict(
            ConflictKind.KEY_EXISTS, key, f"was not there at the expected commit, but since {now.content_id} was created"
        )
    return _difference(key, now, seen.type, seen.content_id, seen.digest)


def _against_content(key: ContentKey, content: Content, now: ContentValue | None) -> Conflict | None:
    if now is None:
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, "is not there, and its put expects a content")
    return _difference(key, now, content_type_of(content), content.id or now.content_id, content_digest(content))


def _difference(
    key: ContentKey, now: ContentValue, kind: ContentType | int, content_id: UUID, digest: bytes
) -> Conflict | None:
    if now.type != kind:
        return Conflict(ConflictKind.PAYLOAD_DIFFERS, key, f"is {type_text(now.type)}, expected {type_text(kind)}")
    if now.content_id != content_id:
        return Conflict(ConflictKind.CONTENT_ID_DIFFERS, key, f"is content {now.content_id}, expected {content_id}")
    if now.digest != digest:
        return Conflict(ConflictKind.VALUE_DIFFERS, key, f"is {now.digest.hex()[:12]}, expected {digest.hex()[:12]}")
    return None


def _holes(head: View, request: _Request) -> Iterator[Conflict]:
    puts = {key: content_type_of(put.content) for key, put in request.puts.items()}
    return holes(head, puts, request.deletes - puts.keys())


def _planned(head: View, request: _Request) -> Plan:
    stored = {(head[key].type, head[key].digest): head[key].object_id for key in request.deletes}
    writes = []
    for key, put in request.puts.items():
        kind, digest, now = content_type_of(put.content), content_digest(put.content), head.get(key)
        is_same = now is not None and key not in request.deletes and now.digest == digest
        if is_same and now is not None and put.metadata is not None and not now.has_metadata:
            is_same = False  # its document comes later
        if not is_same:
            writes.append(Write(key, put.content, digest, put.content.id, stored.get((kind, digest)), put.metadata))
    return Plan(removals=tuple(sorted(request.deletes - request.puts.keys())), writes=tuple(writes))
