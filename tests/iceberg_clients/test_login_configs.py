"""What `headwater client-config --credentials` prints, run word for word against a server that asks who calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from client_texts import PYTHON_ENGINES, printed_config, python_with, rows_of_sql, run_program

from guarded_realms import GuardedLake
from pynessie_env import pynessie_program

pytestmark = pytest.mark.long

SHOWN = pytest.mark.parametrize("shown", [(), ("--show-secret",)], ids=["named", "shown"])
FIRST = re.compile(r"^# first: (export .*)$", re.MULTILINE)


@pytest.fixture
def login(guarded_lake: GuardedLake, tmp_path: Path) -> tuple[str, str]:
    return "--credentials", str(guarded_lake.write_credentials(tmp_path / "reader.json"))


@SHOWN
@pytest.mark.parametrize("engine", PYTHON_ENGINES)
def test_python_of_engine_reads_the_table(
    guarded_lake: GuardedLake, login: tuple[str, str], engine: str, shown: tuple[str, ...]
) -> None:
    text = printed_config(guarded_lake, engine, "python", *login, *shown)

    assert "Graz" in run_program(python_with(engine), "-c", text)


@SHOWN
def test_sql_of_duckdb_reads_the_table(
    guarded_lake: GuardedLake, login: tuple[str, str], shown: tuple[str, ...], tmp_path: Path
) -> None:
    text = printed_config(guarded_lake, "duckdb", "sql", *login, *shown)

    assert rows_of_sql(text, tmp_path / "extensions") == [(1, "Bern"), (2, "Graz")]


@SHOWN
def test_yaml_is_read_by_pyicebergs_command_line(
    guarded_lake: GuardedLake, login: tuple[str, str], shown: tuple[str, ...], tmp_path: Path
) -> None:
    text = printed_config(guarded_lake, "pyiceberg", "yaml", *login, *shown)
    (tmp_path / ".pyiceberg.yaml").write_text(text, encoding="utf-8")
    program = str(Path(sys.executable).with_name("pyiceberg"))
    script = "\n".join([*FIRST.findall(text), f"'{program}' --catalog {guarded_lake.name} list sales"])

    assert "sales.orders" in run_program("bash", "-c", script, PYICEBERG_HOME=str(tmp_path))


@SHOWN
def test_curl_is_answered(guarded_lake: GuardedLake, login: tuple[str, str], shown: tuple[str, ...]) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    text = printed_config(guarded_lake, "curl", "shell", *login, *shown)

    assert f'"prefix":"acme~{guarded_lake.name}"' in run_program("bash", "-c", "\n".join([*FIRST.findall(text), text]))


@SHOWN
def test_program_in_javascript_is_one(guarded_lake: GuardedLake, login: tuple[str, str], shown: tuple[str, ...]) -> None:
    """That iceberg-js reads what its token may is tried where it is fetched; here its program is parsed."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = printed_config(guarded_lake, "iceberg-js", "javascript", *login, *shown)
    words = [node, "--check", "--input-type=module"]
    done = subprocess.run(words, input=text, text=True, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr


@SHOWN
def test_text_of_pynessie_lists_the_contents(
    guarded_lake: GuardedLake, login: tuple[str, str], shown: tuple[str, ...], tmp_path: Path
) -> None:
    program = Path(pynessie_program())
    variables = {"HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    texts = {form: printed_config(guarded_lake, "pynessie", form, *login, *shown) for form in ("shell", "python", "yaml")}
    file = tmp_path / ".config" / "nessie" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(texts["yaml"], encoding="utf-8")

    assert "sales.orders" in run_program("bash", "-c", "\n".join([*FIRST.findall(texts["shell"]), texts["shell"]]), **variables)
    assert "['sales', 'orders']" in run_program("python", "-c", texts["python"], **variables)
    if not shown:  # a token cannot be shown: it holds for an hour
        listed = "\n".join([*FIRST.findall(texts["yaml"]), "nessie content list"])
        assert "sales.orders" in run_program("bash", "-c", listed, **variables)
