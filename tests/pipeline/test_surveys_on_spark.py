"""What becomes of the sessions of surveys on Spark. Needs Java, as Spark does."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil
import pytest
from handmade_lake import Lake

from headwater.errors import UnavailableError
from headwater.iceberg import SurveyScope
from headwater.settings import Settings
from headwater_workers.pipeline import SparkOptions, find_engine, survey_on_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]
MASTER = "local[1]"
OPTIONS = SparkOptions(MASTER)


class StopError(Exception):
    """The task was lost."""


@pytest.fixture
def scope(lake: Lake) -> SurveyScope:
    location = str(lake.root / "nests")
    return SurveyScope(locations=[location], allowed=[location]).checked()


@pytest.fixture(autouse=True)
def no_java_left() -> Iterator[None]:
    yield

    children = psutil.Process(os.getpid()).children(recursive=True)
    assert [child.name() for child in children if "java" in child.name()] == []


@pytest.mark.rare(2)
def test_job_is_retried_without_java_and_stopped_without_its_task(scope: SurveyScope) -> None:
    def kill(done: int, total: int, unit: str) -> None:
        for child in psutil.Process().children(recursive=True):
            if "java" in child.name():
                child.kill()

    def lose(done: int, total: int, unit: str) -> None:
        if unit == "Spark tasks (examine)":
            raise StopError

    with pytest.raises(UnavailableError, match="Spark"):
        survey_on_spark(scope, OPTIONS, progress=kill)
    with pytest.raises(StopError):  # Spark came as far as that
        survey_on_spark(scope, OPTIONS, progress=lose)
