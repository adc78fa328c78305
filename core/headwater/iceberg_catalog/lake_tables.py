"""The Iceberg tables of a reference: created, staged, changed by updates one by one or together, renamed, registered and dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from headwater.catalogs import ContentKey, ContentType, IcebergTable, RequestKey, TableClaim
from headwater.errors import NotFoundError, UnknownOutcomeError
from headwater.iceberg.changes import added_snapshots, change_table, check_requirements, new_table
from headwater.iceberg.untrusted_document import parse_untrusted_table
from headwater.iceberg_catalog.branch_session import BranchSession, BranchState
from headwater.iceberg_catalog.earlier_commits import CommitVerdict, is_creation, judge_together
from headwater.iceberg_catalog.lake_contents import (
    LakeContents,
    MakeDocument,
    VersionEdit,
    encoded_document,
)
from headwater.iceberg_catalog.lake_documents import Document, table_content
from headwater.iceberg_catalog.lake_errors import NoSuchTableError, ReadOnlyReferenceError, dotted
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.iceberg_catalog.lake_namespaces import check_namespace
from headwater.iceberg_catalog.lake_values import LoadedTable, StagedTable, TableCommit, TableCreation
from headwater.iceberg_catalog.lake_versions import LakeKind, PresentVersion
from headwater.iceberg_catalog.table_purges import TablePurges

PresentTable = PresentVersion[IcebergTable, LoadedTable]
NextVersion = Callable[[PresentTable | None], Document | None]
"""The next version's document, from the present one; None where nothing changes. It judges the requirements, too."""


