"""Expiry beside Iceberg's own, on random tables: the same snapshots, refs, logs and statistics, which engines read."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil
from random_snapshots import HOUR, Document, random_table
from served_lake import ServedLake
from spark_sql import SparkSql

from headwater import Store, open_store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Namespace, Put
from headwater.expiry import AskedRules, CatalogExpiry, ExpiryWish, read_expiry_request, run_expiry, submit_expiry
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog.lake_documents import table_content
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.tasks import LeaseWatch, TaskQueue

pytestmark = pytest.mark.long

SEED = int(os.environ.get("HEADWATER_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
TABLES = 120
BY_PROCEDURE = 5
SAME = (
    "current-snapshot-id",
    "snapshots",
    "refs",
    "snapshot-log",
    "statistics",
    "properties",
    "schemas",
    "last-sequence-number",
)


@dataclass(frozen=True)
class Case:
    """A random table, and what is asked for it; None: what its properties say."""

    name: str
    document: Document
    max_age_ms: int | None
    keep: int | None


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hadoop")


@pytest.fixture(scope="module")
def sql(spark: Any, warehouse: Path) -> SparkSql:
    sql = SparkSql(spark)
    sql.set_catalog("theirs", {"type": "hadoop", "warehouse": str(warehouse)})
    return sql


@pytest.fixture(scope="module")
def base(sql: SparkSql, warehouse: Path) -> Document:
    """A table that Spark wrote."""
    sql("CREATE TABLE theirs.sales.base (id BIGINT, city STRING) TBLPROPERTIES ('format-version' = '2')")
    sql("INSERT INTO theirs.sales.base VALUES (1, 'Bern'), (2, 'Graz')")
    document: Document = json.loads((warehouse / "sales/base/metadata/v2.metadata.json").read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def cases(base: Document, warehouse: Path) -> list[Case]:
    now_ms, made = round(time.time() * 1000), []
    for at in range(TABLES):
        name, chance = f"t{at}", random.Random(f"{SEED} {at} asked")
        document = random_table(f"{SEED} {at}", base, location=str(warehouse / "sales" / name), now_ms=now_ms)
        age = HOUR * chance.randrange(1, 60) if at % 3 else None
        made.append(Case(name, document, age, chance.randrange(1, 6) if at % 2 else None))
    return made


@pytest.fixture(scope="module")
def theirs(sql: SparkSql, cases: list[Case], warehouse: Path) -> dict[str, Document]:
    """What Iceberg makes of the tables: of some by its procedure, of the others by what the procedure calls."""
    now_ms = round(time.time() * 1000)
    results = {}
    for at, case in enumerate(cases):
        folder = warehouse / "sales" / case.name / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "v1.metadata.json").write_text(json.dumps(case.document), encoding="utf-8")
        (folder / "version-hint.text").write_text("1", encoding="utf-8")
        older_than = None if case.max_age_ms is None else now_ms - case.max_age_ms
        if at < BY_PROCEDURE:
            asked = "" if older_than is None else f", older_than => TIMESTAMP '{_utc(older_than)}'"
            asked += "" if case.keep is None else f", retain_last => {case.keep}"
            sql(f"CALL theirs.system.expire_snapshots(table => 'sales.{case.name}'{asked})")
        else:
            identifier = sql.java_class("org.apache.iceberg.catalog.TableIdentifier").parse(f"sales.{case.name}")
            expire = sql.iceberg_catalog("theirs").loadTable(identifier).expireSnapshots().cleanExpiredFiles(False)
            expire = expire if older_than is None else expire.expireOlderThan(older_than)
            (expire if case.keep is None else expire.retainLast(case.keep)).commit()
        newest = max(folder.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].partition(".")[0]))
        results[case.name] = json.loads(newest.read_text(encoding="utf-8"))
    return results


@pytest.fixture(scope="module")
def ours(cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A catalog of the same tables, expired."""
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('ours')}/store.db") as store:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        rows = realms.open_realm("acme")
        Catalogs(rows).create_catalog("lake", base_location=f"file://{Path(cases[0].document['location']).parents[1]}")
        catalog = Catalogs(rows).open_catalog("lake")
        catalog.commit(None, [Put(ContentKey.of("sales"), Namespace())])
        puts = [
            Put(
                ContentKey.of("sales", case.name),
                table_content(case.document, f"{case.document['location']}/metadata/v1.metadata.json", None),
                metadata=split_metadata(json.dumps(case.document).encode()),
            )
            for case in cases
        ]
        homes = set(catalog.commit(None, puts).result.values())
        for asked in {(case.max_age_ms, case.keep) for case in cases}:
            keys = [ContentKey.of("sales", case.name) for case in cases if (case.max_age_ms, case.keep) == asked]
            rules, now = AskedRules(max_age_ms=asked[0], keep=asked[1]), rows.clock.now()
            wish = ExpiryWish(now=now, rules=rules, is_home=homes.__contains__, keys=keys)
            CatalogExpiry(rows, catalog.definition, TableStorage(realm="acme", catalog="lake"), wish).expire()
        yield catalog


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _ordered(document: Document, name: str) -> object:
    """A part of a document; Iceberg keeps statistics in no order."""
    value = document.get(name)
    return sorted(value, key=lambda entry: entry["snapshot-id"]) if name == "statistics" and value else value


