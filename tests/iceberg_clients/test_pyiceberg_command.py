"""pyiceberg's command line, configured by the file that `headwater client-config` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_lakes import ClientLake
from client_texts import printed_config, run_program

pytestmark = pytest.mark.long

RunCommands = Callable[..., list[Any]]
PROGRAM = """
import json, sys
from click.testing import CliRunner
from pyiceberg.cli.console import run
for line in json.loads(sys.argv[1]):
    result = CliRunner().invoke(run, ["--output", "json", *line.split()], color=False)
    print(json.dumps([result.exit_code, result.stdout, str(result.exception or "")]))
"""
"""Many commands in one process, for each one alone takes a second to start."""


@pytest.fixture
def run_commands(lake: ClientLake, tmp_path: Path) -> RunCommands:
    """Run commands on the lake in one process that has the file in its home: gives what each prints, or its error."""
    (tmp_path / ".pyiceberg.yaml").write_text(printed_config(lake, "pyiceberg", "yaml"), encoding="utf-8")

    def run(*lines: str) -> list[Any]:
        name = lake.warehouse.partition("/")[2]
        commands = json.dumps([f"--catalog {name} {line}" for line in lines])
        said = run_program(sys.executable, "-c", PROGRAM, commands, PYICEBERG_HOME=str(tmp_path), COLUMNS="1000")
        ended = [json.loads(line) for line in said.splitlines()]
        return [_parsed(text) if code == 0 else (code, text) for code, text, _ in ended]

    return run


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith(("[", "{", '"')) else text


def test_command_line_shows_a_table(lake: ClientLake, run_commands: RunCommands) -> None:
    table = lake.create_orders((1, "Bern"), (2, "Graz"))
    lake.connect().load_table("sales.orders").manage_snapshots().create_tag(
        table.metadata.current_snapshot_id or 0, "v1"
    ).commit()

    namespaces, tables, described, files, schema, spec, uuid, location, refs = run_commands(
        "list",
        "list sales",
        "describe sales.orders",
        "--output text files sales.orders",
        "schema sales.orders",
        "spec sales.orders",
        "uuid sales.orders",
        "location sales.orders",
        "list-refs sales.orders",
    )

    assert (namespaces, tables) == (["sales"], ["sales.orders"])
    assert described["metadata"]["table-uuid"] == uuid["uuid"] == str(table.metadata.table_uuid)
    assert location == table.location()
    assert [field["name"] for field in schema["fields"]] == ["id", "city"]
    assert spec == {"spec-id": 0, "fields": []}
    assert {(ref["name"], ref["type"]) for ref in refs} == {("main", "branch"), ("v1", "tag")}
    assert ".parquet" in files


def test_command_line_changes_a_catalog(lake: ClientLake, run_commands: RunCommands) -> None:
    lake.create_orders((1, "Bern"))

    *changes, namespace, table, missing = run_commands(
        "create namespace archive",
        "properties set namespace archive owner ann",
        "properties set table sales.orders owner bob",
        "rename sales.orders archive.orders",
        "properties get namespace archive owner",
        "properties get table archive.orders owner",
        "properties remove table archive.orders owner",
        "properties remove namespace archive owner",
        "drop table archive.orders",
        "drop namespace sales",
        "drop namespace archive",
        "properties get namespace archive",
        "describe sales.orders",
        "uuid archive.orders",
    )

    assert changes[4:6] == ["ann", "bob"]
    assert [change for change in changes if isinstance(change, tuple)] == []
    assert all(refused[0] == 1 for refused in (namespace, table, missing))
    assert lake.connect().list_namespaces() == []
