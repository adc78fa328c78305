"""Spark and the process say the same. Needs Java, as Spark does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headwater.catalogs.iceberg import Scope, survey_in_process
from headwater.errors import MissingError, UnavailableError
from headwater.settings import Settings
from headwater_workers.pipeline import SparkOptions, find_engine, survey, survey_on_spark

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]
MASTER = "local[2]"
OPTIONS = SparkOptions(MASTER)


class StopError(Exception):
    """The task was lost."""


@pytest.fixture
def scope(warehouse: Path) -> Scope:
    return Scope.of([str(warehouse)], allowed=[str(warehouse)])


@pytest.fixture(autouse=True)
def no_java_left() -> Iterator[None]:
    yield

    children = psutil.Process(os.getpid()).children(recursive=True)
    assert [child.name() for child in children if "java" in child.name()] == []


@pytest.fixture
def odd_tables(tmp_path: Path) -> Path:
    """Tables without uuid, without snapshot and broken, with version hints; the location of one is the table itself."""
    old = '{"format-version": 1, "location": "LOCATION", "last-updated-ms": 1, "last-column-id": 1, "schema": {}, "partition-spec": []}'
    for name, document in (("one/old", old), ("two", "{}")):
        metadata = tmp_path / name / "metadata"
        metadata.mkdir(parents=True)
        (metadata / "v1.metadata.json").write_text(document.replace("LOCATION", metadata.parent.as_uri()))
        (metadata / "version-hint.text").write_text("1")
    return tmp_path


def test_spark_and_the_process_say_the_same_in_the_same_order(warehouse: Path, odd_tables: Path) -> None:
    locations = [str(warehouse), f"{odd_tables}/one", f"{odd_tables}/two"]
    scope = Scope.of(locations, allowed=[str(warehouse), f"{odd_tables}/one"], exclude=["web.*"])
    seen: list[tuple[int, int, str]] = []

    outcomes = survey(scope, Settings(spark_master=MASTER), progress=lambda *numbers: seen.append(numbers))

    assert list(outcomes) == list(survey_in_process(scope))
    assert {"old", "two", "sales.orders", "finance.budget_2023"} < {".".join(outcome.key) for outcome in outcomes}
    assert len(outcomes) == 11
    units = list(dict.fromkeys(unit for _, _, unit in seen))
    assert units == [f"Spark tasks ({stage})" for stage in ("list", "examine", "judge", "hand over")]
    assert max(done for done, _, unit in seen if "examine" in unit) > 0


def test_who_loses_its_task_stops_the_job(scope: Scope) -> None:
    def lose(done: int, total: int, unit: str) -> None:
        if unit == "Spark tasks (examine)":
            raise StopError

    with pytest.raises(StopError):
        survey_on_spark(scope, OPTIONS, progress=lose)


def test_a_job_whose_java_dies_can_be_tried_again_later(scope: Scope, tmp_path: Path) -> None:
    def kill(done: int, total: int, unit: str) -> None:
        for child in psutil.Process().children(recursive=True):
            if "java" in child.name():
                child.kill()

    with pytest.raises(UnavailableError, match="Spark"):
        survey_on_spark(scope, OPTIONS, progress=kill)
    with pytest.raises(MissingError, match="nowhere"):  # said by an executor: Spark runs again
        survey_on_spark(Scope.of([str(tmp_path / "nowhere")], allowed=[]), OPTIONS)
