"""What the operations on tables and on views have in common: reading, creating, changing, renaming, registering and dropping them.

A version is decided from the branch's present state as a draft; when all drafts of a change are decided, and their places are found
to be free, their metadata files are written, and then the branch is committed. See ``branch_session`` for what follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

import msgspec

from headwater.catalogs import (
    ContentKey,
    ContentOperation,
    Delete,
    Put,
    RequestKey,
    TableClaim,
    Unmodified,
)
from headwater.errors import ConflictError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.plain_metadata import plain_metadata
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState
from headwater.iceberg_catalog.content_locations import default_location
from headwater.iceberg_catalog.lake_documents import Document, document_uuid, has_same_data
from headwater.iceberg_catalog.lake_errors import AlreadyExistsError
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.iceberg_catalog.lake_namespaces import check_namespace
from headwater.iceberg_catalog.lake_values import KeyPage, TableCommit, ViewCommit
from headwater.iceberg_catalog.lake_versions import C, L, LakeKind, LakeVersions, PresentVersion, check_keeps_uuid
from headwater.store import ObjectId, RealmKey

K = TypeVar("K", bound=TableCommit | ViewCommit)
MakeDocument = Callable[[str, UUID], Document]
"""A new table's or view's metadata, given its location and uuid."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class VersionMark:
    """The version of a table or view that was present at a moment.

    etag          of what ``load_marked`` returns
    objects       the realm, and the objects that hold its content and its document: no two versions in a store have the same ones.
                  None: its document lies in its file alone
    """

    key: ContentKey
    content_id: UUID
    etag: str
    objects: tuple[RealmKey, ObjectId, ObjectId] | None
    state: BranchState


@dataclass(frozen=True, slots=True)
class VersionEdit(Generic[C, L]):
    """A wish to change a table or view, or to create it.

    decide        the next version's document from the present one, None where there is none; None or an equal document: nothing changes
    word          what it does, for the log
    """

    key: ContentKey
    decide: Callable[[PresentVersion[C, L] | None], Document | None]
    word: str = "change"


@dataclass(frozen=True, slots=True)
class _VersionDraft(Generic[C]):
    """A version that was decided, and of which nothing is written. ``before`` None: it is created under ``content_id``."""

    key: ContentKey
    content: C
    before: C | None
    text: bytes
    content_id: UUID
    claim: TableClaim | None

    def operation(self) -> Put:
        return Put(self.key, self.content, self.before, split_metadata(self.text))


