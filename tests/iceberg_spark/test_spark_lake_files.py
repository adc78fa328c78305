"""What Spark with Iceberg's engine leaves of random tables, reported: judged by the oracle, and beside Iceberg's `remove_orphan_files`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from served_lake import headwater_server
from spark_sql import SparkSql

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalogs, find_homes
from headwater.expiry import AskedRules, CatalogExpiry, ExpiryWish
from headwater.gc import collect_realm
from headwater.iceberg.table_storage import TableStorage
from headwater.lake_files import report_files
from headwater.realms import HistoryRetention, RealmRegistry, bootstrap, hash_credentials, new_credentials
from lake_oracle.lake_model import LakeModel, RefKey, RefLine
from lake_oracle.lake_verdict import LakeVerdict, LakeView, RunOutcome, is_known_kind
from lake_oracle.live_files import KeptVersion, read_document, real_path

pytestmark = pytest.mark.long

SEED = int(os.environ.get("HEADWATER_SEED", "0")) or int.from_bytes(os.urandom(3), "big")
STEPS = int(os.environ.get("HEADWATER_STEPS", "5"))
MAIN = RefKey("acme", "lake", "main")
DAY = 86_400
FORMATS = {
    "cow": "'format-version' = '2'",
    "mor": "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',"
    " 'write.merge.mode' = 'merge-on-read'",
    "vectors": "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'",
    "hashed": "'format-version' = '2', 'write.object-storage.enabled' = 'true', 'write.metadata.previous-versions-max' = '2'",
}
CITIES = ("Bern", "a b", "100%", "Zürich", "A/B")


@dataclass
class SparkLake:
    """A lake that Spark writes through a server of ours, with our own books, and a clock that is ahead of everything that is written."""

    sql: SparkSql
    store: Store
    folder: Path
    clock: FakeClock
    chance: random.Random
    model: LakeModel = field(default_factory=LakeModel)
    verdict: LakeVerdict = field(default_factory=LakeVerdict)
    history: list[str] = field(default_factory=list)
    known: set[Path] = field(default_factory=set)
    outcome: RunOutcome = field(default_factory=lambda: RunOutcome({}, {}))
    faults: list[str] = field(default_factory=list)

    def do(self, statement: str, name: str) -> None:
        """Run a statement, and note the versions that it has committed by the files that it has left."""
        self.history.append(statement)
        self.sql(statement)
        self.note(name)

    def note(self, name: str) -> None:
        files = {path for path in self.folder.rglob("*.metadata.json") if f"/{name}_" in str(path)} - self.known
        for path in sorted(files, key=lambda path: int(path.name.partition("-")[0])):
            data = path.read_bytes()
            version = KeptVersion(str(read_document(data)["table-uuid"]), f"file://{path}", data)
            self.model.note_table(version.owner, "acme", "lake", is_home=True)
            for reached in self.model.commit(MAIN, {name: version}):
                self.verdict.took(reached.all, reached.places)
        self.known |= files

    def location(self, name: str) -> Path:
        return Path(real_path(self.model.state(MAIN)[name].document["location"]))

    def run(self) -> None:
        """Report, and judge what is said."""
        self.clock.advance(1)
        rows = RealmRegistry(self.store).open_realm("acme")
        read = report_files(self.store, rows, Catalogs(rows).read_catalog("lake"))
        blocked = {real_path(block.location): str(block.code) for block in read.report.blocked}
        self.outcome = RunOutcome({real_path(mark.path): str(mark.code) for mark in read.marks()}, blocked)
        view = LakeView(self.folder, self.model, "acme", "lake", self.clock.now() / 1_000_000, {})
        self.faults += self.verdict.check(view, self.outcome)

    def expire(self) -> None:
        """Expire all snapshots but the last, and let collections delete the history that has them."""
        rows = RealmRegistry(self.store).open_realm("acme")
        definition = Catalogs(rows).read_catalog("lake")
        homes = find_homes(rows, definition.id)
        rules = AskedRules(max_age_ms=0, keep=1)
        wish = ExpiryWish(now=self.clock.now(), rules=rules, is_home=homes.__contains__)
        CatalogExpiry(rows, definition, TableStorage(realm="acme", catalog="lake"), wish).expire()
        for name in FORMATS:
            self.note(name)
        for _ in range(2):
            self.clock.advance(7200)
            collect_realm(self.store, "acme")
            self.model.collected()

    def text(self) -> str:
        return "\n".join([f"HEADWATER_SEED={SEED}", *self.history, *self.faults[:20]])


def insert(lake: SparkLake, name: str, table: str) -> None:
    rows = ", ".join(f"({lake.chance.randrange(9)}, '{lake.chance.choice(CITIES)}')" for _ in range(4))
    lake.do(f"INSERT INTO {table} VALUES {rows}", name)


def overwrite(lake: SparkLake, name: str, table: str) -> None:
    lake.do(f"INSERT OVERWRITE {table} VALUES (1, 'Bern'), (2, '{lake.chance.choice(CITIES)}'), (3, 'a b')", name)


def merge(lake: SparkLake, name: str, table: str) -> None:
    rows = ", ".join(f"({number}, '{lake.chance.choice(CITIES)}')" for number in lake.chance.sample(range(12), 3))
    source = f"(SELECT * FROM VALUES {rows} AS s(id, city))"
    lake.do(
        f"MERGE INTO {table} t USING {source} s ON t.id = s.id AND t.city = s.city"
        " WHEN MATCHED THEN UPDATE SET id = s.id + 20 WHEN NOT MATCHED THEN INSERT *",
        name,
    )


def delete(lake: SparkLake, name: str, table: str) -> None:
    lake.do(f"DELETE FROM {table} WHERE id = {lake.chance.randrange(9)}", name)


def tag(lake: SparkLake, name: str, table: str) -> None:
    kind = lake.chance.choice(["TAG", "BRANCH"])
    lake.do(f"ALTER TABLE {table} CREATE {kind} ref{len(lake.history)}", name)


def rewrite_manifests(lake: SparkLake, name: str, table: str) -> None:
    lake.do(f"CALL lake.system.rewrite_manifests(table => 'sales.{name}', use_caching => false)", name)


def rewrite_data_files(lake: SparkLake, name: str, table: str) -> None:
    lake.do(
        f"CALL lake.system.rewrite_data_files(table => 'sales.{name}', options => map('min-input-files', '2', 'rewrite-all', 'true'))",
        name,
    )


def compute_statistics(lake: SparkLake, name: str, table: str) -> None:
    lake.do(f"CALL lake.system.compute_table_stats(table => 'sales.{name}')", name)


ACTS: tuple[Callable[[SparkLake, str, str], None], ...] = (
    insert,
    overwrite,
    merge,
    merge,
    delete,
    delete,
    tag,
    rewrite_manifests,
    rewrite_data_files,
    compute_statistics,
)


@pytest.fixture(scope="module")
def store_of_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store, FakeClock]]:
    """A store for Spark's server, opened here with a clock that is an hour ahead: what is garbage need not be waited for."""
    url = f"sqlite:///{tmp_path_factory.mktemp('spark-lake')}/store.db"
    clock = FakeClock(round((time.time() + 3600) * 1_000_000))
    graces = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60)
    with open_store(url, settings=graces, clock=clock) as store:
        realms = RealmRegistry(store)
        realms.create_realm("acme", retention=HistoryRetention(content_age_seconds=0, content_commits=1, reference_commits=1))
        bootstrap(realms, "acme", hash_credentials(new_credentials()))
        yield url, store, clock


