"""Dropping a table for good: its files are deleted by a task, once no kept commit holds it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.typedef import Identifier

from headwater.catalogs import Claim, ContentKey, Delete, IcebergTable, iceberg
from headwater.clients.pyiceberg.access import ClientStorage, FileAccess
from headwater.clients.pyiceberg.committing import Branch, Change
from headwater.clients.pyiceberg.names import key_of, shown
from headwater.clients.pyiceberg.states import State
from headwater.errors import HeadwaterError, RefusedError
from headwater.maintenance import Dropped, Wish, ask_for_purge
from headwater.store import ObjectId, Store
from headwater.tasks import Tasks

__all__ = ["Purges"]


class Purges:
    def __init__(self, store: Store, branch: Branch, access: FileAccess) -> None:
        self._store = store
        self._branch = branch
        self._access = access

    def purge(self, identifier: str | Identifier, *, reachable_only: bool = False) -> None:
        """Ask for the purge, then drop: a task whose table is not dropped finds it in the catalog, and ends.

        All that leads to the files is read first: once the table is dropped, a list that is missing would leave everything.

        raises        NoSuchTableError; RefusedError, and nothing is dropped, where not all of its files can be told, or may be deleted
        """
        key = key_of(identifier, NoSuchTableError)
        reached: set[str] = set()

        def plan(state: State) -> Change:
            there = state.find(key)
            if not isinstance(there, IcebergTable) or there.id is None:
                raise NoSuchTableError(f"Table does not exist: {shown(key)}")
            try:
                document = self._document(state, key, there)
                location = str(document["location"])
                if there.metadata_location not in reached and not reachable_only:
                    self._check_reach(document, there.metadata_location, location)
                    reached.add(there.metadata_location)
            except RefusedError as fault:
                raise RefusedError(f"{shown(key)} was not dropped: {fault}") from fault
            uuid = None if there.table_uuid is None else UUID(there.table_uuid)
            drop = Dropped(
                branch=self._branch.name,
                key=str(key),
                metadata=there.metadata_location,
                location=location,
                asked=self._store.clock.now(),
            )
            task = self._ask(there.id, uuid, drop, reachable_only=reachable_only)
            return Change(
                operations=[Delete(key)],
                message=f"drop table {key}, to be purged",
                claim=Claim(self._branch.id, there.id, location, uuid),
                take_back=lambda: self._take_back(task),
            )

        self._branch.commit(plan, key=key)

    def _document(self, state: State, key: ContentKey, there: IcebergTable) -> dict[str, Any]:
        text = self._access.document(state, key, there)
        document = iceberg.purgeable_document(text, path=there.metadata_location)
        self._access.check(key, [str(document["location"])])
        return document

    def _check_reach(self, document: dict[str, Any], root: str, location: str) -> None:
        """Pass if every manifest and list can be read, as the purge will have to."""
        definition = self._branch.catalog.definition
        allowed = [place for place in (definition.base_location, *definition.allowed_locations) if place]
        storage = ClientStorage(self._access.io)
        for _ in iceberg.reach(document, root, within=location, allowed=allowed, storage=storage):
            pass

    def _ask(self, content_id: UUID, uuid: UUID | None, drop: Dropped, *, reachable_only: bool) -> ObjectId:
        catalog, rows = self._branch.catalog.definition, self._branch.rows
        wish = Wish(
            catalog=catalog.name,
            catalog_id=catalog.id,
            content_id=content_id,
            table_uuid=uuid,
            drops=(drop,),
            reachable_only=reachable_only,
        )
        return ask_for_purge(self._store, wish, realm=rows.realm, realm_key=rows.key)

    def _take_back(self, task: ObjectId) -> None:
        """Best effort: one that stays finds the table where it was. One that is about other branches, too, has to stay."""
        with suppress(HeadwaterError):
            tasks = Tasks(self._store)
            if len(Wish.of(tasks.read(task).value).drops) == 1:
                tasks.cancel(task)