class LakeTables(LakeContents[IcebergTable, LoadedTable, TableCommit]):
    """The Iceberg tables of a reference."""

    def __init__(
        self,
        session: BranchSession,
        files: LakeFiles,
        purges: TablePurges,
        *,
        warehouse: str | None = None,
        check_text: Callable[[bytes, str], object] | None = None,
    ) -> None:
        kind = LakeKind(
            noun="Table",
            content=IcebergTable,
            content_type=ContentType.ICEBERG_TABLE,
            loaded=LoadedTable,
            missing=NoSuchTableError,
            as_content=table_content,
            check_text=check_text or _check_text,
        )
        super().__init__(kind, session, files, warehouse=warehouse)
        self._purges = purges

    def create(self, creation: TableCreation, *, request: RequestKey | None = None) -> LoadedTable:
        """Create a table; raises NoSuchNamespaceError, and AlreadyExistsError where the key has a table or view."""
        return self.create_from(creation.key, creation.location, partial(self._new_document, creation), request=request)

    def stage(self, creation: TableCreation) -> StagedTable:
        """Make a new table's metadata, of which nothing is stored or written; raises as ``create`` does."""
        self._check_free(self._session.state(), creation.key)
        return self.stage_from(creation.key, creation.location, partial(self._new_document, creation))

    def stage_from(self, key: ContentKey, location: str | None, make: MakeDocument) -> StagedTable:
        """Stage the document that ``make`` returns.

        raises        NoSuchNamespaceError · RefusedError for a place that is taken, or not allowed: files would be written there before
                      the commit · ReadOnlyReferenceError where no commit could follow
        """
        self._session.check_writable()
        state, unique = self._session.state(), uuid4()
        check_namespace(state, key.parent)
        document = make(location.rstrip("/") if location else self._default_place(state, key, unique), unique)
        self.check_new(state, key, document)
        return StagedTable(key, self._files.new_file(document), encoded_document(document))

    def commit_many(self, commits: Sequence[TableCommit], *, request: RequestKey | None = None) -> Sequence[LoadedTable]:
        """Apply updates to several tables in one commit of the reference, all or none; raises as ``commit`` does."""
        if len(commits) == 1:
            steps = [partial(self._next_version, commits[0], "")]
        else:
            steps = [partial(self._next_version, commit, f"table-changes[{at}].") for at, commit in enumerate(commits)]
        return self.commit_with(commits, steps, request=request)

    def commit_with(
        self, commits: Sequence[TableCommit], steps: Sequence[NextVersion], *, request: RequestKey | None = None
    ) -> Sequence[LoadedTable]:
        """Commit versions that the caller's own steps make, one for each commit; everything else is as in ``commit_many``."""
        edits = [VersionEdit(commit.key, step, _word_of(commit)) for commit, step in zip(commits, steps, strict=True)]
        try:
            return self.change_versions(edits, has_happened=partial(_has_happened, commits), request=request)
        except (NotFoundError, ReadOnlyReferenceError) as fault:
            if any(added_snapshots(commit.updates) for commit in commits) and self._session.was_deleted():
                # it may have happened before the branch was deleted, and be merged by now: its files are not to be deleted
                raise UnknownOutcomeError(
                    f"branch {self._session.name!r} was deleted, and whether this commit was on it is not looked up: keep its files,"
                    " and look for it where the branch was merged"
                ) from fault
            raise

    def check_places(self, key: ContentKey, held: Sequence[str], uuid: UUID | None, places: Collection[str]) -> None:
        """Check that a table, created or not, may have further places, as far as that can be told before its commit.

        held          its places so far, the location first
        raises        RefusedError
        """
        self._files.check_allowed(key, places)
        state = self._session.state()
        stored = self._find(state, key)
        if stored is None:
            content_id = self._id_for(state, uuid, uuid4())
        else:
            content_id = stored.id or uuid4()
            uuid = uuid if stored.table_uuid is not None else None
        claim = TableClaim(self._session.id, content_id, held[0], uuid, (*held[1:], *places))
        self._session.check_free([claim], f"change table {key}")

    def drop(self, key: ContentKey, *, purge: bool = False, request: RequestKey | None = None) -> None:
        """Drop a table; raises NoSuchTableError.

        purge         its files, too: a task deletes them once no kept commit has the table. RefusedError, and nothing is dropped,
                      where not all of its files can be told, or may be deleted
        """
        if purge:
            self._purges.drop_with_files(key, request=request)
        else:
            super().drop(key, request=request)

    def _next_version(self, commit: TableCommit, where: str, present: PresentTable | None) -> Document:
        """Apply a commit by Headwater's own rules of changes; ``where`` is its place in the request."""
        if present is None and not is_creation(commit):
            raise NoSuchTableError.at(commit.key)
        document = None if present is None else present.document
        check_requirements(document, commit.requirements, where=f"{where}requirements")
        return change_table(
            document,
            commit.updates,
            now_ms=self._session.now_ms,
            previous_file=None if present is None else present.loaded.metadata_location,
            where=f"{where}updates",
        )

    def _new_document(self, creation: TableCreation, location: str, unique: UUID) -> Document:
        return new_table(
            schema=creation.schema,
            partition_spec=creation.partition_spec,
            sort_order=creation.sort_order,
            properties=dict(creation.properties),
            location=location,
            table_uuid=unique,
            now_ms=self._session.now_ms,
        )


def _has_happened(commits: Sequence[TableCommit], state: BranchState, present: Sequence[PresentTable | None]) -> bool:
    """Judge what happened already, before any requirement: the history knows better than an author who was told "failed".

    raises        UnknownOutcomeError where that cannot be told: after any other error clients delete files
    """
    documents = [None if version is None else version.document for version in present]
    verdict = judge_together(state, documents, commits)
    if verdict is CommitVerdict.UNCLEAR:
        names = ", ".join(dotted(commit.key) for commit in commits)
        raise UnknownOutcomeError(
            f"whether this commit to {names} holds cannot be told: files that it names are, or were, in the table, and not all of its"
            " updates are found there. Keep its files, load the table, and look for them; send what is missing in another commit"
        )
    return verdict is CommitVerdict.HAPPENED


def _word_of(commit: TableCommit) -> str:
    """The operations of the added snapshots, for the log; else ``change``."""
    summaries = [snapshot.get("summary") for snapshot in added_snapshots(commit.updates)]
    operations = [_operation(summary) for summary in summaries if isinstance(summary, Mapping)]
    return ", ".join(dict.fromkeys(filter(None, operations))) or "change"


def _operation(summary: Mapping[str, Any]) -> str:
    operation = summary.get("operation")
    return operation if operation in ("append", "replace", "overwrite", "delete") else ""


def _check_text(text: bytes, location: str) -> object:
    return parse_untrusted_table(text, location=location)
