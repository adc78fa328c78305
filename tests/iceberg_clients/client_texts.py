"""What `headwater client-config` prints, run by programs as their users run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from client_lakes import ClientLake
from installed_engines import daft_python, extension_files, import_engine

from guarded_realms import GuardedLake
from headwater.cli import main
from servers.s3 import S3_LOGIN

PYTHON_ENGINES = ("pyiceberg", "daft", "polars")
SECONDS = 60


def printed_config(lake: ClientLake | GuardedLake, engine: str, form: str, *further: str) -> str:
    """What the command prints, with further words to it."""
    url = lake.uri.removesuffix("/iceberg")
    words = ["client-config", engine, lake.warehouse, "--url", url, "--form", form, "--check", *further]
    result = CliRunner().invoke(main, words, prog_name="headwater")
    assert result.exit_code == 0, result.output
    return result.stdout


def run_program(*words: str, **environment: str) -> str:
    """What a process prints that ends with 0. Nobody tells it where the bucket is, only by which credentials it is read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HEADWATER_", "PYICEBERG_"))}
    login = {"AWS_ACCESS_KEY_ID": S3_LOGIN["access-key-id"], "AWS_SECRET_ACCESS_KEY": S3_LOGIN["secret-access-key"]}
    silence = {"DO_NOT_TRACK": "true"}  # else Daft calls its makers
    done = subprocess.run(
        words, env=kept | login | silence | environment, check=False, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0 or _died_when_all_was_done(done.stderr), done.stderr
    return done.stdout


def _died_when_all_was_done(complaint: str) -> bool:
    """Whether Python fell over while it ended: a thread of Daft's sometimes outlives the interpreter. What was printed counts."""
    return "Fatal Python error: PyGILState_Release" in complaint and "Python runtime state: finalizing" in complaint


def python_with(engine: str) -> str:
    if engine == "daft":
        return str(daft_python())
    import_engine(engine)
    return sys.executable


def rows_of_sql(text: str, folder: Path) -> list[tuple[int, str]]:
    """What a new DuckDB answers to a text that installs extensions from its folder."""
    files = extension_files()
    with import_engine("duckdb").connect(config={"extension_directory": str(folder)}) as connection:
        for file in files:
            connection.execute(f"INSTALL '{file}'")
        answered: list[tuple[int, str]] = connection.execute(text).fetchall()
    return answered
