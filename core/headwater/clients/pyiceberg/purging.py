"""Dropping a table for good: its files are deleted by a task, once no kept commit holds it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.typedef import Identifier

from headwater.catalogs import Claim, ContentKey, Delete, IcebergTable, iceberg
from headwater.clients.pyiceberg.access import ClientStorage, FileAccess
from headwater.clients.pyiceberg.committing import Branch, Change
from headwater.clients.pyiceberg.names import key_of, shown
from headwater.clients.pyiceberg.states import State
from headwater.errors import HeadwaterError, RefusedError
from headwater.maintenance import Dropped, Wish, ask_for_purge
from headwater.store import Store
from headwater.tasks import Submitted, Tasks

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
        reached: dict[str, tuple[str, ...]] = {}

        def plan(state: State) -> Change:
            there = state.find(key)
            if not isinstance(there, IcebergTable) or there.id is None:
                raise NoSuchTableError(f"Table does not exist: {shown(key)}")
            try:
                document = self._document(state, key, there)
                location = str(document["location"])
                if there.metadata_location not in reached:
                    reached[there.metadata_location] = self._places(
                        document, there.metadata_location, location, missed=[] if reachable_only else None
                    )
            except RefusedError as fault:
                raise RefusedError(f"{shown(key)} was not dropped: {fault}") from fault
            uuid = None if there.table_uuid is None else UUID(there.table_uuid)
            drop = Dropped(
                branch=self._branch.name,
                key=str(key),
                metadata=there.metadata_location,
                location=location,
                asked=self._store.clock.now(),
                reachable_only=reachable_only,
                allowed=reached[there.metadata_location],
                request=uuid4().hex,
            )
            wish = self._wish(there.id, uuid, drop)
            rows = self._branch.rows
            asked = ask_for_purge(self._store, wish, realm=rows.realm, realm_key=rows.key)
            return Change(
                operations=[Delete(key)],
                message=f"drop table {key}, to be purged",
                claim=Claim(self._branch.id, there.id, location, uuid),
                take_back=lambda: self._take_back(wish, asked),
            )

        self._branch.commit(plan, key=key)

    def _document(self, state: State, key: ContentKey, there: IcebergTable) -> dict[str, Any]:
        text = self._access.document(state, key, there)
        document = iceberg.purgeable_document(text, path=there.metadata_location)
        self._access.check(key, [str(document["location"])])
        return document

    def _places(self, document: dict[str, Any], root: str, location: str, *, missed: list[str] | None) -> tuple[str, ...]:
        """Which of the allowed places the table has metadata in, besides its location.

        Every manifest and list is read, as the purge will have to; raises as ``reach`` does.
        """
        allowed, storage = self._branch.catalog.definition.places, ClientStorage(self._access.io)
        reached = iceberg.reach(document, root, within=location, allowed=allowed, storage=storage, missed=missed)
        outside = [file for file, turn in reached if turn != iceberg.FIRST_TURNS[0] and not iceberg.is_within(file, location)]
        return tuple(place for place in allowed if any(iceberg.is_within(file, place) for file in outside))

    def _wish(self, content_id: UUID, uuid: UUID | None, drop: Dropped) -> Wish:
        catalog = self._branch.catalog.definition
        return Wish(catalog=catalog.name, catalog_id=catalog.id, content_id=content_id, table_uuid=uuid, drops=(drop,))

    def _take_back(self, wish: Wish, asked: Submitted) -> None:
        """Cancel the task, unless others have asked for it: before this, or since.

            this client   asks ........................ is beaten   cancels
            another                joins the task, drops the table           (its purge would be gone, and the files stay for ever)

        One that stays finds the table where it was, and ends by itself.
        """
        if asked.created:
            with suppress(HeadwaterError):
                Tasks(self._store).cancel(asked.id, carrying=wish.arguments())
