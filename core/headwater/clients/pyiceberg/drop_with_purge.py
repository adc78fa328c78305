"""Drops a table with its files: a task deletes them once no kept commit has the table."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.typedef import Identifier

from headwater import iceberg
from headwater.catalogs import ContentKey, Delete, IcebergTable, TableClaim
from headwater.clients.pyiceberg.metadata_files import ClientStorage, FileAccess
from headwater.clients.pyiceberg.translation import identifier_key, shown_identifier
from headwater.errors import HeadwaterError, RefusedError
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState
from headwater.jobs import request_table_purge
from headwater.purge import DroppedTable, PurgeRequest
from headwater.store import Store
from headwater.tasks import SubmittedTask, TaskQueue


class PurgeOperations:
    def __init__(self, store: Store, branch: BranchSession, access: FileAccess) -> None:
        self._store = store
        self._branch = branch
        self._access = access

    def purge(self, identifier: str | Identifier, *, reachable_only: bool = False) -> None:
        """Request the purge, then drop the table: a task whose table was not dropped finds it in the catalog, and ends.

        All that leads to the files is read first: once the table is dropped, a list that is missing would leave everything.

        raises        NoSuchTableError; RefusedError, and nothing is dropped, where not all of its files can be told, or may be deleted
        """
        key = identifier_key(identifier, NoSuchTableError)
        reached: dict[str, tuple[str, ...]] = {}

        def plan(state: BranchState) -> BranchChange:
            table = state.find_content(key)
            if not isinstance(table, IcebergTable) or table.id is None:
                raise NoSuchTableError(f"Table does not exist: {shown_identifier(key)}")
            try:
                document = self._document(state, key, table)
                location = str(document["location"])
                if table.metadata_location not in reached:
                    reached[table.metadata_location] = self._places(
                        document, table.metadata_location, location, missed=[] if reachable_only else None
                    )
            except RefusedError as fault:
                raise RefusedError(f"{shown_identifier(key)} was not dropped: {fault}") from fault
            uuid = None if table.table_uuid is None else UUID(table.table_uuid)
            drop = DroppedTable(
                branch=self._branch.name,
                key=str(key),
                metadata=table.metadata_location,
                location=location,
                asked=self._store.clock.now(),
                reachable_only=reachable_only,
                allowed=reached[table.metadata_location],
                request=uuid4().hex,
            )
            wish = self._wish(table.id, uuid, drop)
            rows = self._branch.rows
            asked = request_table_purge(self._store, wish, realm=rows.realm, realm_key=rows.key)
            return BranchChange(
                operations=[Delete(key)],
                message=f"drop table {key}, to be purged",
                claim=TableClaim(self._branch.id, table.id, location, uuid),
                take_back=lambda: self._take_back(wish, asked),
            )

        self._branch.commit(plan, key=key)

    def _document(self, state: BranchState, key: ContentKey, table: IcebergTable) -> dict[str, Any]:
        text = self._access.document(state, key, table)
        document = iceberg.purgeable_document(text, path=table.metadata_location)
        self._access.check_location(key, [str(document["location"])])
        return document

    def _places(self, document: dict[str, Any], root: str, location: str, *, missed: list[str] | None) -> tuple[str, ...]:
        """Which of the allowed places the table has metadata in, besides its location.

        Every manifest and list is read, as the purge will have to; raises as ``reach`` does.
        """
        allowed, storage = self._branch.catalog.definition.places, ClientStorage(self._access.io)
        reached = iceberg.reachable_files(document, root, within=location, allowed=allowed, storage=storage, missed=missed)
        outside = [file for file, turn in reached if turn != iceberg.FIRST_TURNS[0] and not iceberg.is_within(file, location)]
        return tuple(place for place in allowed if any(iceberg.is_within(file, place) for file in outside))

    def _wish(self, content_id: UUID, uuid: UUID | None, drop: DroppedTable) -> PurgeRequest:
        catalog = self._branch.catalog.definition
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
