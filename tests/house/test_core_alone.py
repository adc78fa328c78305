"""What a core-only installation says to somebody who asks for more: which extra to install, and never that it is a bug."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = [
    "aiohttp", "billiard", "bson", "celery", "fastavro", "h11", "kombu", "kopf", "kubernetes", "prometheus_client", "psycopg", "py4j",
    "pyarrow", "pyiceberg", "pymongo", "pyspark", "redis", "starlette", "urllib3", "uvicorn",
]  # fmt: skip
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({LIBRARIES}))\n"
HEADWATER = "from headwater.cli import main; main({words!r})"
OPERATOR = "from headwater_operator.main import main; main({words!r})"
PLUGIN = "from headwater_operator.kubectl_command import kubectl_main; sys.argv[1:] = {words!r}; kubectl_main()"
COMMANDS = [
    (HEADWATER, ["up", "."], "workers"),
    (HEADWATER, ["worker"], "workers"),
    (HEADWATER, ["spark-archive", "x"], "workers"),
    (HEADWATER, ["serve"], "server"),
    (HEADWATER, ["--store", "postgresql://host/db", "fsck"], "postgresql"),
    (HEADWATER, ["--store", "mongodb://host/db", "fsck"], "mongodb"),
    (HEADWATER, ["import", "acme/lake", "s3://bucket/lake"], "lake"),
    (HEADWATER, ["import", "acme/lake", "lake", "--spark"], "spark"),
    (HEADWATER, ["import-report", "acme/lake", "x.parquet"], "lake"),
    (OPERATOR, ["run"], "operator"),
    (OPERATOR, ["check"], "operator"),
    (OPERATOR, ["leftovers"], "operator"),
    (PLUGIN, ["status"], "operator"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the default store has a realm with a catalog, and a finished import."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "lake").mkdir()
    for words in (
        ["realm", "create", "acme", "--credentials", "acme.json"],
        ["catalog", "create", "acme/lake", "--base-location", "s3://bucket/lake"],
        ["import", "acme/lake", str(folder / "lake")],
    ):
        done = alone(HEADWATER, words, folder)
        assert done.returncode == 0, done.stderr
    return folder


def alone(program: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + program.format(words=words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.long
@pytest.mark.parametrize(("program", "words", "extra"), COMMANDS, ids=[" ".join(words) for _, words, _ in COMMANDS])
def test_missing_extra_is_named(folder: Path, program: str, words: list[str], extra: str) -> None:
    done = alone(program, words, folder)

    assert (done.returncode, f"headwater[{extra}]" in done.stderr) == (5, True), done.stderr
