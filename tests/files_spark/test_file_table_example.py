"""The example of a file table runs to its end, and finds all as it should be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater import Settings
from headwater_workers.pipeline import find_engine

SCRIPT = Path(__file__).parents[2] / "examples" / "file_table.py"


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings())))
def test_example_of_a_file_table_ends_well(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--rows", "20000", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "one worker was killed (-9)" in done.stdout and done.stdout.rstrip().endswith("all is right")
