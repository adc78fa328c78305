"""Engines that the set-up of the long tests installs, each as a test takes it; without one, the test is skipped and says why."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from client_lakes import ClientLake

from servers.s3 import S3_LOGIN

DAFT = Path(__file__).parents[2] / ".tools" / "daft"
_HINT = "`scripts/setup.sh engines` installs it where pip has it"
_EXTENSIONS = ("avro", "httpfs", "iceberg")
_SECONDS = 120


def import_engine(name: str) -> Any:
    """The module of DuckDB or Polars."""
    return pytest.importorskip(name, reason=f"{name} is not installed: {_HINT}")


def extension_files() -> list[Path]:
    """DuckDB's extensions, in the order in which they can be loaded."""
    import_engine("duckdb")
    specs = [find_spec(f"duckdb_extension_{name}") for name in _EXTENSIONS]
    folders = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None]
    if len(folders) < len(_EXTENSIONS):
        pytest.skip(f"DuckDB's extensions {', '.join(_EXTENSIONS)} are not all installed: {_HINT}, on Linux")
    return [next(folder.rglob("*.duckdb_extension")) for folder in folders]


def connect_duckdb(**lakes: ClientLake) -> Any:
    """A connection of DuckDB with lakes attached by their names."""
    files = extension_files()
    connection = import_engine("duckdb").connect(config={"autoinstall_known_extensions": "false"})
    for file in files:
        connection.execute(f"load '{file}'")
    for name, lake in lakes.items():
        if lake.endpoint:
            connection.execute(f"create or replace secret (type s3, {_duckdb_login(lake)})")
        options = f"type iceberg, endpoint '{lake.uri}', authorization_type 'none', access_delegation_mode 'none'"
        connection.execute(f"attach '{lake.warehouse}' as {name} ({options})")
    return connection


def _duckdb_login(lake: ClientLake) -> str:
    login = {"key_id": S3_LOGIN["access-key-id"], "secret": S3_LOGIN["secret-access-key"], "region": "us-east-1"}
    address = {"endpoint": lake.endpoint.removeprefix("http://"), "url_style": "path"}
    return ", ".join([*(f"{name} '{value}'" for name, value in {**login, **address}.items()), "use_ssl false"])


def daft_python() -> Path:
    """The interpreter of Daft's own environment."""
    if not (DAFT / ".complete").exists():
        pytest.skip(f"Daft is not in .tools, where it has the older pyarrow that it wants: {_HINT}")
    return DAFT / "bin" / "python"


def run_daft(program: str, lake: ClientLake) -> Any:
    """What a program makes ``result``; it has ``daft`` and the ``catalog`` of pyiceberg."""
    begin = "import daft, json, sys\nfrom pyiceberg.catalog import load_catalog\ncatalog = load_catalog('lake', **json.loads(sys.argv[1]))"
    command = [str(daft_python()), "-c", f"{begin}\n{program}\nprint(json.dumps(result))", json.dumps(lake.properties)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYICEBERG_", "PYTHON"))}
    done = subprocess.run(
        command, env={**kept, "DO_NOT_TRACK": "true"}, check=False, capture_output=True, text=True, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
