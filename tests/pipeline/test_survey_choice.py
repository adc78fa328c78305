"""Where a survey runs: on Spark what is worth its start, in the process what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Settings
from headwater.errors import RefusedError
from headwater.iceberg import SurveyScope, list_tables
from headwater_workers.pipeline import SparkSurvey


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that nobody may start: whoever chose Spark would fail."""
    (tmp_path / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture
def scope(tmp_path: Path) -> SurveyScope:
    """Three tables, none of which can be read."""
    for name in ("a", "b", "c"):
        metadata = tmp_path / "lake" / name / "metadata"
        metadata.mkdir(parents=True)
        (metadata / "v1.metadata.json").write_text("{")
    location = f"file://{tmp_path}/lake"
    return SurveyScope(locations=[location], allowed=[location]).checked()


def silent(done: int, total: int, unit: str) -> None:
    pass


def test_few_tables_are_surveyed_in_the_process(java: None, scope: SurveyScope) -> None:
    survey = SparkSurvey(Settings(spark_from_tables=4))

    assert survey.name == "spark (local[*])"
    assert len(survey(scope, silent)) == 3
    assert survey.name == "process (fewer than 4 tables)"


def test_spark_that_is_wanted_and_cannot_run_is_refused(scope: SurveyScope) -> None:
    survey = SparkSurvey(Settings(spark_master="off"), is_spark_wanted=True)

    with pytest.raises(RefusedError, match="asks for Spark, which cannot run here: spark_master is off"):
        survey(scope, silent)


@pytest.mark.parametrize(("limit", "found"), [(4, 3), (3, None), (1, None)])
def test_tables_are_counted_up_to_a_limit(scope: SurveyScope, limit: int, found: int | None) -> None:
    tables = list_tables(scope, limit=limit)

    assert (None if tables is None else len(tables)) == found


def test_tables_are_not_counted_for_ever(scope: SurveyScope) -> None:
    looks = iter([False, True])

    assert list_tables(scope, limit=50, is_late=lambda: next(looks)) is None
    assert list_tables(scope, limit=50, is_late=lambda: False) is not None
