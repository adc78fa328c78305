"""A plan made on a state, and carried out: what the source holds is copied, for its objects may be garbage tomorrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from headwater.catalogs.content.applying import put_content, put_copy, survivor, view_of
from headwater.catalogs.content.indexes import CONTENT, IDS, ContentEditor, Edited
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.namespaces import unseated
from headwater.catalogs.content.types import Content, ContentType, ContentValue, content_digest, content_type_of
from headwater.catalogs.history.comparing import Change
from headwater.catalogs.history.merging.planning import MergePlan, Modes, decide, given_up, judge
from headwater.catalogs.iceberg.parts import Parts
from headwater.catalogs.metadata import read_metadata
from headwater.commits import Head, Transaction
from headwater.errors import ExpiredError, MissingError, UnreadableError
from headwater.index import Index, IndexEditor
from headwater.store import ObjectId, StoredObject, id_text

__all__ = ["Contents", "Pretence", "plan_on", "pretend", "reading", "write"]

_READ_AT_ONCE = 500


def plan_on(content: Index, ids: Index, changes: Sequence[Change], modes: Modes) -> MergePlan:
    """What the changes of a source would do to a state.

    content, ids  the target's two indexes of content
    raises        RefusedError for a resolved content that cannot be put
    """
    head = view_of(content, (change.key for change in changes))
    made = decide(changes, head, modes, _keys_of(ids, given_up(changes, head)))
    types = made.types()
    head |= view_of(content, {above for key in types if key not in head for above in key.ancestors()})
    removed = {key.to_index() for key in made.removals}
    for key in unseated(types, made.removals):
        if key in head and head[key].type == ContentType.NAMESPACE:
            found = survivor(content, key, removed)
            if found is not None:
                head[found[0]] = found[1]
    return judge(made, head, _keys_of(ids, made.ids().values()))


def _keys_of(ids: Index, content_ids: Iterable[UUID]) -> dict[UUID, ContentKey]:
    """Where contents stand, as far as they do."""
    by_id = {content_id.bytes: content_id for content_id in content_ids}
    return {by_id[key]: ContentKey.from_index(bytes(value.data)) for key, value in ids.get_many(by_id).items()}


class Contents:
    """The contents of a source's commit by their ids, read before they are written: a change must be quick.

    Contents of equal value may be one object, each with metadata of its own.
    """

    def __init__(self, source: Head) -> None:
        self._source = source
        self._objects: dict[UUID, Content] = {}
        self._metadata: dict[UUID, Parts] = {}

    def read(self, values: Iterable[ContentValue]) -> None:
        """Read those that were not read yet.

        raises        ExpiredError when the source was collected meanwhile
        """
        missing = [value for value in values if value.content_id not in self._objects]
        rows = self._source.rows
        with reading(self._source):
            for start in range(0, len(missing), _READ_AT_ONCE):
                some = missing[start : start + _READ_AT_ONCE]
                for value, found in zip(some, rows.read_many([value.object_id for value in some], StoredObject), strict=True):
                    self._objects[value.content_id] = self._content(value, found)
            with_metadata = {value.content_id.bytes: value.content_id for value in missing if value.has_metadata}
            for content_id, held in self._source.index(IDS).get_many(with_metadata).items():
                if held.object_id is not None:
                    self._metadata[with_metadata[content_id]] = read_metadata(rows, held.object_id)

    def copy(self, tx: Transaction, key: ContentKey, value: ContentValue) -> None:
        put_copy(tx, key, self._objects[value.content_id], value, self._metadata.get(value.content_id))

    def _content(self, value: ContentValue, found: StoredObject | None) -> Content:
        where = f"object {id_text(value.object_id)} of commit {id_text(self._source.id)}"
        if found is None:
            raise UnreadableError(f"{where} is not there: run `headwater fsck`")
        if not isinstance(found, Content):
            raise UnreadableError(f"{where} has the type {found.type_name!r}, which this release cannot copy")
        return found


@contextmanager
def reading(source: Head) -> Iterator[None]:
    """What is missing of a commit that was collected since it was read is expired, and no damage."""
    try:
        yield
    except (UnreadableError, MissingError) as fault:
        if not isinstance(fault, ExpiredError) and source.is_collected():
            raise ExpiredError(
                f"commit {id_text(source.id)} of realm {source.rows.realm!r} was collected while it was merged: begin again"
            ) from fault
        raise


def write(tx: Transaction, plan: MergePlan, contents: Contents) -> None:
    """Carry out a plan without conflicts. What is put goes first: a moved content then shares the metadata that it had."""
    contents.read(plan.copies.values())
    tx.index(CONTENT).get_many(key.to_index() for key in plan.copies)  # together, what the edits would look up one by one
    tx.index(IDS).get_many(value.content_id.bytes for value in plan.copies.values())
    for key, value in plan.copies.items():
        contents.copy(tx, key, value)
    for key, one in plan.resolved.items():
        put_content(tx, key, one.content, one.content_id, one.metadata)
    editor = ContentEditor(tx)
    for key in plan.removals:
        editor.remove(key)


class Pretence:
    """What a branch would hold, without a commit."""

    def __init__(self, head: Head | None) -> None:
        self._editors = {name: IndexEditor(Index() if head is None else head.index(name)) for name in (CONTENT, IDS)}

    def index(self, name: str) -> IndexEditor:
        return self._editors[name]


def pretend(edited: Edited, plan: MergePlan) -> None:
    """Edit as ``write`` does, but with the objects of the source: for looking only. Conflicts are taken as if they were forced."""
    editor = ContentEditor(edited)
    for key, value in plan.copies.items():
        editor.put(key, ContentValue(value.type, value.content_id, value.digest, value.object_id))
    for key, one in plan.resolved.items():
        editor.put(key, ContentValue(content_type_of(one.content), one.content_id, content_digest(one.content), ObjectId(0)))
    for key in plan.removals:
        editor.remove(key)
