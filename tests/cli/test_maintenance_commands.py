"""``headwater maintenance`` and ``headwater table``: what is stopped, and what is at home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import CommandLine

from file_writing_client import FileWritingClient
from headwater import Store
from headwater.catalogs import ContentKey
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable


@pytest.fixture
def lake(headwater: CommandLine, realm: str, tmp_path: Path) -> str:
    headwater.ok("catalog", "create", f"{realm}/lake", "--base-location", (tmp_path / "lake").as_uri())
    return f"{realm}/lake"


@pytest.fixture
def register(store: Store, lake: str, tmp_path: Path) -> Callable[[str], LoadedTable]:
    client, opened = FileWritingClient(tmp_path / "lake"), IcebergCatalog.open(store, *lake.split("/"))
    opened.namespaces.create(ContentKey.of("sales"), {})

    def make(name: str) -> LoadedTable:
        return opened.tables.register(ContentKey.of("sales", name), client.write(client.new_document(name)))

    return make


def test_maintenance_is_stopped_shown_and_resumed(headwater: CommandLine, lake: str) -> None:
    headwater.ok("maintenance", "stop", lake, "--reason", "an audit", "--author", "ann")
    headwater.ok("maintenance", "stop")

    assert "is stopped already" in headwater("maintenance", "stop", lake).output
    stops = headwater.data("maintenance", "status")
    assert [stop["scope"] for stop in stops] == ["the store", f"catalog {lake}"]
    assert (stops[1]["by"], stops[1]["why"]) == ("ann", "an audit")

    left = headwater("maintenance", "resume", lake)

    assert f"maintenance of catalog {lake} is resumed" in left.output
    assert "the store" in left.output
    assert "was not stopped" in headwater("maintenance", "resume", lake).output


def test_catalog_is_created_with_places_for_files(headwater: CommandLine, realm: str) -> None:
    create = ("catalog", "create", f"{realm}/lake", "--base-location", "s3://lake/")

    assert headwater(*create, "--file-place", "s3://other/").exit_code == 5
    assert headwater.data(*create, "--file-place", "s3://lake/hashed/")["filePlaces"] == ["s3://lake/hashed/"]


def test_place_of_a_dropped_table_is_released(
    headwater: CommandLine, store: Store, lake: str, register: Callable[[str], LoadedTable]
) -> None:
    realm, place = lake.partition("/")[0], register("orders").document["location"]
    held = headwater("table", "release", realm, place)
    assert held.exit_code == 5 and f"the branch 'main' of {lake} holds: drop it there first" in held.stderr

    IcebergCatalog.open(store, *lake.split("/")).tables.drop(ContentKey.of("sales", "orders"))

    assert headwater.data("table", "release", realm, place) == [{"location": place}]
    assert headwater("table", "release", realm, place).exit_code == 3


def test_release_reports_what_it_released_before_it_was_refused(
    headwater: CommandLine, store: Store, lake: str, register: Callable[[str], LoadedTable]
) -> None:
    realm, (gone, kept) = lake.partition("/")[0], (register(name).document["location"] for name in ("orders", "lines"))
    IcebergCatalog.open(store, *lake.split("/")).tables.drop(ContentKey.of("sales", "orders"))
    result = headwater("table", "release", realm, gone, kept)

    assert result.exit_code == 5 and "1 place of realm acme released" in result.stdout
    assert f"{kept} belongs to a table that the branch 'main'" in result.stderr


def test_guests_are_listed_and_adopted(headwater: CommandLine, lake: str, register: Callable[[str], object]) -> None:
    register("orders")
    register("lines")

    plan = headwater("table", "adopt", lake, "--all")
    assert plan.exit_code == 5 and "these 2 are guests" in plan.stderr and "sales.orders" in plan.stdout

    headwater.ok("table", "adopt", lake, "sales.orders", "--confirm", lake)

    listed = headwater.data("table", "guests", lake, "--with-homes")
    assert {each["key"]: each["home"] for each in listed} == {"sales.lines": False, "sales.orders": True}
    assert "has no guests there" in headwater("table", "adopt", lake, "sales.orders").output
    assert headwater("table", "adopt", lake).exit_code == 2