class LakeContents(LakeVersions[C, L], ABC, Generic[C, L, K]):
    """The Iceberg tables, or the Iceberg views, of a reference. NoSuch…Error: NoSuchTableError or NoSuchViewError."""

    def __init__(self, kind: LakeKind[C, L], session: BranchSession, files: LakeFiles, *, warehouse: str | None = None) -> None:
        super().__init__(kind, session, files)
        self._warehouse = warehouse or session.catalog.definition.base_location
        self._attempted: dict[str, UUID] = {}

    def list(self, namespace: ContentKey, *, token: str | None = None, limit: int | None = None) -> KeyPage:
        """List the tables or views directly below a namespace, as ``LakeNamespaces.list_children`` does."""
        state = self._session.state()
        if not token:
            check_namespace(state, namespace)
        page = self._session.children(namespace, self._kind.content_type, token=token, limit=limit)
        content_ids = tuple(entry.content_id for entry in page.entries)
        return KeyPage(tuple(entry.key for entry in page.entries), page.next_token, content_ids)

    def load(self, key: ContentKey) -> L:
        """Load the present version; raises NoSuch…Error."""
        state = self._session.state()
        return self._loaded(state, key, self._read(state, key))

    def mark(self, key: ContentKey) -> VersionMark:
        """Mark the present version, by the index alone: no document is read. Raises NoSuch…Error."""
        state = self._session.state()
        value = state.find_value(key)
        if value is None or value.type is not self._kind.content_type:
            raise self._kind.missing.at(key)
        stored = state.find_metadata_id(value.content_id) if value.has_metadata else None
        objects = None if stored is None else (state.rows.key, value.object_id, stored)
        return VersionMark(key, value.content_id, value.digest.hex(), objects, state)

    def load_marked(self, mark: VersionMark) -> L:
        """Load the version that was marked, whatever has happened since."""
        return self._loaded(mark.state, mark.key, self._read(mark.state, mark.key))

    def peek(self, key: ContentKey) -> str:
        """The ``etag`` of the present version, from the index alone: no document is read. Raises NoSuch…Error."""
        return self.mark(key).etag

    def exists(self, key: ContentKey) -> bool:
        return self._session.state().type_of(key) is self._kind.content_type

    def drop(self, key: ContentKey, *, request: RequestKey | None = None) -> None:
        """Drop a table or view; raises NoSuch…Error. Its files stay, so that commits that hold it stay readable."""

        def plan(state: BranchState) -> BranchChange:
            self._read(state, key)
            return BranchChange(operations=[Delete(key)], message=f"drop {self._word} {key}")

        self._session.carry_out(plan, keys=[key], request=request)

    def rename(self, source: ContentKey, target: ContentKey, *, request: RequestKey | None = None) -> L:
        """Rename in one commit, also into another namespace; the content id and the files stay.

        raises        NoSuch…Error · NoSuchNamespaceError · AlreadyExistsError
        """
        renamed: list[L] = []

        def plan(state: BranchState) -> BranchChange | None:
            check_namespace(state, target.parent)
            stored = self._read(state, source)
            taken = None if source == target else state.find_content(target)
            if taken is not None:
                raise AlreadyExistsError.of_rename(source, target, taken, wanted=self._kind.noun)
            renamed.append(self._loaded(state, target, stored))
            if source == target:
                return None
            return BranchChange(
                operations=[Delete(source), Put(target, stored)], message=f"rename {self._word} {source} to {target}"
            )

        earlier = self._session.carry_out(plan, keys=[source, target], request=request)
        return renamed[-1] if earlier is None else self._made_by(earlier, target)

    def register(
        self, key: ContentKey, metadata_location: str, *, overwrite: bool = False, request: RequestKey | None = None
    ) -> L:
        """Register the table or view of a metadata file. One that was dropped gets its content id back.

        overwrite     what stands there: the same table or view moves to this version, another one of its type gives way
        raises        NoSuchNamespaceError · AlreadyExistsError · RefusedError, before a byte is read, where the catalog does not allow the
                      file, or another catalog's table has its place
        """
        text, document = self.read_named(key, metadata_location)
        parts = split_metadata(text)
        uuid, fresh_id = document_uuid(document), uuid4()
        done: list[L] = []

        def plan(state: BranchState) -> BranchChange:
            stored = state.find_content(key)
            present = stored if isinstance(stored, self._kind.content) else None
            if stored is not None and not (overwrite and present is not None):
                raise AlreadyExistsError.at(key, stored, wanted=self._kind.noun)
            check_namespace(state, key.parent)
            if present is not None and present.id is not None and self._is_same(state, key, present, document):
                content_id, before = present.id, present
                content = self._kind.as_content(document, metadata_location, content_id)
                operations: list[ContentOperation] = [Put(key, content, before, parts)]
            else:
                content_id = self._id_for(state, uuid, fresh_id)
                content = self._kind.as_content(document, metadata_location, None)
                operations = [*([] if present is None else [Delete(key)]), Put(key, content, metadata=parts)]
            done.append(self._version(key, content, content_id, text))
            return BranchChange(
                operations=operations,
                message=f"register {self._word} {key}",
                ids={key: content_id},
                claims=[self.claim_of(content_id, document)],
            )

        earlier = self._session.carry_out(plan, keys=[key], request=request)
        return done[-1] if earlier is None else self._made_by(earlier, key)

    def create_from(self, key: ContentKey, location: str | None, make: MakeDocument, *, request: RequestKey | None = None) -> L:
        """Create a table or view of the document that ``make`` returns; raises NoSuchNamespaceError and AlreadyExistsError."""
        place = location.rstrip("/") if location else None
        fresh_id, done = uuid4(), list[L]()

        def plan(state: BranchState) -> BranchChange:
            self._check_free(state, key)
            document = make(place or self._default_place(state, key, unique), unique)
            draft = self._first_draft(state, key, document, fresh_id)
            done.append(self._version(key, draft.content, draft.content_id, draft.text))
            return replace(self._written([draft], f"create {self._word} {key}"), is_new=True)

        with self._uuid_for(place, request) as unique:
            earlier = self._session.carry_out(plan, keys=[key], request=request)
        return done[-1] if earlier is None else self._made_by(earlier, key)

    def commit(self, commit: K, *, request: RequestKey | None = None) -> L:
        """Apply updates to a table or view that meets the requirements, or create a table by ``assert-create``.

        A commit to a table that happened already returns the present version, whatever the requirements say.

        raises        NoSuch…Error · RequirementFailedError · ChangeFormError · UnknownOutcomeError also where it cannot be told whether the
                      same commit happened before
        """
        return self.commit_many([commit], request=request)[0]

    @abstractmethod
    def commit_many(self, commits: Sequence[K], *, request: RequestKey | None = None) -> Sequence[L]:
        """Apply updates to several tables or views in one commit of the reference, all or none; raises as ``commit`` does."""

    def change_versions(
        self,
        edits: Sequence[VersionEdit[C, L]],
        *,
        has_happened: Callable[[BranchState, Sequence[PresentVersion[C, L] | None]], bool] = lambda state, present: False,
        request: RequestKey | None = None,
    ) -> Sequence[L]:
        """Change several tables or views in one commit, all or none; decided again when another commit was faster.

        has_happened  asked before anything is decided, with the present versions: whether the change is in them already
        raises        what ``decide`` raises; RefusedError for another uuid, a place that is taken or not allowed, and a file that is not in
                      one of the places of its table
        """
        keys = [edit.key for edit in edits]
        if not edits or len(set(keys)) < len(keys):
            raise RefusedError(
                f"a commit changes at least one {self._word}, and each only once: put all updates of a {self._word} together"
            )
        fresh_ids, done = {key: uuid4() for key in keys}, dict[ContentKey, L]()

        def plan(state: BranchState) -> BranchChange | None:
            contents = state.find_many(keys)
            present = [self.present_version(state, key, contents.get(key)) for key in keys]
            is_old = has_happened(state, present)
            if is_old and not self._session.may_show(state, *keys):
                raise UnknownOutcomeError(  # any other error would make its author delete files
                    "this may have happened before, and what came of it is not shown to you: ask whoever may load it"
                )
            if is_old:
                self._session.confirm_state()
            drafts: list[_VersionDraft[C]] = []
            same_data: set[ContentKey] = set()
            for edit, before in zip(edits, present, strict=True):
                document = None if is_old else edit.decide(before)
                if before is None and document is None:
                    raise self._kind.missing.at(edit.key)
                if before is not None and (document is None or document == before.document):
                    done[edit.key] = before.loaded
                elif document is not None:
                    drafts.append(self._draft(state, edit.key, before, document, fresh_ids[edit.key]))
                    done[edit.key] = self._version(edit.key, drafts[-1].content, drafts[-1].content_id, drafts[-1].text)
                    if before is not None and has_same_data(before.document, document):
                        same_data.add(edit.key)
            if not drafts:
                return None
            change = self._written(drafts, self._message(edits, drafts))
            # what was judged and stays has to be so still when the others change
            changed = {draft.key for draft in drafts}
            kept = [Unmodified(key) for key in keys if key not in changed]
            return replace(change, operations=[*change.operations, *kept], same_data=frozenset(same_data))

        earlier = self._session.carry_out(plan, keys=keys, request=request)
        return [done[key] if earlier is None else self._made_by(earlier, key) for key in keys]

    def check_new(self, state: BranchState, key: ContentKey, document: Document) -> None:
        """Check that a table or view could be created now: what it names is allowed, and its places are free; raises RefusedError."""
        self._files.check_change(key, None, document)
        uuid = document_uuid(document)
        claim = self.claim_of(self._id_for(state, uuid, uuid4()), document)
        self._session.check_free([claim], f"create {self._word} {key}")

    def _made_by(self, earlier: ObjectId, key: ContentKey) -> L:
        """What an earlier commit left at a key: the present version, or its own where that is another table or view, gone, or not shown.

        To answer that there is none would be to tell the author of that commit that it failed.
        """
        present, then = self._session.state(), self._session.state_of(earlier)
        stored, made = self._find(present, key), self._read(then, key)
        if stored is not None and stored.id == made.id and self._session.may_show(present, key):
            return self._loaded(present, key, stored)
        return self._loaded(then, key, made)

    def _check_free(self, state: BranchState, key: ContentKey) -> None:
        check_namespace(state, key.parent)
        content = state.find_content(key)
        if content is not None:
            raise AlreadyExistsError.at(key, content, wanted=self._kind.noun)

    def _default_place(self, state: BranchState, key: ContentKey, unique: UUID) -> str:
        return default_location(state, key, unique=unique, warehouse=self._warehouse)

    def _first_draft(self, state: BranchState, key: ContentKey, document: Document, fresh_id: UUID) -> _VersionDraft[C]:
        self._files.check_change(key, None, document)
        content_id = self._id_for(state, document_uuid(document), fresh_id)
        content = self._kind.as_content(document, self._files.new_file(document), None)
        claim = self.claim_of(content_id, document, is_home=True)
        return _VersionDraft(key, content, None, encoded_document(document), content_id, claim)

    def _draft(
        self, state: BranchState, key: ContentKey, before: PresentVersion[C, L] | None, document: Document, fresh_id: UUID
    ) -> _VersionDraft[C]:
        if before is None:
            self._check_free(state, key)
            return self._first_draft(state, key, document, fresh_id)
        check_keeps_uuid(key, before.stored, before.document, document)
        self._files.check_change(key, before.document, document)
        content_id = before.loaded.content_id
        file = self._files.new_file(document, after=before.loaded.metadata_location)
        content = self._kind.as_content(document, file, content_id)
        claim = self.new_claim(before, document)
        return _VersionDraft(key, content, before.stored, encoded_document(document), content_id, claim)

    def _message(self, edits: Sequence[VersionEdit[C, L]], drafts: Sequence[_VersionDraft[C]]) -> str:
        """What a commit does, for the log: the words of its changes, and the first of their keys."""
        changed = {draft.key: draft for draft in drafts}
        words = ["create" if changed[edit.key].before is None else edit.word for edit in edits if edit.key in changed]
        noun = self._word if len(changed) == 1 else f"{self._word}s"
        names = ", ".join(map(str, list(changed)[:_SHOWN]))
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        return f"{', '.join(dict.fromkeys(words))} {noun} {names}{more}"

    def _written(self, drafts: Sequence[_VersionDraft[C]], message: str) -> BranchChange:
        """Write the metadata files of drafts if their places are free: no file is ever written into another table's place, nor removed
        there.
        """
        claims = [draft.claim for draft in drafts if draft.claim is not None]
        if claims:
            self._session.check_free(claims, message)
        locations: list[str] = []
        try:
            for draft in drafts:
                self._files.write_file(draft.content.metadata_location, draft.text)
                locations.append(draft.content.metadata_location)
        except BaseException:
            self._files.remove_files(locations)
            raise
        return BranchChange(
            operations=[draft.operation() for draft in drafts],
            message=message,
            ids={draft.key: draft.content_id for draft in drafts if draft.before is None},
            claims=claims,
            take_back=partial(self._files.remove_files, locations),
        )

    @contextmanager
    def _uuid_for(self, place: str | None, request: RequestKey | None) -> Iterator[UUID]:
        """A uuid for what is created at a place: the one for which an attempt that failed may have claimed the place.

        Otherwise whoever tries again would find the place taken, until the next collection. The uuid follows from the request; without
        one, attempts of this process are remembered.

        place         None: a place of which no attempt knows
        """
        if request is not None:
            yield request.fresh_uuid()
            return
        unique = (None if place is None else self._attempted.pop(place, None)) or uuid4()
        try:
            yield unique
        except AlreadyExistsError:
            raise  # decided before any claim
        except (ConflictError, UnavailableError):
            if place is not None:
                self._attempted[place] = unique
            raise


def encoded_document(document: Mapping[str, Any]) -> bytes:
    """The text of a document, in the form that Iceberg's Java library reads."""
    return plain_metadata(msgspec.json.encode(document))
