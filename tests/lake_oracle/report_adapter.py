"""Headwater's report of a lake's files, for a verdict. The one place here that knows what its parts are called."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headwater.catalogs import Catalogs
from headwater.lake_files import FileEngine, report_files
from lake_oracle.lake_verdict import OWN_FOLDER, OWN_MARKER, LakeView, RunOutcome
from lake_oracle.live_files import real_path
from lake_oracle.random_lake import RandomLake


class HeadwaterReport:
    """Headwater on one lake. It needs no word of what happens there: it has the store.

    engine        None: in this process
    meanwhile     done by somebody else while the next run is on, once the run has asked so many times whether it may go on
    """

    def __init__(self, lake: RandomLake, engine: FileEngine | None = None) -> None:
        self._lake = lake
        self._engine = engine
        self.meanwhile: tuple[int, Callable[[], None]] | None = None

    def save(self) -> None: ...
    def roll_back(self) -> None: ...
    def took(self, paths: Iterable[str], places: Collection[str]) -> None: ...

    def run(self, view: LakeView) -> RunOutcome:
        """Report, and see to it that nothing of the lake was changed."""
        lake, is_alone = self._lake, self.meanwhile is None
        before = _contents(view.folder)
        rows = lake.rows(view.realm)
        definition = Catalogs(rows).read_catalog(view.catalog)
        read = report_files(lake.store, rows, definition, engine=self._engine, fence=self._interruption())
        changed = {path for path, _ in before.items() ^ _contents(view.folder).items()}
        assert not is_alone or not changed, f"the report has changed {sorted(changed)}"
        marks = {real_path(mark.path): str(mark.code) for mark in read.marks()}
        assert read.report.blocked_total == len(read.report.blocked)
        return RunOutcome(marks, {real_path(block.location): str(block.code) for block in read.report.blocked})

    def _interruption(self) -> Callable[[], None]:
        """A fence that lets the other one act, on a thread of its own: the report may be inside a commit."""
        calls, meanwhile = itertools.count(1), self.meanwhile
        self.meanwhile = None

        def fence() -> None:
            if meanwhile is not None and next(calls) == meanwhile[0]:
                with ThreadPoolExecutor(1) as other:
                    other.submit(meanwhile[1]).result()

        return fence


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
