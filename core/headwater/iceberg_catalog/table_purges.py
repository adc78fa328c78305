"""Drops a table with its files: a task deletes them once no kept commit has the table."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

from headwater import iceberg
from headwater.catalogs import ContentKey, Delete, IcebergTable, RequestKey, TableClaim, find_holders
from headwater.errors import HeadwaterError, RefusedError
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState
from headwater.iceberg_catalog.lake_errors import NoSuchTableError, dotted
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.jobs import request_table_purge
from headwater.purge import DroppedTable, PurgeRequest
from headwater.store import Store
from headwater.tasks import SubmittedTask, TaskQueue


class TablePurges:
    """Drops tables with their files."""

    def __init__(self, store: Store, session: BranchSession, files: LakeFiles) -> None:
        self._store = store
        self._session = session
        self._files = files

    def drop_with_files(self, key: ContentKey, *, reachable_only: bool = False, request: RequestKey | None = None) -> None:
        """Request the purge, then drop the table: a task whose table was not dropped finds it in the catalog, and ends.

        All that leads to the files is read first: once the table is dropped, a list that is missing would leave everything.

        reachable_only  files that only missing or unreadable manifests name are never deleted
        raises          NoSuchTableError; RefusedError, and nothing is dropped, where not all of its files can be told, or may be
                        deleted
        """
        reached: dict[str, tuple[str, ...]] = {}
        dropped: dict[UUID, str] = {}

        def plan(state: BranchState) -> BranchChange:
            table = state.find_content(key)
            if not isinstance(table, IcebergTable) or table.id is None:
                raise NoSuchTableError.at(key)
            try:
                document = self._document(state, key, table)
                location = str(document["location"])
                if table.metadata_location not in reached:
                    reached[table.metadata_location] = self._places(
                        document, table.metadata_location, location, missed=[] if reachable_only else None
                    )
            except RefusedError as fault:
                raise RefusedError(f"{dotted(key)} was not dropped: {fault}") from fault
            uuid = None if table.table_uuid is None else UUID(table.table_uuid)
            drop = DroppedTable(
                branch=self._session.name,
                key=str(key),
                metadata=table.metadata_location,
                location=location,
                asked=self._store.clock.now(),
                reachable_only=reachable_only,
                allowed=reached[table.metadata_location],
                request=uuid4().hex,
            )
            wish = self._wish(table.id, uuid, drop)
            dropped[table.id] = location
            rows = self._session.rows
            asked = request_table_purge(self._store, wish, realm=rows.realm, realm_key=rows.key)
            return BranchChange(
                operations=[Delete(key)],
                message=f"drop table {key}, to be purged",
                claims=[TableClaim(self._session.id, table.id, location, uuid)],
                take_back=lambda: self._take_back(wish, asked),
            )

        self._session.carry_out(plan, keys=[key], request=request)
        for content_id, location in dropped.items():
            self._release(content_id, location)

    def _release(self, content_id: UUID, location: str) -> None:
        """Release the place of the dropped table, unless another branch or tag holds it. Best effort: else it is free with the history."""
        rows = self._session.rows
        with suppress(HeadwaterError):
            if not find_holders(rows, self._session.id, [content_id]):
                owner = self._session.claims.find_location(location)
                if owner is not None and (owner.catalog_id, owner.content_id) == (self._session.id, content_id):
                    self._session.claims.release_places({location: owner})

    def _document(self, state: BranchState, key: ContentKey, table: IcebergTable) -> dict[str, Any]:
        text = None if table.id is None else state.find_metadata(table.id)
        if text is None:
            text = self._files.read_text(key, table.metadata_location)
        document = iceberg.purgeable_document(text, path=table.metadata_location)
        self._files.check_allowed(key, [str(document["location"])])
        return document

    def _places(self, document: dict[str, Any], root: str, location: str, *, missed: list[str] | None) -> tuple[str, ...]:
        """Which of the allowed places the table has metadata in, besides its location.

        Every manifest and list is read, as the purge will have to; raises as ``reach`` does.
        """
        allowed = self._files.allowed
        reached = iceberg.reachable_files(
            document, root, within=location, allowed=allowed, storage=self._files.storage.lake, missed=missed
        )
        outside = [file for file, turn in reached if turn != iceberg.FIRST_TURNS[0] and not iceberg.is_within(file, location)]
        return tuple(place for place in allowed if any(iceberg.is_within(file, place) for file in outside))

    def _wish(self, content_id: UUID, uuid: UUID | None, drop: DroppedTable) -> PurgeRequest:
        catalog = self._session.catalog.definition
        return PurgeRequest(catalog=catalog.name, catalog_id=catalog.id, content_id=content_id, table_uuid=uuid, drops=(drop,))

    def _take_back(self, wish: PurgeRequest, asked: SubmittedTask) -> None:
        """Cancel the task, unless another client has requested it, before or since.

            this client   asks ........................ is beaten   cancels
            another                joins the task, drops the table           (its purge would be gone, and the files stay for ever)

        One that stays finds the table where it was, and ends by itself.
        """
        if asked.created:
            with suppress(HeadwaterError):
                TaskQueue(self._store).cancel_task(asked.id, carrying=wish.arguments())
