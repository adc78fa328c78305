"""The way from names on a command line to open catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwater.catalogs import Catalog, Catalogs
from headwater.cli.session import Session
from headwater.realms import Realms

__all__ = ["opened_catalog", "opened_catalogs"]


@contextmanager
def opened_catalogs(session: Session, realm_id: str) -> Iterator[Catalogs]:
    """The catalogs of a realm, through a user's handle: everything can be read, and written while the realm is ACTIVE."""
    with session.open_store() as store:
        yield Catalogs(Realms(store).open(realm_id))


@contextmanager
def opened_catalog(session: Session, realm_id: str, name: str) -> Iterator[Catalog]:
    """One catalog of a realm, likewise."""
    with opened_catalogs(session, realm_id) as catalogs:
        yield catalogs.open(name)
