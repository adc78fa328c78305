"""What the public API makes of what callers pass: one text for several, times without a zone, words and files that cannot be meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater.api.log_iterator import iter_pages

COLUMNS = pa.schema([("id", pa.int64())])


def test_restoration_takes_times_with_a_zone_to_the_microsecond(
    realm: headwater.RealmClient, lake: headwater.CatalogClient
) -> None:
    with pytest.raises(headwater.RefusedError, match="has no time zone"):
        realm.plan_restore(datetime(2026, 1, 1), reference="lake/main")
    with pytest.raises(headwater.RefusedError, match="has no time zone"):
        realm.restore(datetime(2026, 1, 1), reference="lake/main", confirm="acme")
    for zone in (UTC, timezone(timedelta(hours=2))):
        moment = datetime(2026, 1, 1, 12, tzinfo=zone)
        assert realm._restoration(moment, "lake/main", prune=False).aim.time == round(moment.timestamp()) * 1_000_000


def test_restoration_that_changes_nothing_has_a_task_all_the_same(
    store: headwater.Connection, realm: headwater.RealmClient, lake: headwater.CatalogClient
) -> None:
    left = realm.restore(str(lake.branch().hash()), reference="lake/main", confirm="acme", detach=True)

    assert store.task(left["task"]).run().state == "SUCCEEDED"


def test_text_by_itself_is_not_its_letters(realm: headwater.RealmClient, lake: headwater.CatalogClient, tmp_path: Path) -> None:
    places = realm.create_catalog("b", base_location=(tmp_path / "b").as_uri(), allowed_locations=(tmp_path / "lake").as_uri())
    told = places.import_tables(str(tmp_path / "lake"), include="sales.*", exclude="sales.v*", tolerate="Invalid", dry_run=True)
    assert told["surveyed"] == 1
    assert lake.expire_snapshots(tables="sales.orders", older_than=datetime.now(UTC), dry_run=True)["looked"] == 1
    with pytest.raises(headwater.RefusedError, match="'stray' is no code of a file"):
        lake.unreferenced_files(codes="stray")
    realm.create_role("readers")
    assert realm.create_principal("etl", credentials=tmp_path / "etl.json", roles="readers").roles == ("readers",)
    assert not realm.explain_access("etl", "CATALOG_CREATE", roles="readers").allowed
    visits = realm.create_file_table(
        "visits",
        location=str(tmp_path / "files"),
        columns={"id": "string", "page": "string"},
        key="id",
        sort="page",
        split_points="mm",
    )
    assert (visits.info().sort, visits.info().leaves) == (("page",), 2)
    assert visits.query(columns="page").column_names == ["page"]

    dev = lake.create_branch("dev")
    dev.pyiceberg().create_namespace("other")
    lake.branch().transplant("dev", str(dev.hash()), signed_off_by="eve", message="one")
    assert next(lake.branch().log()).signed_off_by == ("eve",)


@pytest.mark.parametrize("said", [{"mode": "twice"}, {"verify": "all"}, {"gone": "keep"}])
@pytest.mark.parametrize("dry_run", [True, False])
def test_import_in_a_way_that_there_is_not_is_refused(
    store: headwater.Connection, lake: headwater.CatalogClient, said: dict[str, str], dry_run: bool
) -> None:
    with pytest.raises(headwater.RefusedError, match="it is one of"):
        lake.import_tables("lake", dry_run=dry_run, **said)  # type: ignore[arg-type]
    assert list(store.tasks()) == []


def test_import_whose_report_cannot_be_written_is_not_begun(
    store: headwater.Connection, lake: headwater.CatalogClient, tmp_path: Path
) -> None:
    with pytest.raises(headwater.RefusedError, match="there is no folder"):
        lake.import_tables(str(tmp_path / "lake"), report=tmp_path / "none" / "now.html")
    (tmp_path / "now.html").mkdir()
    with pytest.raises(headwater.RefusedError, match="it is a folder"):
        lake.import_tables(str(tmp_path / "lake"), report=tmp_path / "now.html")
    assert list(store.tasks()) == []


def test_values_that_cannot_be_meant_are_refused(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    with pytest.raises(headwater.RefusedError, match="'orders' is not a content id"):
        lake.branch().find("orders")
    with pytest.raises(headwater.RefusedError, match="retain_last must be a whole number from 1"):
        lake.expire_snapshots(retain_last=0)
    with pytest.raises(headwater.RefusedError, match="before the year 1"):
        store.tasks(older_than=timedelta(days=999_999))
    with pytest.raises(headwater.RefusedError, match="batch must be a whole number from 2"):
        store.realm("acme").file_table("visits").compact(batch=0)
    for act in (store.apply, store.compare, store.delete_described):
        with pytest.raises(headwater.RefusedError, match="name one file or folder"):
            act()


def test_filters_by_what_there_is_not_are_refused(
    store: headwater.Connection, lake: headwater.CatalogClient, tmp_path: Path
) -> None:
    for look in (store.tasks, store.runs, lambda **only: store.report_runs(tmp_path / "runs.html", **only)):
        with pytest.raises(headwater.RefusedError, match="'collect' is not a kind of task: name one of gc"):
            look(kind="collect")
        with pytest.raises(headwater.NotFoundError, match="'acne'"):
            look(realm="acne")
        look(realm="acme")
        look(realm="::system::")


def test_realm_of_the_store_is_collected(store: headwater.Connection, realm: headwater.RealmClient) -> None:
    system = store.realm("::system::")
    assert system.collect(dry_run=True)["scanned"] > 0 and system.collect()["dryRun"] is False
    assert [task.realm for task in system.tasks()] == ["::system::"]
    for refused in (system.info, system.catalogs, system.principals, lambda: system.delete(confirm="::system::")):
        with pytest.raises(headwater.HeadwaterError, match="::system::"):
            refused()


def test_document_of_what_is_no_table_is_refused(lake: headwater.CatalogClient) -> None:
    main = lake.branch()
    assert main.metadata("sales.orders") is not None
    for read in (main.metadata, main.snapshots):
        with pytest.raises(headwater.NotFoundError, match=r"there is no n\.zz"):
            read("n.zz")
        with pytest.raises(
            headwater.RefusedError, match=r"sales in catalog 'lake' .* is no Iceberg table.* but of type NAMESPACE"
        ):
            read("sales")


def test_listings_are_refused_by_the_call(lake: headwater.CatalogClient) -> None:
    main = lake.branch()
    with pytest.raises(headwater.RefusedError):
        main.entries(where="entry.")
    with pytest.raises(headwater.NotFoundError):
        lake.branch("none").entries()
    with pytest.raises(headwater.NotFoundError):
        main.diff("none")


def test_pages_are_read_as_they_are_needed() -> None:
    read = []

    def read_page(token: str | None) -> tuple[list[int], str | None]:
        read.append(token)
        return [len(read)], None if len(read) == 3 else str(len(read))

    values = iter_pages(read_page)
    assert read == [None]
    assert next(values) == 1 and read == [None]
    assert (list(values), read) == ([2, 3], [None, "1", "2"])


def test_keys_of_a_merge_may_be_tuples(lake: headwater.CatalogClient) -> None:
    lake.create_branch("dev").pyiceberg().drop_table("sales.orders")
    lake.branch().merge("dev", keys={("sales", "orders"): "FORCE"})
    assert [entry.key for entry in lake.branch().entries()] == ["sales"]
