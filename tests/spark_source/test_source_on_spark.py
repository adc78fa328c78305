"""The tables in Spark itself, on each database that other processes can open. Needs Java, as Spark does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType
from source_queries import make_realm, request, rows_of

import headwater
from backend_fixtures import STORES
from headwater import Settings, open_store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Namespace, Put
from headwater.realms import RealmRegistry
from headwater_workers.pipeline import find_engine
from headwater_workers.pipeline.source import TABLES, HeadwaterSource, NarrowingSource, register_data_source
from headwater_workers.pipeline.source.data_source import NarrowingReader, keeps_conditions_apart
from headwater_workers.pipeline.spark_session import SparkOptions, session

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]
FOLDER = Path(__file__).parents[2]
CONDITIONS = (
    "ref in ('dev', 'nowhere') and key like 'sales.%'",
    "key >= 'sales.a' and key < 'sales.b'",
    "namespace = 'sales' and type <> 'NAMESPACE'",
    "catalog <=> 'lake' and not (ref = 'main')",
    "catalog = 'other'",
)
ORDERS = ContentKey.of("sales", "orders")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("warehouse")
    with session("headwater tables", SparkOptions("local[2]", {"spark.sql.warehouse.dir": str(folder)})) as made:
        register_data_source(made)
        yield made


def filled(url: str) -> str:
    """A realm with a catalog, whose branches main and dev differ by one table."""
    with open_store(url) as store:
        make_realm(store, "acme")
        catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))
        catalogs.create_catalog("lake", base_location="s3://lake/")
        lake = catalogs.open_catalog("lake")
        tables = [
            Put(ContentKey.of("sales", name), IcebergTable(metadata_location=f"s3://{name}")) for name in ("orders", "a.b")
        ]
        lake.commit("main", [Put(ContentKey.of("sales"), Namespace()), *tables], authors=["ann"])
        lake.create_branch("dev")
        lake.commit("dev", [Delete(ORDERS)], message="not ours", authors=["bob"])
    return url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store that tests only read."""
    return filled(f"sqlite:///{tmp_path_factory.mktemp('spark')}/store.db")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[tuple[str, Catalog]]:
    """A store of the test's own, and its catalog."""
    url = filled(f"sqlite:///{tmp_path}/store.db")
    with open_store(url) as store:
        yield url, Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")


def table(spark: Any, url: str, name: str, **options: str) -> Any:
    return spark.read.format("headwater").options(url=url, **options).load(name)


