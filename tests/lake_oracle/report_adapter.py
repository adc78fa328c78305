"""Headwater's report of a lake's files, for a verdict. The one place here that knows what its parts are called."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from headwater.catalogs import Catalogs
from headwater.lake_files import report_files
from lake_oracle.lake_verdict import OWN_FOLDER, OWN_MARKER, LakeView, RunOutcome
from lake_oracle.live_files import real_path
from lake_oracle.random_lake import RandomLake


class HeadwaterReport:
    """Headwater on one lake. It needs no word of what happens there: it has the store."""

    def __init__(self, lake: RandomLake) -> None:
        self._lake = lake

    def save(self) -> None: ...
    def roll_back(self) -> None: ...
    def took(self, paths: Iterable[str], places: Collection[str]) -> None: ...

    def run(self, view: LakeView) -> RunOutcome:
        """Report, and see to it that nothing of the lake was changed."""
        lake = self._lake
        before = _contents(view.folder)
        rows = lake.rows(view.realm)
        read = report_files(lake.store, rows, Catalogs(rows).read_catalog(view.catalog))
        changed = {path for path, _ in before.items() ^ _contents(view.folder).items()}
        assert not changed, f"the report has changed {sorted(changed)}"
        marks = {real_path(mark.path): str(mark.code) for mark in read.marks()}
        assert read.report.blocked_total == len(read.report.blocked)
        return RunOutcome(marks, {real_path(block.location): str(block.code) for block in read.report.blocked})


def _contents(folder: Path) -> dict[str, tuple[int, int, str]]:
    """All files of a lake but what reports write: size, time and digest."""
    found = {}
    for inner, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != OWN_FOLDER]
        for name in names:
            if not name.startswith((OWN_MARKER, "store.db")):
                path = Path(inner, name)
                facts = path.stat()
                found[str(path)] = facts.st_size, facts.st_mtime_ns, hashlib.blake2b(path.read_bytes()).hexdigest()
    return found
