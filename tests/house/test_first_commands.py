"""What the README's "A taste" shows is typed in its order, in an empty folder, by somebody who copies it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog

from headwater.cli import main

pytestmark = pytest.mark.long

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TASTE = README.partition("## A taste\n")[2].partition("\n## ")[0]
COMMANDS = [line.partition("#")[0].strip() for line in re.findall(r"^headwater .+$", TASTE, re.MULTILINE)]
PROGRAM = Path(sys.executable).with_name("headwater")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TASTE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder but for the manifests, and a warehouse with a real table where they look for it."""
    made, data = tmp_path_factory.mktemp("taste"), tmp_path_factory.mktemp("data") / "warehouse"
    data.mkdir()
    catalog = SqlCatalog("made", uri="sqlite://", warehouse=data.as_uri())
    catalog.create_namespace("sales")
    rows = pa.table({"id": [1, 2], "total": [9.5, 3.0]})
    catalog.create_table("sales.orders", rows.schema).append(rows)
    catalog.close()
    [manifests] = blocks("yaml")
    (made / "manifests").mkdir()
    (made / "manifests" / "acme.yaml").write_text(manifests.replace("file:///data/warehouse", data.as_uri()), encoding="utf-8")
    return made


def typed(folder: Path, *words: str | Path) -> str:
    """What a process prints as its error when it fails; empty when it ends with 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    done = subprocess.run(words, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=300)
    return done.stderr[-500:] or str(done.returncode) if done.returncode else ""


def said(line: str) -> str:
    """As ``typed``, in this process, which saves the start of another."""
    done = CliRunner().invoke(main, shlex.split(line)[1:], prog_name="headwater")
    return done.output[-500:] if done.exit_code else ""


def test_first_commands_work_in_their_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("HEADWATER_")]:
        monkeypatch.delenv(name)
    first, *others = COMMANDS
    [snippet] = blocks("python")

    assert typed(folder, PROGRAM, *shlex.split(first)[1:]) == ""
    assert [(line, fault) for line in others if (fault := said(line))] == []
    assert typed(folder, sys.executable, "-c", snippet) == ""