def plain(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row.asDict(recursive=True)
    return {name: sorted(value.items()) if isinstance(value, dict) else value for name, value in found.items()}


@pytest.mark.parametrize("database", [name for name in STORES if name != "memory"])
def test_spark_has_the_rows_that_the_process_has(spark: Any, request_url: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    with open_store(request_url) as store:
        for name in TABLES if request_url.startswith("sqlite") else ("objects", "entries"):  # those that databases divide
            columns = [column.name for column in TABLES[name].columns if column.type != "timestamp"]
            found = [plain(row) for row in table(spark, request_url, name, columns=",".join(columns)).collect()]

            assert sorted(found, key=str) == sorted(rows_of(store, request(name, columns=columns)), key=str)


@pytest.fixture
def request_url(request: pytest.FixtureRequest, database: str) -> str:
    return filled(STORES[database](request))


def test_condition_finds_what_it_would_find_without_being_pushed_down(spark: Any, url: str) -> None:
    entries = table(spark, url, "entries")
    everything = spark.createDataFrame(entries.collect(), entries.schema)

    for condition in CONDITIONS:
        found = table(spark, url, "entries", pushdown="true").where(condition).collect()
        assert sorted(found) == sorted(everything.where(condition).collect()), condition


def test_view_that_is_read_twice_gives_each_its_own_rows(spark: Any, url: str) -> None:
    entries = table(spark, url, "entries")
    main, dev = entries.where("ref = 'main'"), entries.where("ref = 'dev'")

    assert {row.ref for row in main.union(dev).collect()} == {"main", "dev"}
    assert entries.count() == main.count() + dev.count()


@pytest.mark.parametrize(("field", "are_kept_apart"), [("readInfo", True), ("ds", False)])
def test_spark_keeps_conditions_apart_that_has_them_with_the_scan(field: str, are_kept_apart: bool) -> None:
    scan = SimpleNamespace(getDeclaredFields=lambda: [SimpleNamespace(getName=lambda: field)])
    java = SimpleNamespace(lang=SimpleNamespace(Class=SimpleNamespace(forName=lambda name: scan)))
    spark: Any = SimpleNamespace(_jvm=SimpleNamespace(java=java))

    assert keeps_conditions_apart(spark) is are_kept_apart


def test_conditions_that_spark_keeps_apart_are_all_handed_on(url: str) -> None:
    found = {}
    for kind in (HeadwaterSource, NarrowingSource):
        source = kind({"url": url, "table": "entries"})
        source.schema()
        found[kind] = isinstance(source.reader(StructType()), NarrowingReader)

    assert found == {HeadwaterSource: False, NarrowingSource: True}


def test_options_leave_what_is_asked_for(spark: Any, url: str) -> None:
    found = table(spark, url, "entries", ref="dev", prefix="sales.").collect()
    expected = table(spark, url, "entries").where("ref = 'dev' AND key LIKE 'sales.%'").collect()

    assert sorted(found) == sorted(expected) != []


def test_plan_shows_what_was_pushed_down(spark: Any, url: str) -> None:
    found = table(spark, url, "entries", pushdown="true").where(
        "catalog = 'lake' and key like 'sales.%' and type = 'NAMESPACE'"
    )

    plan = found._jdf.queryExecution().explainString(
        spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    )
    assert "PushedFilters: [EqualTo(catalog,lake), StringStartsWith(key,sales.)]" in plan


def test_author_of_a_change_is_a_query_on_a_view(spark: Any, url: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW changes USING headwater OPTIONS (url '{url}', table 'changes', realm 'acme')")

    found = spark.sql(
        "SELECT authors[0], action, message, time IS NULL FROM changes WHERE key = 'sales.orders' AND ref = 'dev'"
    )
    assert sorted(map(tuple, found.collect())) == [("ann", "PUT", "", False), ("bob", "DELETE", "not ours", False)]


def test_table_of_sparks_own_is_refused_for_a_view(spark: Any, url: str) -> None:
    with pytest.raises(PySparkException, match="make a view of it instead, by CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE kept USING headwater OPTIONS (table 'entries', url '{url}')")


def test_every_query_of_the_page_fits_the_tables(spark: Any, url: str) -> None:
    with headwater.connect(url) as opened:
        made = opened.make_spark_views(spark, realm="acme")
    page = (FOLDER / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")
    queries = [text for text in re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if text.startswith("SELECT")]

    assert made == tuple(TABLES)
    frames = [spark.sql(query) for query in queries]  # which looks every name and type up
    assert len(frames) == 8
    assert len(frames[0].collect()) == 3


def test_times_are_those_of_the_log(spark: Any, lake: tuple[str, Catalog]) -> None:
    url, catalog = lake
    newest = next(catalog.log("dev"))

    commits = table(spark, url, "commits").where("ref = 'dev'").orderBy("seq")
    assert commits.selectExpr("unix_micros(time)").collect()[-1][0] == newest.time


def test_data_frame_stands_still_until_it_is_made_again(spark: Any, lake: tuple[str, Catalog]) -> None:
    url, catalog = lake
    before = table(spark, url, "entries").where("ref = 'main'")
    catalog.commit("main", [Delete(ORDERS)])

    assert (before.count(), table(spark, url, "entries", at="main").count()) == (3, 2)


def test_states_of_two_times_are_compared_in_one_query(spark: Any, url: str) -> None:
    main, dev = table(spark, url, "entries", at="main"), table(spark, url, "entries", at="dev")

    assert [row.key for row in main.join(dev, "key", "left_anti").collect()] == ["sales.orders"]


def test_schema_of_ones_own_is_refused(spark: Any, url: str) -> None:
    with pytest.raises(PySparkException, match="choose some by the option columns"):
        spark.read.format("headwater").schema("key string").options(url=url).load("entries").collect()


def test_fault_is_a_sentence_without_the_way_to_it(spark: Any, url: str) -> None:
    with pytest.raises(PySparkException, match="there is no realm 'nowhere'") as raised:
        table(spark, url, "entries", realm="nowhere")

    assert str(raised.value).count("File ") == 1


def test_fault_while_reading_is_a_sentence_too(spark: Any, lake: tuple[str, Catalog]) -> None:
    url, catalog = lake
    contents = table(spark, url, "contents")
    lost = catalog.entries().entries[2].value.object_id
    rows = catalog._rows
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == lost])

    with pytest.raises(
        PySparkException, match=r"content sales.orders of catalog 'lake' in realm 'acme': object \w+ is not there"
    ):
        contents.where("key = 'sales.orders'").collect()


def test_password_is_in_no_plan_and_in_no_error(spark: Any) -> None:
    secret = "postgresql://ann:hunter2@127.0.0.1:1/lake?connect_timeout=1s"
    statement = f"CREATE TEMPORARY VIEW secret USING headwater OPTIONS (url '{secret}', table 'entries')"

    plan = spark.sql(f"EXPLAIN EXTENDED {statement}").collect()[0][0]
    with pytest.raises(PySparkException) as raised:
        spark.sql(statement)
    assert "hunter2" not in plan
    assert "hunter2" not in str(raised.value)


def test_memory_is_refused_with_a_sentence(spark: Any) -> None:
    with pytest.raises(PySparkException, match="memory:// lives in one process"):
        table(spark, "memory://", "entries")
