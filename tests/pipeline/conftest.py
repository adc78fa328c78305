"""The example warehouse, made once for all tests that only read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from handmade_lake import Lake

SCRIPT = Path(__file__).parents[2] / "examples" / "warehouse.py"


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lake") / "warehouse"
    subprocess.run([sys.executable, str(SCRIPT), str(directory)], check=True, capture_output=True)
    return directory


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("handmade"))
