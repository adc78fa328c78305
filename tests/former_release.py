"""The release before this one, from the history of the repository: run beside today's, on the same store.

The dependencies of both are the same, so its sources and its entry points in a folder that comes first on the path are enough.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path

import pytest

__all__ = ["FORMER", "FormerRelease"]

FORMER = "410cdb0c"
"""The commit of release 0.1.0. Tags need not travel with a branch."""
_ROOT = Path(__file__).resolve().parents[1]
_SECONDS = 120
_LATER = """
import sys
from headwater.clock import Micros, SystemClock

class Later(SystemClock):
    def now(self):
        return Micros(super().now() + {seconds} * 1_000_000)
"""


class FormerRelease:
    """Its sources in a folder. The test is skipped where the history does not have it."""

    def __init__(self, folder: Path) -> None:
        sources = ["core", "server", "workers", "operator", "pyproject.toml"]
        archived = subprocess.run(
            ["git", "-C", str(_ROOT), "archive", FORMER, *sources], capture_output=True, timeout=_SECONDS, check=False
        )
        if archived.returncode:
            why = archived.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            pytest.skip(f"the history has no commit {FORMER} (a shallow clone?): {why[0]}")
        with tarfile.open(fileobj=BytesIO(archived.stdout)) as archive:
            archive.extractall(folder, filter="data")
        self.folder = folder
        self._core = folder / "core"
        self._write_metadata(tomllib.loads((folder / "pyproject.toml").read_text()))
        self._path = os.pathsep.join(str(folder / source) for source in sources[:-1])

    def run(self, code: str, *arguments: str, days_later: float = 0) -> subprocess.CompletedProcess[str]:
        """Run code with ``sys.argv[1:]`` and a ``Later`` clock, so many days ahead."""
        code = _LATER.format(seconds=round(days_later * 86_400)) + code
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**environment, "PYTHONPATH": self._path},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def _write_metadata(self, project: dict[str, dict[str, dict[str, dict[str, str]]]]) -> None:
        """What pip would have written: its own entry points, which go before those of the installed release."""
        info = self._core / "headwater-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headwater\nVersion: 0.1.0\n")
        groups = project["project"]["entry-points"]
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{name} = {at}" for name, at in points.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
