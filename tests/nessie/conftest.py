"""Nessie's API over stores in memory: one that everybody may use, and one whose callers have to prove who they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nessie_caller import NessieCaller

from asgi_client import AsgiClient
from fake_clock import FakeClock
from guarded_server import GuardedServer
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog, Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater_server.call import ServedStore
from headwater_server.nessie import nessie_table
from headwater_server.server_application import ServerApplication


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Store]:
    with open_store("memory://", clock=clock) as opened:
        yield opened


@pytest.fixture
def lake(store: Store, tmp_path: Path) -> Catalog:
    """The catalog ``acme/lake``, open to everybody."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    catalogs = Catalogs(realms.open_realm("acme"))
    catalogs.create_catalog("lake", base_location=(tmp_path / "warehouse").as_uri())
    return catalogs.open_catalog("lake")


@pytest.fixture
def nessie(store: Store, lake: Catalog, clock: FakeClock) -> Iterator[NessieCaller]:
    """A client of the lake, of version 2; ``nessie.v1`` is one of version 1."""
    application = ServerApplication(ServedStore(store), [nessie_table()], settings=store.settings, clock=clock, version="1.2.3")
    yield NessieCaller(AsgiClient(application))
    application.close()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedServer]:
    """A server whose callers prove who they are, with the catalog ``acme/lake``."""
    keys, clock = tmp_path / "keys", FakeClock()
    keys.mkdir()
    (keys / "2026-01").write_text("a first key of the tests, long enough\n")
    with open_store("memory://", settings=Settings(server_signing_keys=str(keys)), clock=clock) as store:
        made = GuardedServer(store, clock, (tmp_path / "warehouse").as_uri(), protocols=[nessie_table()])
        made.make_realm("acme", "lake")
        yield made
        made.application.close()


@pytest.fixture
def caller_of(guarded: GuardedServer) -> Callable[[str], NessieCaller]:
    """Makes a client of the guarded lake for a principal."""

    def make(name: str) -> NessieCaller:
        return NessieCaller(guarded.client).with_headers(**guarded.guest(name).headers)

    return make
