"""What the objects of one connection share: the opened store, and who its user is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from headwater.catalogs import Catalog, Catalogs
from headwater.realms import RealmRegistry
from headwater.store import ReadableRows, RealmStore, Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreSession:
    """The store that a connection has opened.

    author        noted in commits that a person asks for
    warn          takes a sentence that the user should know
    url           by which other processes open the store: it may hold a password; empty: as ``store.url``
    """

    store: Store
    author: str
    warn: Callable[[str], None]
    url: str = field(default="", repr=False)

    @property
    def realms(self) -> RealmRegistry:
        return RealmRegistry(self.store)

    def open_rows(self, realm_id: str) -> RealmStore:
        """A realm's rows for a user: they can be read, and written while the realm is ACTIVE; raises NotFoundError."""
        return self.realms.open_realm(realm_id)

    def catalogs(self, realm_id: str) -> Catalogs:
        return Catalogs(self.open_rows(realm_id))

    def catalog(self, realm_id: str, name: str) -> Catalog:
        """A catalog of a realm; raises NotFoundError where one of both is not there."""
        return Catalog.open(self.open_rows(realm_id), name)

    def told(self, listed: ReadableRows[T]) -> ReadableRows[T]:
        """The readable entries of a list; warns of each that could not be read."""
        for row in listed.unreadable:
            self.warn(str(row))
        return listed
