"""Packages of third parties: installed into a folder as pip would, and used by a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["install", "run"]


def install(folder: Path, name: str, *, group: str, points: dict[str, str], modules: dict[str, str]) -> None:
    """A distribution with these entry points (name to ``module:attribute``) and these modules (name to source)."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


def run(code: str, *folders: Path) -> str:
    """What a fresh process prints, with those folders on its path."""
    path = os.pathsep.join([*(str(folder) for folder in folders), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
