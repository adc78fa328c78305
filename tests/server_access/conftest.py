"""A server that asks who calls: realms ``acme`` and ``other``, each with a catalog ``lake``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_clock import FakeClock
from guarded_server import GuardedServer
from headwater import Settings, open_store


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The folder of signing keys, with one in it."""
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "2026-01").write_text("a first key of the tests, long enough\n")
    return folder


@pytest.fixture
def settings(keys: Path) -> Settings:
    return Settings(server_signing_keys=str(keys))


@pytest.fixture
def server(settings: Settings, tmp_path: Path) -> Iterator[GuardedServer]:
    clock = FakeClock()
    with open_store("memory://", settings=settings, clock=clock) as store:
        made = GuardedServer(store, clock, (tmp_path / "warehouse").as_uri())
        made.make_realm("acme", "lake", "second")
        made.make_realm("other", "lake")
        yield made
        made.application.close()