def document_of(catalog: Catalog, case: Case) -> Document:
    text = catalog.metadata(None, ContentKey.of("sales", case.name))
    assert text is not None
    document: Document = json.loads(text)
    return document


def test_same_snapshots_refs_and_logs_stay_as_with_iceberg(
    cases: list[Case], theirs: dict[str, Document], ours: Catalog
) -> None:
    for case in cases:
        mine = document_of(ours, case)
        for name in SAME:
            assert _ordered(mine, name) == _ordered(theirs[case.name], name), f"{name} of {case.name}, HEADWATER_SEED={SEED}"

    expired = [len(case.document["snapshots"]) - len(theirs[case.name]["snapshots"]) for case in cases]
    assert sum(map(bool, expired)) > TABLES // 3


def test_metadata_log_is_as_long_as_with_iceberg(cases: list[Case], theirs: dict[str, Document], ours: Catalog) -> None:
    for case in cases:
        mine = document_of(ours, case)
        assert len(mine["metadata-log"]) == len(theirs[case.name]["metadata-log"]), f"{case.name}, HEADWATER_SEED={SEED}"
        if mine != case.document:
            assert mine["metadata-log"][-1]["metadata-file"].endswith("/metadata/v1.metadata.json")


def test_engines_read_what_expiry_leaves(sql: SparkSql, cases: list[Case], ours: Catalog) -> None:
    parser = sql.java_class("org.apache.iceberg.TableMetadataParser")
    for case in cases:
        text = ours.metadata(None, ContentKey.of("sales", case.name))
        assert text is not None
        ids = {snapshot["snapshot-id"] for snapshot in json.loads(text)["snapshots"]}

        assert {snapshot.snapshot_id for snapshot in TableMetadataUtil.parse_raw(text.decode()).snapshots} == ids
        read = parser.fromJson(text.decode()).snapshots()
        assert {read.get(at).snapshotId() for at in range(read.size())} == ids


def test_spark_goes_on_beside_expiry(orders: ServedLake, served_store: Store) -> None:
    for number in (3, 4):
        orders.sql(f"INSERT INTO lake.sales.orders VALUES ({number}, 'Lyon')")
    orders.sql("ALTER TABLE lake.sales.orders CREATE TAG v1")
    before, catalog = orders.snapshots(), orders.warehouse.partition("/")[2]
    request = read_expiry_request(served_store, "acme", catalog, older_than=served_store.clock.now(), keep=1)
    claim = TaskQueue(served_store).claim_task(
        submit_expiry(served_store, "acme", request).id, "test", LeaseWatch(served_store.clock, 60.0)
    )
    assert claim is not None
    outcome = run_expiry(served_store, claim)
    claim.finish_task(outcome)

    orders.sql("INSERT INTO lake.sales.orders VALUES (5, 'Wien')")

    assert (outcome["snapshots"], outcome["guests"]) == (len(before) - 1, 0)
    assert orders.snapshots()[:-1] == before[-1:]
    assert [row[0] for row in orders.rows()] == [1, 2, 3, 4, 5]
    assert [row[0] for row in orders.rows("lake.sales.orders VERSION AS OF 'v1'")] == [1, 2, 3, 4]
