"""The surface of the public API: what is in it is written down, explained and typed, so that a change of it is a decision."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.clients.pyiceberg import HeadwaterCatalog

ROOT = Path(__file__).parents[2]
SURFACE = Path(__file__).with_name("api_surface.txt")
UNEXPLAINED = ("__version__", "Key", "Observe", "PolicyName")
"""A text, and names of types, which hold no docstring of their own."""
GUIDE = ROOT / "docs" / "how-to" / "python.md"


def public_classes() -> list[type]:
    return [
        value
        for name in headwater.__all__
        if inspect.isclass(value := getattr(headwater, name)) and value.__module__.startswith("headwater.api.")
    ]


def methods_of(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(kind).items()):
        if not name.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
            yield name, value


def lines_of(kind: type) -> Iterator[str]:
    if dataclasses.is_dataclass(kind):
        yield from (f"{kind.__name__}.{field.name}: {field.type}" for field in dataclasses.fields(kind))
        return
    for owner in reversed(kind.__mro__[:-1]):
        if owner.__module__.startswith("headwater.api"):
            for name, value in methods_of(owner):
                signature = "" if isinstance(value, property) else inspect.signature(getattr(kind, name))
                yield f"{kind.__name__}.{name}{signature}"


def surface() -> str:
    classes = [line for kind in sorted(public_classes(), key=lambda kind: kind.__name__) for line in lines_of(kind)]
    names = [f"headwater.{name}" for name in headwater.__all__]
    return "\n".join([*names, f"headwater.connect{inspect.signature(headwater.connect)}", *classes]) + "\n"


def test_surface_is_the_one_that_is_written_down() -> None:
    """To change it on purpose: ``python tests/api/test_api_surface.py``, and a line in the change log."""
    assert surface() == SURFACE.read_text(encoding="utf-8")


def test_every_name_is_there_and_explained() -> None:
    unexplained = [name for name in headwater.__all__ if name not in UNEXPLAINED and not getattr(headwater, name).__doc__]
    assert unexplained == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        headwater.nothing  # noqa: B018 - it is looked up


@pytest.mark.parametrize("kind", [*public_classes(), HeadwaterCatalog], ids=lambda kind: kind.__name__)
def test_every_public_method_says_what_it_does(kind: type) -> None:
    silent = [name for name, value in methods_of(kind) if not inspect.getdoc(getattr(value, "__func__", value))]
    own = [name for name, value in methods_of(kind) if not getattr(getattr(value, "__func__", value), "__doc__", None)]
    assert silent == []
    assert kind is not HeadwaterCatalog or own == []


def test_importing_headwater_imports_little() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import sys, headwater; print(sorted(n for n in sys.modules if n.startswith('headwater')))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "['headwater']"


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.long
def test_documented_programs_are_typed(tmp_path: Path) -> None:
    """As a user checks a program: strictly, against the installed package."""
    program = tmp_path / "program.py"
    untyped = "import pyarrow as pa"  # has no types yet, as mypy says to everybody who uses it
    program.write_text("\n".join(programs()).replace(untyped, f"{untyped}  # type: ignore[import-untyped]"), encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_documented_programs_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for program in programs():
        exec(compile(program, str(GUIDE), "exec"), names)


if __name__ == "__main__":
    SURFACE.write_text(surface(), encoding="utf-8")
