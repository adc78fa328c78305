from __future__ import annotations

from pathlib import Path

import pytest

from headwater.settings import Settings
from headwater_workers.pipeline import find_engine


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """The folder of an executable called java."""
    executable = tmp_path / "home" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch(mode=0o755)
    return executable.parent


def test_java_on_the_path_means_spark(java: Path) -> None:
    assert str(find_engine(Settings(), environment={"PATH": str(java)})) == "spark (local[*])"


def test_java_home_goes_before_the_path(java: Path) -> None:
    assert find_engine(Settings(), environment={"JAVA_HOME": str(java.parent), "PATH": ""}).is_spark
    assert not find_engine(Settings(), environment={"JAVA_HOME": "/nowhere", "PATH": str(java)}).is_spark


def test_process_does_it_without_java(tmp_path: Path) -> None:
    assert str(find_engine(Settings(), environment={"PATH": str(tmp_path)})) == "process (Java is missing)"


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"SPARK_REMOTE": "sc://localhost:15002"}, "SPARK_REMOTE asks for Spark Connect"),
        ({"SPARK_CONNECT_MODE_ENABLED": "1"}, "SPARK_CONNECT_MODE_ENABLED asks for Spark Connect"),
        ({"SPARK_API_MODE": "connect"}, "SPARK_API_MODE asks for Spark Connect"),
    ],
)
def test_process_does_it_in_the_environment_of_spark_connect(java: Path, variables: dict[str, str], told: str) -> None:
    engine = find_engine(Settings(), environment={"PATH": str(java)} | variables)

    assert not engine.is_spark
    assert engine.reason.startswith(told)
    assert find_engine(Settings(spark_master="sc://spark"), environment={"PATH": str(java)}).reason.endswith("name a cluster")


def test_spark_can_be_turned_off(java: Path) -> None:
    assert str(find_engine(Settings(spark_master="off"), environment={"PATH": str(java)})) == "process (spark_master is off)"


def test_looking_for_an_engine_does_not_import_spark() -> None:
    import subprocess
    import sys

    code = "import sys, headwater_workers.pipeline as p; p.find_engine(__import__('headwater').Settings()); print('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
