"""The notebook of a lake runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from headwater import Settings
from headwater_workers.pipeline import find_engine

NOTEBOOK = Path(__file__).parents[2] / "examples" / "lake.ipynb"
SECONDS_PER_CELL = 120
SMALL_JOBS = """
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.sql.codegen.wholeStage false
"""
"""What a user's own configuration of Spark may say: compiling a job well takes longer than these jobs do."""


def test_notebook_is_kept_without_outputs() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]

    assert [cell.id for cell in cells if cell.outputs or cell.execution_count is not None] == []


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings())))
def test_notebook_runs_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "spark-defaults.conf").write_text(SMALL_JOBS, encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (folder := tmp_path / "lake").mkdir()
    notebook = nbformat.read(NOTEBOOK, as_version=4)

    NotebookClient(notebook, timeout=SECONDS_PER_CELL, resources={"metadata": {"path": str(folder)}}).execute()

    shown = [output.data["text/plain"] for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    assert shown[-1] == "[('Chad', 2, 21.0), ('Peru', 2, 14.5)]"
