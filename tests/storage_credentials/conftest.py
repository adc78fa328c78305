"""A lake whose server gives clients credentials that hold for an hour."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vending_lake import VendingLake, vending_lake


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VendingLake]:
    with vending_lake(tmp_path_factory.mktemp("vending"), session="1h") as made:
        yield made
