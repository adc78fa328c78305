"""Who is named as the author of what a command commits."""

from __future__ import annotations

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, CommitMeta, ContentKey, Delete, IcebergTable, Put
from headwater.realms import RealmRegistry
from headwater.store import id_text

ORDERS = ContentKey.of("orders")
Command = tuple[str, ...]


@pytest.fixture
def lake(store: Store, catalog: str) -> Catalog:
    return Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")


@pytest.fixture
def merge(lake: Catalog) -> Command:
    lake.create_branch("dev")
    lake.commit("dev", [Put(ORDERS, IcebergTable(metadata_location="s3://lake/orders/metadata/1.json"))])
    return ("catalog", "merge", "acme/lake", "dev")


@pytest.fixture
def restoration(lake: Catalog) -> Command:
    done = lake.commit(None, [Put(ORDERS, IcebergTable(metadata_location="s3://lake/orders/metadata/1.json"))])
    lake.commit(None, [Delete(ORDERS)])
    assert done.commit_id is not None
    return ("realm", "restore", "acme/lake@main", "--to", id_text(done.commit_id), "--confirm", "acme")


@pytest.fixture(params=["merge", "restoration"])
def command(request: pytest.FixtureRequest) -> Command:
    found: Command = request.getfixturevalue(request.param)
    return found


def test_user_is_the_author(headwater: CommandLine, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")

    headwater.ok(*command)

    assert headwater.data("catalog", "log", "acme/lake")[0]["authors"] == ["grace"]


def test_another_author_can_be_named(headwater: CommandLine, command: Command) -> None:
    headwater.ok(*command, "--author", "ada")

    assert headwater.data("catalog", "log", "acme/lake")[0]["authors"] == ["ada"]


def test_log_shows_the_committer(headwater: CommandLine, lake: Catalog) -> None:
    table = IcebergTable(metadata_location="s3://lake/orders/metadata/1.json")
    lake.commit(None, [Put(ORDERS, table)], meta=CommitMeta(authors=("ann",), committer="svc-etl"))
    lake.commit(None, [Delete(ORDERS)])

    assert [entry["committer"] for entry in headwater.data("catalog", "log", "acme/lake")] == ["", "svc-etl"]


def test_texts_name_the_committer_before_the_author_who_is_claimed(headwater: CommandLine, lake: Catalog) -> None:
    table = IcebergTable(metadata_location="s3://lake/orders/metadata/1.json")
    lake.commit(None, [Put(ORDERS, table)])
    lake.create_branch("dev")
    lake.commit("dev", [Delete(ORDERS)], meta=CommitMeta(authors=("root",), committer="mallory"))
    log = headwater.ok("catalog", "log", "acme/lake@dev").splitlines()
    history = headwater.ok("catalog", "history", "acme/lake@dev", "orders").splitlines()

    for lines in (log, history):
        assert lines[0].index("COMMITTER") < lines[0].index("AUTHORS")
        assert lines[1].index("mallory") < lines[1].index("root")
    assert "mallory, author root" in headwater.ok("catalog", "diff", "acme/lake", "main", "dev")
