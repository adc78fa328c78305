"""What `headwater client-config` prints, run word for word against a server."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from client_lakes import ClientLake
from client_texts import PYTHON_ENGINES, printed_config, python_with, rows_of_sql, run_program
from installed_engines import daft_python, import_engine

from headwater.engines.engine_configs import parse_engine
from pynessie_env import pynessie_program

pytestmark = pytest.mark.long

ROWS = ((1, "Oslo"), (2, "Bergen"))


@pytest.mark.parametrize("engine", PYTHON_ENGINES)
def test_python_of_engine_reads_the_table(lake: ClientLake, engine: str) -> None:
    python = python_with(engine)
    lake.create_orders(*ROWS)

    assert "Bergen" in run_program(python, "-c", printed_config(lake, engine, "python"))


def test_sql_of_duckdb_reads_the_table(lake: ClientLake, tmp_path: Path) -> None:
    lake.create_orders(*ROWS)

    assert rows_of_sql(printed_config(lake, "duckdb", "sql"), tmp_path / "extensions") == [*ROWS]


def test_yaml_is_read_by_pyicebergs_command_line(lake: ClientLake, tmp_path: Path) -> None:
    lake.create_orders(*ROWS)
    (tmp_path / ".pyiceberg.yaml").write_text(printed_config(lake, "pyiceberg", "yaml"), encoding="utf-8")
    program = str(Path(sys.executable).with_name("pyiceberg"))

    name = lake.warehouse.partition("/")[2]
    listed = run_program(program, "--catalog", name, "list", "sales", PYICEBERG_HOME=str(tmp_path))

    assert "sales.orders" in listed


def test_curl_is_answered(lake: ClientLake) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")

    assert f'"prefix":"{lake.warehouse.replace("/", "~")}"' in run_program("bash", "-c", printed_config(lake, "curl", "shell"))


@pytest.mark.parametrize("engine", ["pyiceberg", "duckdb", "daft", "polars", "pynessie"])
def test_versions_that_are_told_are_those_that_run(engine: str) -> None:
    told = re.findall(r"(\w+) (\d[\d.]*)", parse_engine(engine).tried)
    assert told
    if engine in ("daft", "pynessie"):
        python = str(daft_python()) if engine == "daft" else pynessie_program("python")
        ask = "import importlib.metadata as known, sys; print(*map(known.version, sys.argv[1:]))"
        numbers = run_program(python, "-c", ask, *(name for name, _ in told)).split()
    else:
        import_engine(engine)
        numbers = [version(name) for name, _ in told]

    assert [name for (name, number), runs in zip(told, numbers, strict=True) if not f"{runs}.".startswith(f"{number}.")] == []


def test_text_of_pynessie_lists_the_contents(lake: ClientLake, tmp_path: Path) -> None:
    lake.create_orders(*ROWS)
    program = Path(pynessie_program())
    variables = {"HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    file = tmp_path / ".config" / "nessie" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(printed_config(lake, "pynessie", "yaml"), encoding="utf-8")

    assert "sales.orders" in run_program("bash", "-c", printed_config(lake, "pynessie", "shell"), **variables)
    assert "['sales', 'orders']" in run_program("python", "-c", printed_config(lake, "pynessie", "python"), **variables)
    assert "sales.orders" in run_program("nessie", "content", "list", **variables)