@pytest.fixture(scope="module")
def spark_lake(
    spark: Any, store_of_lake: tuple[str, Store, FakeClock], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkLake]:
    """The lake after its story: tables that Spark wrote at random, expired and collected, with two reports."""
    url, store, clock = store_of_lake
    folder = tmp_path_factory.mktemp("spark-lake") / "lake"
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("lake", base_location=f"file://{folder}")
    with headwater_server(url, tmp_path_factory.mktemp("lake-server") / "log") as server:
        sql = SparkSql(spark)
        sql.add_catalog("lake", server, "acme/lake")
        lake = SparkLake(sql, store, folder, clock, random.Random(SEED))
        lake.model.lines[MAIN] = RefLine([{}])
        sql("CREATE NAMESPACE lake.sales")
        _tell(lake)
        yield lake


def _tell(lake: SparkLake) -> None:
    for name, properties in FORMATS.items():
        by = "PARTITIONED BY (city)" if name != "hashed" else ""
        lake.do(f"CREATE TABLE lake.sales.{name} (id BIGINT, city STRING) {by} TBLPROPERTIES ({properties})", name)
        lake.do(f"INSERT INTO lake.sales.{name} VALUES (30, 'Bern'), (31, 'Bern'), (32, 'Bern'), (1, 'a b')", name)
        lake.do(f"DELETE FROM lake.sales.{name} WHERE id = 31", name)
        for _ in range(STEPS):
            lake.chance.choice(ACTS)(lake, name, f"lake.sales.{name}")
    lake.run()
    lake.expire()
    for name in FORMATS:
        stray = lake.location(name) / "data" / "city=Bern" / "stray.parquet"
        stray.parent.mkdir(exist_ok=True, parents=True)
        stray.write_bytes(b"a writer died")
    for path in lake.folder.rglob("*"):
        if path.is_file() and "_headwater" not in str(path):
            os.utime(path, (lake.clock.now() / 1_000_000 - 10 * DAY,) * 2)
    lake.run()


def test_reports_of_what_spark_wrote_are_right(spark_lake: SparkLake) -> None:
    assert spark_lake.faults == [], spark_lake.text()
    assert spark_lake.verdict.checked["dead"] > 10
    assert spark_lake.outcome.blocked == {}


def test_spark_wrote_deletes_and_vectors(spark_lake: SparkLake) -> None:
    live = spark_lake.model.live() | spark_lake.outcome.marks.keys()

    assert any(path.endswith("-deletes.puffin") for path in live)
    assert any(path.endswith("-deletes.parquet") for path in live)


@pytest.mark.parametrize("name", FORMATS)
def test_same_files_are_dead_as_for_iceberg(spark_lake: SparkLake, name: str) -> None:
    older_than = "TIMESTAMP '" + time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 5 * DAY)) + "'"
    orphans = spark_lake.sql(
        f"CALL lake.system.remove_orphan_files(table => 'sales.{name}', older_than => {older_than}, dry_run => true)"
    )
    place = str(spark_lake.location(name))
    theirs = {real_path(path) for (path,) in orphans}
    ours = {path for path in spark_lake.outcome.marks if path.startswith(f"{place}/") and not path.endswith(".crc")}

    assert all(is_known_kind(path, place) for path in theirs)
    assert ours == theirs, f"HEADWATER_SEED={SEED}"
    assert f"{place}/data/city=Bern/stray.parquet" in ours
