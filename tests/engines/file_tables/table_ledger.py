"""Which ingests were begun and done, read from the journals of all processes while they go on."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["IngestLedger"]


class IngestLedger:
    """``begun`` and ``done`` are names of ingests, as far as the journals were read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.begun: set[str] = set()
        self.done: set[str] = set()

    def read_on(self) -> None:
        """Read what was added since."""
        for path in self._folder.glob("ingest-*.journal"):
            with path.open("rb") as journal:
                journal.seek(self._read.get(path, 0))
                lines = journal.read()
            whole = lines[: lines.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            for line in whole.splitlines():
                note = json.loads(line)
                if note["what"] in ("begun", "done"):
                    (self.begun if note["what"] == "begun" else self.done).add(note["ingest"])
