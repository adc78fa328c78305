"""The first ten minutes of four users, each a script beside this file, in a fresh folder with a home and an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import headwater

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parent
CHECKOUT = FOLDER.parents[1]
SECONDS = 240
ORDERS = pa.table({"id": pa.array([1, 2], pa.int64()), "total": [9.5, 20.0]})


def play(script: str, folder: Path) -> str:
    """Run a script as its user would, and return what it printed; a command that fails ends it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_") and name != "PYTHONPATH"}
    environment = {
        **kept,
        "HOME": str(folder),
        "CHECKOUT": str(CHECKOUT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    program = [sys.executable] if script.endswith(".py") else ["bash", "-euo", "pipefail"]
    done = subprocess.run(
        [*program, str(FOLDER / script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tables that another catalog wrote, as people have them: below ``warehouse``."""
    with headwater.connect(f"sqlite:///{tmp_path}/other.db", create=True) as store:
        other = store.create_realm("other", credentials=tmp_path / "other.json")
        catalog = other.create_catalog("lake", base_location=(tmp_path / "warehouse").as_uri()).branch().pyiceberg()
        catalog.create_namespace("sales")
        place = (tmp_path / "warehouse" / "sales" / "orders").as_uri()
        catalog.create_table("sales.orders", ORDERS.schema, location=place).append(ORDERS)
    return tmp_path


def test_data_engineer_has_branches_over_tables_of_a_folder(folder: Path) -> None:
    told = play("data_engineer.sh", folder)

    assert "surveyed 1 table by process (by hand): 1 imported" in told
    assert "append  +2 rows, +1 file" in told
    assert "spark.sql.catalog.lake" in told


def test_platform_engineer_runs_it_from_a_folder_of_manifests(tmp_path: Path) -> None:
    told = play("platform_engineer.sh", tmp_path)

    assert "Realm acme: created realm acme" in told
    assert "deletionProtection: false → true" in told
    assert "allowed:   yes" in told


def test_python_developer_starts_from_one_object(tmp_path: Path) -> None:
    told = play("python_developer.py", tmp_path)

    assert "rows on main: 2" in told
    assert "CHANGED sales.orders" in told
    assert "nothing was purged" in told


def test_contributor_finds_the_words_and_runs_a_test(tmp_path: Path) -> None:
    told = play("contributor.sh", tmp_path)

    assert "make test" in told
    assert " passed" in told
