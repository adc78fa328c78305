"""The definitions of Realm and Catalog, as the API server applies them."""

from __future__ import annotations

import pytest
from defined_kinds import Kind, read_kind


@pytest.fixture(scope="session")
def realms() -> Kind:
    return read_kind("Realm")


@pytest.fixture(scope="session")
def catalogs() -> Kind:
    return read_kind("Catalog")
