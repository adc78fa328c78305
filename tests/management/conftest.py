"""Offices: one where everybody proves who calls, and one where nobody has to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from managed_office import ManagedOffice


@pytest.fixture
def office(tmp_path: Path) -> Iterator[ManagedOffice]:
    opened = ManagedOffice.opened(tmp_path / "keys")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def calm_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedOffice]:
    """For requests that are refused: nothing in it changes, so that they share it."""
    opened = ManagedOffice.opened(tmp_path_factory.mktemp("office") / "keys")
    yield opened
    opened.close()


@pytest.fixture
def root(office: ManagedOffice) -> str:
    """The token of acme's root."""
    return office.token("root")


@pytest.fixture
def open_office(tmp_path: Path) -> Iterator[ManagedOffice]:
    """It asks nobody who calls."""
    opened = ManagedOffice.opened(tmp_path / "keys", asks_who_calls=False)
    yield opened
    opened.close()
