"""Surveys on a stand-alone cluster, whose executors have an archive, and may be killed. Needs Java."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from handmade_lake import Lake
from spark_cluster import Cluster

from headwater.iceberg import SurveyScope, survey_in_process
from headwater.settings import Settings
from headwater_workers.pipeline import SparkOptions, find_engine, pack_environment, survey_on_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]
NOT_NEEDED = ("pyarrow", "fastavro", "pymongo", "psycopg-binary")
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    processes = started.processes()
    yield started
    started.stop()
    assert not any(process.is_running() for process in processes)


@pytest.fixture
def scope(lake: Lake) -> SurveyScope:
    location = str(lake.root / "nests")
    return SurveyScope(locations=[location], allowed=[location]).checked()


@pytest.fixture
def bare_python() -> str:
    """The interpreter that this environment was made from: it has no packages."""
    python = str(getattr(sys, "_base_executable", sys.executable))
    if subprocess.run([python, "-c", "import msgspec"], check=False, capture_output=True).returncode == 0:
        pytest.skip(f"{python} has packages of its own")
    return python


@pytest.mark.rare(3)
def test_executors_take_headwater_from_an_archive_even_after_a_kill(
    cluster: Cluster, scope: SurveyScope, bare_python: str, tmp_path: Path
) -> None:
    pack_environment(tmp_path / "headwater.tar.gz", without=NOT_NEEDED)
    conf = {**CONF, "spark.pyspark.python": bare_python, "spark.cores.max": "1"}
    killed: list[psutil.Process] = []

    def kill(done: int, total: int, unit: str) -> None:
        if not killed and unit == "Spark tasks (examine)":
            killed.extend(cluster.executors())
            for executor in killed:
                executor.kill()

    options = SparkOptions(cluster.url, conf, archive=str(tmp_path / "headwater.tar.gz"))
    outcomes = survey_on_spark(scope, options, progress=kill)

    assert len(killed) == 1
    assert list(outcomes) == list(survey_in_process(scope))
    assert cluster.executors() == []
