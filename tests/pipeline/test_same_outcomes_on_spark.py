"""Spark and the process say the same. Needs Java, as Spark does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from handmade_lake import Lake

from headwater.errors import NotFoundError
from headwater.iceberg import QuarantinedTable, SurveyScope, survey_in_process
from headwater.settings import Settings
from headwater_workers.pipeline import SparkOptions, find_engine
from headwater_workers.pipeline.spark_session import session
from headwater_workers.pipeline.spark_survey import survey_in

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with session("tests", SparkOptions("local[2]")) as started:
        yield started


def test_spark_and_the_process_say_the_same_in_order(spark: Any, warehouse: Path, lake: Lake) -> None:
    locations = [str(warehouse), *lake.locations]
    scope = SurveyScope(locations=locations, allowed=locations, exclude=["web.*"]).checked()
    seen: list[tuple[int, int, str]] = []

    outcomes = survey_in(spark, scope, progress=lambda *numbers: seen.append(numbers))

    assert list(outcomes) == list(survey_in_process(scope))
    assert len(outcomes) == 9 + len(lake.expected) + 1
    units = list(dict.fromkeys(unit for _, _, unit in seen))
    assert units == [f"Spark tasks ({stage})" for stage in ("list", "examine", "judge", "hand over")]
    assert max(done for done, _, unit in seen if "examine" in unit) > 0


def test_executor_says_that_a_location_is_not_there(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        survey_in(spark, SurveyScope(locations=[str(tmp_path / "nowhere")], allowed=[]).checked())


def test_inventory_says_the_same_on_spark(spark: Any, lake: Lake, tmp_path: Path) -> None:
    listing = tmp_path / "inventory.csv"
    files = [path for path in lake.root.rglob("*") if path.is_file()]
    lines = [f'"{path.as_uri()}",{path.stat().st_size},{path.stat().st_mtime_ns // 1000}' for path in files]
    listing.write_text("\n".join(["path,size,mtime", *lines]))
    scope = SurveyScope(
        locations=[str(lake.root)], allowed=lake.locations, inventory=str(listing), path="{namespace}/{table}"
    ).checked()

    outcomes = list(survey_in(spark, scope))

    assert outcomes == list(survey_in_process(scope))
    assert "Unmapped" in {str(outcome.code) for outcome in outcomes if isinstance(outcome, QuarantinedTable)}
