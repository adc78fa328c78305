"""Contents as clients put them who write the metadata files themselves: checked, and completed with what their documents say.

A table's or view's content comes with the location of its metadata file. The file is read, by the rules of a registration where the
content is new, and of a change where it is not; the catalog stores it, and what the content says of it has to be so. Where a content
keeps its metadata file, as in a rename, nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import msgspec

from headwater.catalogs import (
    Content,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    TableClaim,
    Udf,
)
from headwater.errors import RefusedError
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.property_rules import check_properties
from headwater.iceberg_catalog.branch_session import BranchSession, BranchState
from headwater.iceberg_catalog.lake_documents import Document, document_uuid, has_same_data, is_first_version
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.iceberg_catalog.lake_versions import LakeVersions

DOCUMENTS_LIMIT = 1_000
"""Metadata files that are read for one commit."""
TEXT_LIMIT_BYTES = 512 * 1024 * 1024
"""The text of all of them together, which is held in memory until the commit."""
_READERS = 8
_READ_TOGETHER = 64
_IDS = ("id", "table_uuid", "view_uuid")
_OLD_FIELDS = ("sql_text", "dialect")
_T = TypeVar("_T")
_R = TypeVar("_R")
_Versions = LakeVersions[Any, Any]


@dataclass(frozen=True, slots=True)
class PutWish:
    """A content as a client puts it.

    state         the state that it was put from
    before        the content in that state that it continues, with its id; None: it is new
    before_key    where that stands
    with_document its document is wanted also where it keeps its metadata file
    """

    put: Put
    state: BranchState
    before: Content | None = None
    before_key: ContentKey | None = None
    with_document: bool = False


@dataclass(frozen=True, slots=True)
class PutDraft:
    """A put that can be committed.

    content_id    of a new table or view; None: the catalog gives it, or it has one
    claim         to be taken before the commit
    same_data     the table keeps the files that it has, and its places
    faults        what the content says otherwise than its metadata file; to be told only to whoever may make the change
    """

    put: Put
    content_id: UUID | None = None
    claim: TableClaim | None = None
    same_data: bool = False
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ReadPut:
    """A put whose metadata file was read."""

    draft: PutDraft
    document: Document
    size: int


class ContentPuts:
    """Checks and completes puts on one reference of a catalog.

    own           properties of file access that the owner of the process has configured: a namespace may have the same ones
    """

    def __init__(
        self,
        session: BranchSession,
        files: LakeFiles,
        tables: LakeVersions[Any, Any],
        views: LakeVersions[Any, Any],
        *,
        own: Mapping[str, str],
    ) -> None:
        self._session = session
        self._files = files
        self._tables = tables
        self._views = views
        self._own = own

    def draft_puts(
        self,
        wishes: Sequence[PutWish],
        *,
        head: BranchState,
        fresh_ids: dict[ContentKey, UUID],
        removed: Collection[ContentKey] = (),
    ) -> list[PutDraft]:
        """Check and complete puts. The metadata files are read side by side, a few at a time.

        head          the present state
        fresh_ids     content ids for what no uuid identifies; those that are missing are added, so that another attempt claims for them
        removed       keys that the same commit deletes: what stands there may be put anew
        returns       a draft for each wish
        raises        RefusedError, before a byte is read, for a file that the catalog does not allow, or that lies in a place of another
                      table; for a file that is missing or unsound; for more or larger files than are read for one commit
        """
        drafts: dict[int, PutDraft] = {}
        unread: list[int] = []
        for at, wish in enumerate(wishes):
            draft = self._without_reading(wish)
            if draft is None:
                unread.append(at)
            else:
                drafts[at] = draft
        read = self._read_all([wishes[at] for at in unread])
        drafts.update(zip(unread, self._identified(read, head, fresh_ids, removed), strict=True))
        return [drafts[at] for at in range(len(wishes))]

    def _without_reading(self, wish: PutWish) -> PutDraft | None:
        """The draft of a put for which no file is read; None: one has to be."""
        put, content, before = wish.put, wish.put.content, wish.before
        if isinstance(content, IcebergTable | IcebergView):
            is_known = type(before) is type(content) and before.metadata_location == content.metadata_location
            return self._kept(wish) if is_known else None
        if isinstance(content, Namespace):
            held = before.properties if isinstance(before, Namespace) else None
            check_properties(content.properties, of=f"namespace {put.key}", before=held, own=self._own)
        elif self._files.allowed:
            known = set() if before is None else set(_named_places(before))
            self._files.check_allowed(put.key, [place for place in _named_places(content) if place not in known])
        return PutDraft(put)

    def _kept(self, wish: PutWish) -> PutDraft:
        """The draft of a content that keeps its metadata file."""
        put, before = wish.put, wish.before
        assert isinstance(before, IcebergTable | IcebergView) and before.id is not None
        assert isinstance(put.content, IcebergTable | IcebergView)
        content, parts = _with_old_fields(before, put.content), None
        if content != before or wish.with_document:
            text = wish.state.find_metadata(before.id)
            parts = None if text is None else split_metadata(text)
        faults = tuple(_disagreements(put, before))
        return PutDraft(replace(put, content=content, metadata=parts), same_data=True, faults=faults)

    def _read_all(self, wishes: Sequence[PutWish]) -> list[_ReadPut]:
        if len(wishes) > DOCUMENTS_LIMIT:
            raise RefusedError(
                f"a commit with {len(wishes)} new metadata files; {DOCUMENTS_LIMIT} are read for one: commit them in several parts"
            )
        read: list[_ReadPut] = []
        for some in _read_side_by_side(self._read, wishes):
            read.extend(some)
            size = sum(each.size for each in read)
            if size > TEXT_LIMIT_BYTES:
                raise RefusedError(
                    f"the metadata files of one commit have {size} bytes and more; {TEXT_LIMIT_BYTES} are read for one: commit them in"
                    " several parts"
                )
        return read

    def _read(self, wish: PutWish) -> _ReadPut:
        given, versions = wish.put.content, self._versions_of(wish.put.content)
        assert isinstance(given, IcebergTable | IcebergView)
        key, location = wish.put.key, given.metadata_location
        present = versions.present_version(wish.state, wish.before_key or key, wish.before)
        if present is None:
            text, document = versions.read_named(key, location)
            claim, same_data = None, False
        else:
            text, document = versions.read_next(key, location, present)
            claim, same_data = versions.new_claim(present, document), has_same_data(present.document, document)
        made = versions.as_content(document, location, None if present is None else present.stored.id)
        put = replace(wish.put, content=_with_old_fields(made, given), metadata=split_metadata(text))
        faults = tuple(_disagreements(wish.put, made))
        return _ReadPut(PutDraft(put, claim=claim, same_data=same_data, faults=faults), document, len(text))

    def _identified(
        self,
        read: Sequence[_ReadPut],
        head: BranchState,
        fresh_ids: dict[ContentKey, UUID],
        removed: Collection[ContentKey],
    ) -> Iterator[PutDraft]:
        """Give new tables and views their content ids, and their claims: what is known by a uuid gets the id that it has."""
        uuids = [document_uuid(each.document) for each in read if each.draft.put.content.id is None]
        known = self._session.claims.find_content_ids(self._session.id, [uuid for uuid in uuids if uuid is not None])
        present = head.keys_of(known.values())
        for each in read:
            put, uuid = each.draft.put, document_uuid(each.document)
            if put.content.id is not None:
                yield each.draft
                continue
            content_id = None if uuid is None else known[uuid]
            if content_id is None or (content_id in present and present[content_id] not in removed):
                # where the uuid is taken, the claim will meet that of the other
                content_id = fresh_ids.setdefault(put.key, uuid4())
            versions, is_home = self._versions_of(put.content), is_first_version(each.document)
            claim = versions.claim_of(content_id, each.document, is_home=is_home)
            yield replace(each.draft, content_id=content_id, claim=claim)

    def _versions_of(self, content: Content) -> LakeVersions[Any, Any]:
        return self._tables if isinstance(content, IcebergTable) else self._views


def completed_content(given: Content, present: Content | None) -> Content:
    """A content that a client expects, completed with what clients do not send, if it is the present one as far as they say it."""
    if not isinstance(present, IcebergTable | IcebergView) or type(given) is not type(present):
        return given
    return given if any(_differences(given, present)) else msgspec.structs.replace(present, id=given.id)


def _read_side_by_side(read: Callable[[_T], _R], wishes: Sequence[_T]) -> Iterator[list[_R]]:
    """Read in parts, so that what is too much is found out before all of it is in memory."""
    if len(wishes) == 1:
        yield [read(wishes[0])]
    elif wishes:
        with ThreadPoolExecutor(_READERS, thread_name_prefix="put") as pool:
            for start in range(0, len(wishes), _READ_TOGETHER):
                yield list(pool.map(read, wishes[start : start + _READ_TOGETHER]))


def _named_places(content: Content) -> tuple[str, ...]:
    """The locations that a Delta table or a function names."""
    if isinstance(content, DeltaLakeTable):
        return (*content.metadata_location_history, *content.checkpoint_location_history)
    return (content.metadata_location,) if isinstance(content, Udf) else ()


def _with_old_fields(made: Any, given: Any) -> Any:
    """A content with the fields of old clients, of which no document knows, as they were given."""
    fields = {name: getattr(given, name) for name in _OLD_FIELDS if hasattr(given, name)}
    return msgspec.structs.replace(made, **fields)


def _differences(given: Content, made: Content) -> Iterator[str]:
    """The fields in which a content differs from another one, as far as clients send them."""
    for name in type(given).__struct_fields__:
        if name in ("unknown", *_IDS):
            continue
        if getattr(given, name) != getattr(made, name):
            yield name


def _disagreements(put: Put, made: IcebergTable | IcebergView) -> Iterator[str]:
    """What a content says otherwise than its metadata file."""
    for name in _differences(put.content, made):
        if name not in _OLD_FIELDS:
            said, found = getattr(put.content, name), getattr(made, name)
            yield f"{put.key} has the {name.replace('_', ' ')} {said}, and {made.metadata_location} says {found}"
    for name in ("table_uuid", "view_uuid"):
        said, found = getattr(put.content, name, None), getattr(made, name, None)
        if said is not None and said != found:
            yield f"{put.key} has the {name.replace('_', ' ')} {said}, and {made.metadata_location} says {found}"
