"""Expiry of many small tables, beside Iceberg's procedure and Iceberg's library on tables of the same kind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.iceberg_engine import engine_is_there, iceberg_session
from benchmarks.report import Row, at_least_of_floor, say

from headwater.catalogs import Catalogs, ContentKey, Namespace, Put
from headwater.expiry import AskedRules, CatalogExpiry, ExpiryCounts, ExpiryWish
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog.lake_documents import table_content
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.store import Store, open_store

__all__ = ["ExpiryScale", "measure_expiry"]

BACKEND = "sqlite"
LAST = AskedRules(max_age_ms=0, keep=1)


@dataclass(frozen=True)
class ExpiryScale:
    """
    sample        tables that Iceberg's procedure expires, and as many that its library does
    """

    tables: int
    snapshots: int
    sample: int


def measure_expiry(folder: Path, scale: ExpiryScale) -> Iterator[Row]:
    what = f"tables with {scale.snapshots} snapshots"
    say(f"writing {2 * scale.sample} {what} by pyiceberg")
    written = write_tables(folder / "theirs", 2 * scale.sample, scale.snapshots)
    theirs, library = _measure_iceberg(folder, written) if engine_is_there() else (None, None)
    if theirs is None:
        say("Iceberg's own expiry is left out: `scripts/setup.sh iceberg_engine` puts it together")
    say(f"expiring {scale.tables:,} {what}")
    with open_store(f"sqlite:///{folder}/store.db") as store:
        homes = _plant(store, folder / "ours", written[0], scale.tables)
    for text, expired, target in (
        (f"expiry of {scale.tables:,} {what}", scale.snapshots - 1, at_least_of_floor(30)),
        ("the same again: nothing is due", 0, None),
    ):
        with open_store(f"sqlite:///{folder}/store.db") as store:
            seconds, counts = _expire(store, homes)
        assert counts.snapshots == expired * scale.tables, counts.as_plain()
        yield Row(text, BACKEND, scale.tables / seconds, "tables/s", floor=theirs, target=target if theirs else None)
    if theirs is not None and library is not None:
        yield Row(f"Iceberg's procedure on {scale.sample} of them, which deletes files, too", "Spark", theirs, "tables/s")
        yield Row(f"Iceberg's library on {scale.sample} of them, without deleting files", "Java", library, "tables/s")


def write_tables(folder: Path, tables: int, snapshots: int) -> list[Path]:
    """Write small tables, with all their files, and return the folder of each; its newest metadata is ``v1.metadata.json``, too."""
    import pyarrow
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/pyiceberg.db", warehouse=f"file://{folder}")
    catalog.create_namespace("sales")
    rows = pyarrow.table({f"column_{at}": [f"{at} {row}" for row in range(20)] for at in range(10)})
    made = []
    for at in range(tables):
        place = folder / "sales" / f"t{at}"
        table = catalog.create_table(f"sales.t{at}", rows.schema, location=str(place))
        for _ in range(snapshots):
            table.append(rows)
        newest = Path(table.metadata_location.removeprefix("file://"))
        (place / "metadata" / "v1.metadata.json").write_bytes(newest.read_bytes())
        (place / "metadata" / "version-hint.text").write_text("1", encoding="utf-8")
        made.append(place)
    return made


def _measure_iceberg(folder: Path, written: Sequence[Path]) -> tuple[float, float]:
    """Tables a second by Iceberg's procedure on the first half, and by its library on the other; one of each goes before."""
    with iceberg_session(folder / "spark") as session:
        conf = session.conf()
        conf.set("spark.sql.catalog.theirs", "org.apache.iceberg.spark.SparkCatalog")
        conf.set("spark.sql.catalog.theirs.type", "hadoop")
        conf.set("spark.sql.catalog.theirs.warehouse", str(written[0].parents[1]))
        half = len(written) // 2

        def by_procedure(place: Path) -> None:
            session.sql(
                f"CALL theirs.system.expire_snapshots(table => 'sales.{place.name}', retain_last => 1,"
                f" older_than => TIMESTAMP '2100-01-01 00:00:00')"
            ).collectAsList()

        hadoop: Any = session.sessionState().catalogManager().catalog("theirs").icebergCatalog()

        def by_library(place: Path) -> None:
            table = hadoop.loadTable(_identifier(session, place.name))
            table.expireSnapshots().expireOlderThan(4_000_000_000_000).retainLast(1).cleanExpiredFiles(False).commit()

        say(f"Iceberg's procedure on {half} tables")
        procedure = _rate(by_procedure, written[:half])
        say(f"Iceberg's library on {half} tables")
        return procedure, _rate(by_library, written[half:])


def _identifier(session: Any, table: str) -> Any:
    from py4j.java_gateway import JavaClass

    return JavaClass("org.apache.iceberg.catalog.TableIdentifier", session._gateway_client).parse(f"sales.{table}")


def _rate(expire: Any, places: Sequence[Path]) -> float:
    expire(places[0])
    started = time.perf_counter()
    for place in places[1:]:
        expire(place)
    taken = time.perf_counter() - started
    for place in places:
        newest = json.loads((place / "metadata" / "v2.metadata.json").read_bytes())
        assert len(newest["snapshots"]) == 1, place
    return (len(places) - 1) / taken


def _plant(store: Store, folder: Path, written: Path, tables: int) -> set[UUID]:
    """A catalog of tables whose metadata is that of a written one, each in a place of its own."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    catalogs = Catalogs(realms.open_realm("acme"))
    catalogs.create_catalog("lake", base_location=folder.as_uri())
    catalog, homes = catalogs.open_catalog("lake"), set[UUID]()
    catalog.commit(None, [Put(ContentKey.of("sales"), Namespace())])
    text = (written / "metadata" / "v1.metadata.json").read_text(encoding="utf-8")
    for start in range(0, tables, 500):
        puts = []
        for at in range(start, min(start + 500, tables)):
            place = folder / f"t{at}"
            (place / "metadata").mkdir(parents=True)
            own = text.replace(str(written), str(place)).encode()
            document = {**json.loads(own), "table-uuid": str(UUID(int=at + 1, version=4))}
            file = place / "metadata" / "00010-before.metadata.json"
            own = json.dumps(document).encode()
            file.write_bytes(own)
            content = table_content(document, file.as_uri(), None)
            puts.append(Put(ContentKey.of("sales", f"t{at:06}"), content, metadata=split_metadata(own)))
        homes |= set(catalog.commit(None, puts).result.values())
    return homes


def _expire(store: Store, homes: set[UUID]) -> tuple[float, ExpiryCounts]:
    rows = RealmRegistry(store).open_realm("acme")
    definition = Catalogs(rows).read_catalog("lake")
    wish = ExpiryWish(now=rows.clock.now(), rules=LAST, is_home=homes.__contains__)
    started = time.perf_counter()
    counts = CatalogExpiry(rows, definition, TableStorage(realm="acme", catalog="lake"), wish).expire()
    return time.perf_counter() - started, counts
