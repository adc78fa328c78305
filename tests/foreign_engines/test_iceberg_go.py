"""A program with iceberg-go, whose catalog is the function that `headwater client-config iceberg-go` prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from engine_tools import MINUTES, OpenLake, printed_config, run_program, tool_folder

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * MINUTES)]
_SOURCES = Path(__file__).with_name("go_client")


def run_client(folder: Path, printed: str, **environment: str) -> list[str]:
    """The steps of the client: a line each, which begins with ``ok`` or ``FAIL``."""
    tool_folder("iceberg-go")
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    client = folder / "client"
    shutil.copytree(_SOURCES, client)
    (client / "catalog.go").write_text(printed, encoding="utf-8")
    run_program([go, "build", "-o", "client", "."], client, GOFLAGS="-mod=readonly", GOPROXY="off")
    return run_program([client / "client"], folder, **environment).splitlines()


def test_client_does_all_that_its_library_can(open_lake: OpenLake, tmp_path: Path) -> None:
    steps = run_client(tmp_path, printed_config("iceberg-go", open_lake.warehouse, open_lake.url, "go"))

    failed = [step.partition(":")[0] for step in steps if step.startswith("FAIL")]
    assert failed == ["FAIL append on the former version"], steps  # it does not try again by itself
    assert [step for step in steps if step.startswith("ok   rows")] == ["ok   rows 4", "ok   rows 3"]
    assert steps[-1] == "ok   drop namespace"
