"""The public API as its users have it: from ``headwater`` alone, on real databases, with values that people can read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headwater

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def realm(store: headwater.Connection, tmp_path: Path) -> headwater.RealmClient:
    return store.create_realm("acme", credentials=tmp_path / "root.json", properties={"team": "data"})


@pytest.fixture
def lake(realm: headwater.RealmClient, tmp_path: Path) -> headwater.CatalogClient:
    return realm.create_catalog("lake", base_location=(tmp_path / "lake").as_uri())


@pytest.fixture
def orders(lake: headwater.CatalogClient) -> str:
    """A table on the default branch, with a row; its key."""
    catalog = lake.branch().pyiceberg()
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", COLUMNS).append(pa.table({"id": [1], "name": ["ann"]}, schema=COLUMNS))
    return "sales.orders"


def test_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(headwater.NotFoundError):
        headwater.connect(f"sqlite:///{tmp_path}/missing.db")
    assert list(tmp_path.iterdir()) == []


def test_realm_goes_through_its_life(store: headwater.Connection, realm: headwater.RealmClient) -> None:
    info = realm.info()
    assert (info.id, info.state, info.properties) == ("acme", "ACTIVE", {"team": "data"})
    assert info.created.tzinfo is UTC
    assert [each.id for each in store.realms()] == ["acme"]

    assert realm.deactivate().state == "INACTIVE"
    assert realm.activate().state == "ACTIVE"
    with pytest.raises(headwater.RefusedError, match="confirm='yes' does not repeat the id of realm 'acme'"):
        realm.purge(confirm="yes")
    with pytest.raises(headwater.RefusedError, match="ACTIVE and serves users"):
        realm.purge(confirm="acme")
    with pytest.raises(headwater.RefusedError, match="only a PURGED realm"):
        realm.delete(confirm="acme")
    assert realm.release().state == "ACTIVE"


def test_catalog_is_deleted_and_comes_back(realm: headwater.RealmClient, lake: headwater.CatalogClient) -> None:
    assert lake.info().default_branch == "main"
    with pytest.raises(headwater.RefusedError, match="does not repeat 'acme/lake'"):
        lake.delete(confirm="lake")
    assert lake.delete(confirm="acme/lake").state == "DELETED"
    assert [each.name for each in realm.deleted_catalogs()] == ["lake"]
    assert lake.undelete().name == "lake"
    assert [each.name for each in realm.catalogs()] == ["lake"]


def test_branch_has_what_was_written_through_pyiceberg(lake: headwater.CatalogClient, orders: str) -> None:
    main = lake.branch()
    assert [(each.key, each.type) for each in main.entries()] == [("sales", "NAMESPACE"), ("sales.orders", "ICEBERG_TABLE")]
    assert [each.key for each in main.entries(under="sales", where="entry.contentType == 'ICEBERG_TABLE'")] == [orders]
    assert main.count() == 2
    found = main.content(("sales", "orders"))
    assert found.content_id is not None
    assert main.find(found.content_id)[0].key == orders
    assert len(main.snapshots(orders)) == 1
    newest, *_ = main.log()
    assert newest.authors == ("ada",)
    assert newest.hash == main.hash()
    assert len(newest.hash) == 16
    assert [each.action for each in main.history(orders)] == ["CHANGED", "CREATED"]
    assert list(main.log(since=datetime.now(UTC) + timedelta(hours=1))) == []
    with pytest.raises(headwater.NotFoundError, match=r"no sales.nothing in catalog 'lake' of realm 'acme' at main"):
        main.content("sales.nothing")
    with pytest.raises(headwater.RefusedError, match="has no time zone"):
        main.log(since=datetime(2026, 1, 1))


def test_changes_of_a_branch_are_merged(lake: headwater.CatalogClient, orders: str) -> None:
    dev = lake.create_branch("dev")
    dev.pyiceberg().create_namespace("drafts")
    assert [(each.action, each.key) for each in lake.branch().diff("dev")] == [("ADDED", "drafts")]

    planned = lake.branch().merge("dev", dry_run=True)
    assert not planned.applied
    done = lake.branch().merge("dev", message="drafts are ready")
    assert done.applied
    assert [(each.key, each.outcome) for each in done.keys] == [("drafts", "PUT")]
    assert next(iter(lake.branch().log())).message == "drafts are ready"
    assert dev.delete().name == "dev"
    assert [each.name for each in lake.branches()] == ["main"]
    assert dev.undelete().name == "dev"


def test_conflicts_are_told_and_decided(lake: headwater.CatalogClient, orders: str) -> None:
    dev, main = lake.create_branch("dev"), lake.branch()
    for branch, name in ((dev, "bob"), (main, "cid")):
        branch.pyiceberg().load_table(orders).append(pa.table({"id": [2], "name": [name]}, schema=COLUMNS))

    with pytest.raises(headwater.MergeRefusedError) as refused:
        main.merge("dev")
    assert [(each.key, each.kind) for each in refused.value.merge.conflicts] == [(orders, "VALUE_DIFFERS")]
    with pytest.raises(headwater.RefusedError, match="'theirs' is no mode of a merge: it is one of"):
        main.merge("dev", mode="theirs")

    assert main.merge("dev", keys={orders: "force"}).applied
    assert main.pyiceberg().load_table(orders).scan().to_arrow()["name"].to_pylist() == ["bob", "ann"]


def test_commits_are_transplanted_and_references_moved(lake: headwater.CatalogClient, orders: str) -> None:
    dev, main = lake.create_branch("dev"), lake.branch()
    dev.pyiceberg().create_namespace("one")
    dev.pyiceberg().create_namespace("two")
    tag = lake.create_tag("before")
    commit = next(iter(dev.log(limit=1))).parent
    assert commit is not None

    assert main.transplant("dev", [commit]).applied
    assert [each.key for each in main.entries()] == ["one", "sales", orders]
    assert tag.assign("dev").hash == dev.hash()
    with pytest.raises(headwater.ConflictError):
        tag.assign("main", expected=commit)
    assert lake.ref(f"{dev.hash()}~1").hash() == commit


def test_long_work_is_done_here_and_recorded(
    store: headwater.Connection, realm: headwater.RealmClient, lake: headwater.CatalogClient, orders: str, tmp_path: Path
) -> None:
    seen: list[headwater.TaskProgressInfo] = []
    assert realm.collect(dry_run=True)["deleted"] == 0
    assert realm.collect(progress=seen.append)["realm"] == "acme"

    archive = realm.export(tmp_path / "acme.realm")
    assert archive["realm"] == "acme"
    with pytest.raises(headwater.RefusedError, match="nothing is overwritten"):
        realm.export(tmp_path / "acme.realm")
    assert store.import_realm(tmp_path / "acme.realm", "copy", active=False)["state"] == "INACTIVE"
    assert store.realm("copy").activate().state == "ACTIVE"
    assert store.realm("copy").catalog("lake").branch().count() == 2

    runs = store.runs(realm="acme")
    assert [run.kind for run in runs] == ["export", "gc"]
    assert runs[0].task is not None
    assert store.task(runs[0].task).info().state == "SUCCEEDED"
    assert [task.kind for task in realm.tasks()] == ["export", "gc"]
    with pytest.raises(headwater.RefusedError):
        store.task(runs[0].task).cancel()
    assert store.check() == []
    assert realm.explain(str(lake.branch().hash())) == lake.branch().explain()
    assert lake.branch().explain().why == "head"


def test_earlier_state_is_restored(realm: headwater.RealmClient, lake: headwater.CatalogClient, orders: str) -> None:
    before = lake.branch().hash()
    assert before is not None
    lake.branch().pyiceberg().drop_table(orders)

    assert [step["act"] for step in realm.plan_restore(before, reference="lake/main")] == ["restore"]
    with pytest.raises(headwater.RefusedError, match="nothing was restored"):
        realm.restore(before, reference="lake/main", confirm="lake")
    realm.restore(before, reference="lake/main", confirm="acme")
    assert lake.branch().content(orders).type == "ICEBERG_TABLE"
    assert realm.restore(str(lake.branch().hash()), reference="lake/main", confirm="acme")["notes"] == [
        "nothing is to be restored"
    ]


def test_tables_of_a_folder_are_imported(
    realm: headwater.RealmClient, lake: headwater.CatalogClient, orders: str, tmp_path: Path
) -> None:
    other = realm.create_catalog(
        "copy", base_location=(tmp_path / "other").as_uri(), allowed_locations=[(tmp_path / "lake").as_uri()]
    )

    assert other.import_tables(str(tmp_path / "lake"), dry_run=True)["imported"] == 0
    told = other.import_tables(str(tmp_path / "lake"))

    assert told["surveyed"] == 1


def test_roles_say_who_may_do_what(realm: headwater.RealmClient, lake: headwater.CatalogClient, tmp_path: Path) -> None:
    made = realm.create_principal("etl", credentials=tmp_path / "etl.json")
    assert json.loads((tmp_path / "etl.json").read_text())["clientId"] == made.client_id
    writers = realm.create_role("writers", "etl")
    loader = lake.create_role("loader", "writers").grant("TABLE_WRITE_DATA", on="namespace:sales")

    assert realm.principal("etl").roles == ("writers",)
    assert loader.grants == ("TABLE_WRITE_DATA on namespace:sales",)
    assert loader.assigned_to == ("writers",)
    with pytest.raises(headwater.NotFoundError, match="it has TABLE_WRITE_DATA on namespace:sales"):
        lake.role("loader").revoke("TABLE_DROP", on="namespace:sales")
    assert lake.role("loader").revoke("TABLE_WRITE_DATA", on="namespace:sales").grants == ()
    assert writers.unassign("etl").assigned_to == ()
    assert realm.disable_principal("etl").disabled is not None
    assert realm.enable_principal("etl").disabled is None
    assert realm.rotate_credentials("etl", credentials=tmp_path / "etl2.json").client_id != made.client_id
    assert realm.reset_credentials("etl", credentials=tmp_path / "etl3.json").name == "etl"
    realm.drop_principal("etl")
    assert [each.name for each in realm.principals()] == ["root"]
    lake.role("loader").drop()
    assert [each.name for each in lake.roles()] == ["catalog_admin"]
    assert [each.name for each in realm.roles()] == ["service_admin", "writers"]


def test_lake_is_looked_after(store: headwater.Connection, lake: headwater.CatalogClient, orders: str, tmp_path: Path) -> None:
    assert lake.expire_snapshots(dry_run=True)["snapshots"] == 0
    assert lake.expire_snapshots(older_than=datetime.now(UTC), retain_last=1)["looked"] >= 0
    with pytest.raises(headwater.NotFoundError):
        lake.last_file_report()
    assert lake.report_files()["report"] == 1
    assert lake.last_file_report()["report"] == 1
    assert [each.path for each in lake.unreferenced_files()] == []
    file = lake.branch().content(orders).fields["metadata_location"]
    assert store.explain_file(file)["exists"]
    assert {each.kind for each in lake.branch().effective_policies(orders).values} >= {"snapshots"}
    assert lake.branch().guests() == []
    assert lake.stop_maintenance(why="a look").by == "ada"
    assert [each.why for each in store.maintenance_stops()] == ["a look"]
    assert lake.resume_maintenance()
    assert not lake.resume_maintenance()


MANIFEST = """\
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata: {{name: beta}}
spec: {{realmId: beta}}
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {{name: pond}}
spec: {{realm: beta, name: pond, storage: {{baseLocation: "{lake}"}}}}
"""


def test_manifests_are_previewed_and_applied(store: headwater.Connection, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(MANIFEST.format(lake=(tmp_path / "pond").as_uri()))

    assert store.apply(tmp_path / "m.yaml", dry_run=True)[0].steps[:1] == ("create realm beta",)
    assert [each.id for each in store.realms()] == []
    done = store.apply(tmp_path / "m.yaml", credentials=tmp_path / "credentials")
    assert [each.error for each in done] == ["", ""]
    assert [each.name for each in store.realm("beta").catalogs()] == ["pond"]


def test_password_of_a_store_is_not_shown(tmp_path: Path) -> None:
    from headwater.api.store_session import StoreSession

    with headwater.connect(f"sqlite:///{tmp_path}/s.db", create=True) as opened:
        session = opened._session
        session.store.url = "postgresql://ada:hush@db.example.com/h"
        shown = repr(headwater.Connection(StoreSession(session.store, "ada", print)))
    assert "hush" not in shown
    assert "db.example.com" in shown
