"""The search for dead files on Spark, held against the one in process: the same lake, the same result."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from reported_lake import ReportedLake, open_reported_lake

from fake_clock import FakeClock
from headwater import Settings
from headwater.lake_files import FileEngine, FileReason, PlaceReason, ProcessEngine
from headwater.lake_files.dead_files import FileSearch, find_dead_files
from headwater.lake_files.live_walk import LiveWalk
from headwater.lake_files.manifest_memory import ManifestMemory
from headwater.lake_files.store_storages import StoreStorages
from headwater.lake_files.table_names import LakeTableNames
from headwater_workers.pipeline.spark_lake_files import SparkFileEngine


class CountedEngine(SparkFileEngine):
    """Counts how often it opened Spark."""

    sessions = 0

    def _open(self, stack: ExitStack) -> None:
        self.sessions += 1
        super()._open(stack)


@pytest.fixture
def reported(clock: FakeClock, tmp_path: Path) -> Any:
    with open_reported_lake(f"sqlite:///{tmp_path}/s.db", clock, tmp_path / "lake") as lake:
        yield lake


def searched(lake: ReportedLake, engine: FileEngine) -> dict[str, Any]:
    """What a search finds that leaves nothing behind, and remembers no manifest."""
    storages = StoreStorages(lake.store)
    memory = ManifestMemory(lake.rows, lake.definition.id, None)
    search = FileSearch(
        store=lake.store,
        rows=lake.rows,
        definition=lake.definition,
        is_home=lambda content_id: True,
        read_live=lambda versions: LiveWalk(
            versions,
            storage_of=storages.find_lake,
            memory=memory,
            names=LakeTableNames(lake.store),
            manifest_reader=engine.manifest_reader,
        ),
        storage=storages.of_catalog("acme", "lake"),
        is_dry=True,
        engine=engine,
    )
    with find_dead_files(search) as result:
        return {
            "dead": list(result.dead),  # of places that yield nothing, too
            "blocks": result.blocks,
            "places": result.places,
            "counts": result.place_counts,
            "totals": (result.live, result.there, result.there_bytes, result.kept, result.kept_bytes, result.outside),
        }


@pytest.mark.rare(2)
@pytest.mark.long
def test_search_on_spark_finds_what_one_in_process_finds(reported: ReportedLake) -> None:
    for name in ("orders", "returns", "broken", "foreign"):
        reported.make_table(name, appends=3)
    reported.report()
    reported.expire("orders")
    (reported.place("orders") / "data" / "never.parquet").write_bytes(b"x")
    next((reported.place("broken") / "metadata").glob("*-m0.avro")).write_bytes(b"no manifest")
    (reported.place("foreign") / "_delta_log").mkdir()
    (reported.place("foreign") / "_delta_log" / "1.json").write_bytes(b"{}")

    spark = CountedEngine(Settings(spark_master="local[2]", spark_from_files=1))
    expected = searched(reported, ProcessEngine())

    assert searched(reported, spark) == expected
    assert spark.sessions == 1
    assert {file.code for file in expected["dead"]} >= {FileReason.NEVER_HELD, FileReason.IN_GRACE}
    assert {block.code for block in expected["blocks"]} == {PlaceReason.REFERRER_UNREADABLE, PlaceReason.WRITTEN_ELSEWHERE}


def test_small_search_stays_in_process(reported: ReportedLake) -> None:
    reported.make_table("orders")
    reported.report()
    engine = CountedEngine(Settings())

    assert searched(reported, engine) == searched(reported, ProcessEngine())
    assert engine.sessions == 0
