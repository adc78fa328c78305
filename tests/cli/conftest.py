"""Fixtures: the command line on a store of its own, and what stands in that store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater import Settings, Store, open_store
from headwater.realms import client_credentials as credentials

FAST = {"HEADWATER_UNSAFE_SHORT_GRACES": "true", "HEADWATER_PURGE_HOLD": "1ms"}


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly every test makes a realm, with credentials: what a thief of their hash has to pay is no promise of the command line."""
    monkeypatch.setattr(credentials, "_COST", 2)


@pytest.fixture(autouse=True)
def context_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the contexts of a test are: nowhere yet. Those of whoever runs the tests do not count."""
    file = tmp_path / "config" / "contexts.yaml"
    monkeypatch.setenv("HEADWATER_CONTEXT_FILE", str(file))
    return file


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def headwater(url: str) -> CommandLine:
    """Shipped settings."""
    return CommandLine(url, {})


@pytest.fixture
def hasty(url: str) -> CommandLine:
    """The same store, with a hold that is over at once."""
    return CommandLine(url, FAST)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store behind the command line, for looking at it and for what no command does."""
    with open_store(url, settings=Settings(unsafe_short_graces=True, purge_hold_seconds=0.001)) as opened:
        yield opened


@pytest.fixture
def make_realm(headwater: CommandLine, tmp_path: Path) -> Callable[[str], str]:
    def make(realm_id: str) -> str:
        headwater.ok("realm", "create", realm_id, "--credentials", tmp_path / f"{realm_id}.json")
        return realm_id

    return make


@pytest.fixture
def realm(make_realm: Callable[[str], str]) -> str:
    """The id of an ACTIVE realm."""
    return make_realm("acme")


@pytest.fixture
def catalog(headwater: CommandLine, realm: str) -> str:
    """The address of an empty catalog."""
    headwater.ok("catalog", "create", f"{realm}/lake", "--base-location", "s3://lake/")
    return f"{realm}/lake"
