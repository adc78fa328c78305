"""What people decide through the public API: conflicts, policies, rights, repairs; and the rows of file tables."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import headwater

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_conflict_says_what_both_sides_did(lake: headwater.CatalogClient) -> None:
    dev, main = lake.create_branch("dev"), lake.branch()
    dev.pyiceberg().load_table("sales.orders").append(pa.table({"id": [2, 3], "name": ["bob", "bea"]}, schema=COLUMNS))
    main.pyiceberg().load_table("sales.orders").append(pa.table({"id": [4], "name": ["cid"]}, schema=COLUMNS))

    with pytest.raises(headwater.MergeRefusedError) as refused:
        main.merge("dev")
    [conflict] = refused.value.merge.conflicts
    assert conflict.sides is not None
    into, source = conflict.sides.into, conflict.sides.source
    assert [commit.hash for commit in source.commits] == [dev.hash()]
    assert [commit.hash for commit in into.commits] == [main.hash()]
    assert [snapshot.added_rows for snapshot in source.snapshots] == [2]
    assert [commit.authors for commit in into.commits] == [("ada",)]
    assert ("rows", "1", "2") in into.changes

    done = main.merge("dev", keys={"sales.orders": "FORCE"}, author="eve", properties={"ticket": "7"})
    newest = next(iter(main.log()))
    assert done.applied and (newest.authors, newest.properties) == (("eve",), {"ticket": ("7",)})


def test_policies_are_set_and_unset(lake: headwater.CatalogClient) -> None:
    made = lake.set_policy("snapshots", max_age=timedelta(days=5), min_to_keep=3)
    assert [(rule.branches, rule.max_age, rule.min_to_keep) for rule in made.snapshots] == [("*", timedelta(days=5), 3)]
    assert lake.set_policy("metadata-files", table="sales.orders", keep=7).keep == 7
    assert {(each.kind, each.by) for each in lake.policies()} == {("snapshots", "ada"), ("metadata-files", "ada")}
    assert lake.policy("metadata-files", table="sales.orders").content_id == lake.branch().content("sales.orders").content_id

    with pytest.raises(headwater.RefusedError, match="says nothing of mode"):
        lake.set_policy("snapshots", mode="off")
    with pytest.raises(headwater.RefusedError, match="'rows' is no kind of policy"):
        lake.policy("rows")  # type: ignore[arg-type]
    with pytest.raises(headwater.NotFoundError, match="has no policy file-collection"):
        lake.policy("file-collection")
    assert lake.unset_policy("snapshots") is None
    assert [each.kind for each in lake.policies()] == ["metadata-files"]


def test_rights_are_explained(
    store: headwater.Connection, realm: headwater.RealmClient, lake: headwater.CatalogClient, tmp_path: Path
) -> None:
    realm.create_principal("etl", credentials=tmp_path / "etl.json")
    realm.create_role("readers", "etl")
    lake.create_role("reader", "readers").grant("TABLE_READ_DATA", on="namespace:sales")

    allowed = lake.explain_access("etl", "TABLE_READ_DATA", on="table:sales.orders")
    assert allowed.allowed and allowed.rule is not None and allowed.roles == ("readers",)
    refused = lake.explain_access("etl", "TABLE_DROP", on="table:sales.orders")
    assert not refused.allowed and refused.rule is None and "none of the grants" in refused.why[0]
    assert not realm.explain_access("etl", "CATALOG_CREATE").allowed
    assert "TABLE_READ_DATA" in {privilege.name for privilege in store.privileges()}


def test_sound_store_needs_no_repair(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    assert store.plan_repairs() == []
    with pytest.raises(headwater.RefusedError, match="does not repeat the id of realm 'acme'"):
        store.repair("acme", confirm="yes")
    assert store.repair("acme", confirm="acme") == []


def test_deleted_references_are_listed(lake: headwater.CatalogClient) -> None:
    first = lake.branch().hash()
    lake.create_branch("dev", at=first).delete()
    lake.create_tag("then").delete()

    assert [(each.name, each.hash) for each in lake.deleted_branches()] == [("dev", first)]
    assert [each.name for each in lake.deleted_tags()] == ["then"]
    assert lake.release().name == "lake"


def test_log_is_narrowed(lake: headwater.CatalogClient) -> None:
    lake.branch().pyiceberg().drop_table("sales.orders")

    assert [each.operations[0].action for each in lake.branch().log(under="sales", action="DELETE")] == ["DELETE"]
    oldest, *_ = lake.branch().log(oldest_first=True)
    assert oldest.seq == 1


def test_file_table_is_filled_split_and_compacted(realm: headwater.RealmClient, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(100)), "page": ["p"] * 100})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    visits = realm.create_file_table(
        "visits", location=str(tmp_path / "files"), columns={"id": "long", "page": "string"}, key="id"
    )
    visits.ingest([rows])
    visits.ingest_files(str(tmp_path / "rows.parquet"), request="again")
    visits.ingest_files(str(tmp_path / "rows.parquet"), request="again")

    info = visits.info()
    assert (info.rows, info.files, info.leaves, info.columns) == (200, 2, 1, {"id": "long", "page": "string"})
    assert list(visits.split(leaf_rows=120, dry_run=True)) == ["r"] == list(visits.split(leaf_rows=120))
    told: list[headwater.TaskProgressInfo] = []
    assert visits.compact(strategy="all", progress=told.append)["failed"] == 0
    assert (told[0].done, told[-1].done, told[0].unit) == (0, told[-1].total, "jobs")
    assert set(visits.info().partitions.values()) == {1}
    assert visits.query(low=10, high=12).num_rows == 4
    file = next((tmp_path / "files").rglob("*.parquet"))
    assert visits.explain(file.name).state in ("referenced", "unreferenced")
    assert visits.export(tmp_path / "references.jsonl") == visits.info().references
    with pytest.raises(headwater.RefusedError, match="ends neither in"):
        visits.export(tmp_path / "references.csv")
    with pytest.raises(headwater.RefusedError, match="'none' is no strategy"):
        visits.compact(strategy="none")  # type: ignore[arg-type]


def test_file_table_without_its_key_is_refused(realm: headwater.RealmClient, tmp_path: Path) -> None:
    with pytest.raises(headwater.RefusedError, match="there is no column 'id' for the key"):
        realm.create_file_table("visits", location=str(tmp_path / "files"), columns={"page": "string"}, key="id")
    assert realm.file_tables() == []


def test_runs_are_reported(store: headwater.Connection, realm: headwater.RealmClient, tmp_path: Path) -> None:
    realm.collect()

    assert store.report_runs(tmp_path / "runs.html") == 1
    assert "acme" in (tmp_path / "runs.html").read_text(encoding="utf-8")
    with pytest.raises(headwater.RefusedError, match="'DONE' is no state of a task"):
        store.tasks(state="DONE")


def test_views_of_a_store_in_memory_are_refused() -> None:
    with (
        headwater.connect("memory://", create=True) as opened,
        pytest.raises(headwater.RefusedError, match="in memory"),
    ):
        opened.make_spark_views(None)
