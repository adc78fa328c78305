"""A realm with one empty catalog, and tables as a survey finds them."""

from __future__ import annotations

from collections.abc import Callable
from uuid import NAMESPACE_URL, uuid5

import pytest

from headwater.catalogs import CATALOGS, CLAIMS, Catalog, Catalogs, TableClaims
from headwater.iceberg import AcceptedTable, ChoiceRule
from headwater.store import RealmStore

MakeFound = Callable[..., AcceptedTable]


@pytest.fixture
def realm(rows: RealmStore) -> RealmStore:
    for name in (CATALOGS, CLAIMS):
        rows.ensure_reference(name)
    return rows


@pytest.fixture
def claims(realm: RealmStore) -> TableClaims:
    return TableClaims(realm)


@pytest.fixture
def make_catalog(realm: RealmStore) -> Callable[[str], Catalog]:
    def make(name: str) -> Catalog:
        Catalogs(realm).create_catalog(name, base_location="s3://lake/")
        return Catalogs(realm).open_catalog(name)

    return make


@pytest.fixture
def catalog(make_catalog: Callable[[str], Catalog]) -> Catalog:
    return make_catalog("lake")


@pytest.fixture
def make_found() -> MakeFound:
    """A sound table: ``make_found("sales.orders", version=2)`` grew out of version 1."""

    def make(name: str, *, version: int = 1, place: str = "s3://lake/wh", uuid: str | None = "") -> AcceptedTable:
        key = tuple(name.split("."))
        directory = "/".join([place, *key])
        return AcceptedTable(
            directory=directory,
            key=key,
            metadata_location=f"{directory}/metadata/v{version}.metadata.json",
            uuid=str(uuid5(NAMESPACE_URL, directory)) if uuid == "" else uuid,
            format_version=2,
            snapshot_id=version,
            schema_id=0,
            spec_id=0,
            sort_order_id=0,
            log=tuple(f"{directory}/metadata/v{before}.metadata.json" for before in range(1, version)),
            rule=ChoiceRule.HIGHEST_NUMBER,
            evidence=(f"{version} metadata files",),
        )

    return make
