"""Copies of a commit's contents for a commit elsewhere: a merge, a transplant, a restoration. The source's objects may be garbage
tomorrow.

Few contents are read ahead, held, and copied by the change itself. Where there are more of them than a batch, their copies are
staged: written batch by batch before the change, which then only points to them. It must not know where they are put, nor why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from headwater.catalogs.content import Content, ContentKey, ContentValue, without_id
from headwater.catalogs.content_operations import CONTENT, IDS, ContentEditor, put_copy
from headwater.catalogs.stored_metadata import IcebergMetadata, metadata_bytes, read_metadata, store_metadata
from headwater.commits import Head, StagedObjects, Transaction
from headwater.errors import CorruptionError, ExpiredError, NotFoundError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.index import Index
from headwater.store import ObjectId, RealmStore, StoredObject, id_text, unknown_pointers_reason

_CONTENT_BYTES = 500
"""What a content without its metadata takes, about."""


class _HeldContent(NamedTuple):
    """A content that was read, and not copied yet."""

    value: ContentValue
    content: Content
    metadata: MetadataParts | None

    @property
    def bytes(self) -> int:
        return _CONTENT_BYTES + (0 if self.metadata is None else metadata_bytes(self.metadata))


class _StagedContent(NamedTuple):
    """The copies of a content and its metadata; ``before`` is the target's metadata whose pieces the copy shares."""

    object_id: ObjectId
    metadata: ObjectId | None
    before: ObjectId | None


class ContentCopies:
    """Copies contents of one commit, by their ids. Contents of equal value may be one object, each with metadata of its own.

    staged        where copies are written ahead, when they are many; several may share it, for one change
    """

    def __init__(self, source: Head, staged: StagedObjects) -> None:
        self._source = source
        self._staging = staged
        self._held: dict[UUID, _HeldContent] = {}
        self._held_bytes = 0
        self._staged: dict[UUID, _StagedContent] = {}
        self._objects: dict[ObjectId, ObjectId] = {}

    def prepare(self, rows: RealmStore, values: Sequence[ContentValue], ids: Index) -> None:
        """Read the contents that were not read yet; where they are more than a batch, write their copies, too.

        ids           of the target as it is now, whose metadata the copies share pieces with
        raises        ExpiredError when the source was collected meanwhile · what ``StagedObjects.write_batch`` raises
        """
        missing = [value for value in values if not self._has(value.content_id)]
        for part in _batches(missing, rows.settings.copy_batch):
            for held in self._read(part):
                if (
                    self._held_bytes + held.bytes > rows.settings.commit_group_bytes
                    or len(self._held) >= rows.settings.copy_batch
                ):
                    self.stage_held(ids)
                self._hold(held)
        if self._staged:
            self.stage_held(ids)

    @property
    def held_bytes(self) -> int:
        """What the contents take that are read and not staged, about."""
        return self._held_bytes

    def put_contents(self, tx: Transaction, values: Mapping[ContentKey, ContentValue]) -> None:
        """Put contents under keys, as copies. What a key holds now does not matter.

        raises        ExpiredError when the source was collected before all of them were read
        """
        keys = [value.content_id.bytes for value in values.values()]
        tx.index(CONTENT).get_many(key.to_index() for key in values)  # one bulk read instead of one for each edit
        held = {content_id: value.object_id for content_id, value in tx.index(IDS).get_many(keys).items()}
        # Older copies may be gone before the swap. Then everything is read again, and added with the commit.
        is_staged = bool(self._staged) and tx.take_staged(self._staging)
        loose = []
        for value in values.values():
            staged = self._staged.get(value.content_id)
            if not is_staged or staged is None or not _fits(staged, held.get(value.content_id.bytes)):
                loose.append(value)
        for copied in self._read([value for value in loose if value.content_id not in self._held]):
            self._hold(copied)
        apart = {value.content_id for value in loose}
        editor = ContentEditor(tx)
        for key, value in values.items():
            if value.content_id in apart:
                copied = self._held[value.content_id]
                put_copy(tx, key, copied.content, value, copied.metadata)
            else:
                staged = self._staged[value.content_id]
                is_with = staged.metadata is not None
                editor.put_key(key, replace(value, object_id=staged.object_id, has_metadata=is_with), staged.metadata)

    def _has(self, content_id: UUID) -> bool:
        return content_id in self._held or content_id in self._staged

    def _hold(self, held: _HeldContent) -> None:
        self._held[held.value.content_id] = held
        self._held_bytes += held.bytes

    def stage_held(self, ids: Index) -> None:
        """Write the copies of what is held, in one batch, and forget it. ``ids`` as for ``prepare``."""
        before = ids.get_many(content_id.bytes for content_id, held in self._held.items() if held.metadata is not None)
        for content_id, held in self._held.items():
            entry = before.get(content_id.bytes)
            self._staged[content_id] = self._copy(held, None if entry is None else entry.object_id)
        self._staging.write_batch()
        self._held, self._held_bytes = {}, 0

    def _copy(self, held: _HeldContent, before: ObjectId | None) -> _StagedContent:
        original = held.value.object_id
        if original not in self._objects:
            self._objects[original] = self._staging.add_object(without_id(held.content))
        metadata = None if held.metadata is None else store_metadata(self._staging, held.metadata, before=before)
        return _StagedContent(self._objects[original], metadata, before)

    def _read(self, values: Sequence[ContentValue]) -> Iterator[_HeldContent]:
        """Read contents, together, and the metadata of each when its turn has come."""
        rows = self._source.rows
        with expired_if_collected(self._source):
            stored = rows.read_many([value.object_id for value in values], StoredObject)
            entries = self._source.index(IDS).get_many(value.content_id.bytes for value in values if value.has_metadata)
            metadata = {key: entry.object_id for key, entry in entries.items() if entry.object_id is not None}
            rows.read_many(list(metadata.values()), IcebergMetadata)  # one bulk read instead of one for each
        for value, content in zip(values, stored, strict=True):
            with expired_if_collected(self._source):
                metadata_id = metadata.get(value.content_id.bytes)
                parts = None if metadata_id is None else read_metadata(rows, metadata_id)
                held = _HeldContent(value, self._checked(value, content), parts)
            yield held

    def _checked(self, value: ContentValue, stored: StoredObject | None) -> Content:
        where = f"object {id_text(value.object_id)} of commit {id_text(self._source.id)}"
        if stored is None:
            raise CorruptionError(f"{where} is not there: run `headwater fsck`")
        if not isinstance(stored, Content):
            raise CorruptionError(f"{where} has the type {stored.type_name!r}, which this release cannot copy")
        if why := unknown_pointers_reason(stored):
            raise CorruptionError(f"{where} {why}: it cannot be copied")
        return stored


def _fits(staged: _StagedContent, held: ObjectId | None) -> bool:
    """Whether a copy shares pieces with nothing but what the commit's parent holds."""
    return staged.before is None or staged.before == held


def _batches(values: Sequence[ContentValue], size: int) -> Iterator[Sequence[ContentValue]]:
    return (values[start : start + size] for start in range(0, len(values), size))


@contextmanager
def expired_if_collected(source: Head) -> Iterator[None]:
    """Raise ExpiredError instead of a damage report if the commit was collected since it was read."""
    try:
        yield
    except (CorruptionError, NotFoundError) as fault:
        if not isinstance(fault, ExpiredError) and source.is_collected():
            raise ExpiredError(
                f"commit {id_text(source.id)} of realm {source.rows.realm!r} was collected while it was copied: begin again"
            ) from fault
        raise
