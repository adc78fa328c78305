"""The Iceberg views of a reference: created, changed by updates, renamed, registered and dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from headwater.catalogs import ContentType, IcebergView, RequestKey
from headwater.iceberg.changes import change_view, check_requirements, new_view
from headwater.iceberg.untrusted_document import parse_untrusted_view
from headwater.iceberg_catalog.branch_session import BranchSession
from headwater.iceberg_catalog.lake_contents import LakeContents, VersionEdit
from headwater.iceberg_catalog.lake_documents import Document, view_content
from headwater.iceberg_catalog.lake_errors import NoSuchViewError
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.iceberg_catalog.lake_values import LoadedView, ViewCommit, ViewCreation
from headwater.iceberg_catalog.lake_versions import LakeKind, PresentVersion


class LakeViews(LakeContents[IcebergView, LoadedView, ViewCommit]):
    """The Iceberg views of a reference."""

    def __init__(
        self,
        session: BranchSession,
        files: LakeFiles,
        *,
        warehouse: str | None = None,
        check_text: Callable[[bytes, str], object] | None = None,
    ) -> None:
        kind = LakeKind(
            noun="View",
            content=IcebergView,
            content_type=ContentType.ICEBERG_VIEW,
            loaded=LoadedView,
            missing=NoSuchViewError,
            as_content=view_content,
            check_text=check_text or _check_text,
        )
        super().__init__(kind, session, files, warehouse=warehouse)

    def create(self, creation: ViewCreation, *, request: RequestKey | None = None) -> LoadedView:
        """Create a view; raises NoSuchNamespaceError, and AlreadyExistsError where the key has a table or view."""

        def make(location: str, unique: UUID) -> Document:
            return new_view(
                schema=creation.schema,
                view_version=creation.view_version,
                properties=dict(creation.properties),
                location=location,
                view_uuid=unique,
                now_ms=self._session.now_ms,
            )

        return self.create_from(creation.key, creation.location, make, request=request)

    def commit_many(self, commits: Sequence[ViewCommit], *, request: RequestKey | None = None) -> Sequence[LoadedView]:
        """Apply updates to several views in one commit of the reference, all or none; raises as ``commit`` does."""
        edits = [VersionEdit(commit.key, partial(self._next_version, commit)) for commit in commits]
        return self.change_versions(edits, request=request)

    def _next_version(self, commit: ViewCommit, present: PresentVersion[IcebergView, LoadedView] | None) -> Document:
        if present is None:
            raise NoSuchViewError.at(commit.key)
        check_requirements(present.document, commit.requirements)
        return change_view(present.document, commit.updates, now_ms=self._session.now_ms)


def _check_text(text: bytes, location: str) -> object:
    return parse_untrusted_view(text, location=location)
