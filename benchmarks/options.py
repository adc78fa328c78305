"""What the command line of a suite says."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.places import KINDS
from benchmarks.report import say

__all__ = ["Options", "others_are_there", "read_options"]

OTHERS = ("pyiceberg", "psycopg2", "ZODB")


@dataclass(frozen=True)
class Options:
    """``--quick --backends=memory,sqlite --into=FOLDER --only=one,writer``, each of them optional."""

    is_quick: bool
    backends: tuple[str, ...]
    only: tuple[str, ...]
    """Parts of the suite to run; all of them when empty."""
    into: Path | None
    load: float
    """Of the machine, before the run."""

    @property
    def is_part(self) -> bool:
        """Whether the figures are too few to take the place of a full run's."""
        return self.is_quick or set(self.backends) != set(KINDS) or bool(self.only)

    def wants(self, part: str) -> bool:
        return not self.only or part in self.only


def read_options(arguments: Sequence[str], parts: Sequence[str]) -> Options:
    """Raises SystemExit with a sentence for a backend or a part that there is not."""
    backends = _list(arguments, "--backends=") or KINDS
    only = _list(arguments, "--only=")
    _check("backend", backends, KINDS)
    _check("part", only, parts)
    into = next((one.removeprefix("--into=") for one in arguments if one.startswith("--into=")), None)
    return Options("--quick" in arguments, tuple(backends), tuple(only), Path(into) if into else None, os.getloadavg()[0])


def others_are_there() -> bool:
    """Whether what we compare with is installed. What cannot be measured here is said, never left out in silence."""
    missing = [name for name in OTHERS if find_spec(name) is None]
    if missing:
        say(f"what others offer is left out: {', '.join(missing)} is not installed; `scripts/setup.sh contenders` does it")
    return not missing


def _list(arguments: Sequence[str], name: str) -> tuple[str, ...]:
    found = next((one.removeprefix(name) for one in arguments if one.startswith(name)), "")
    return tuple(found.split(",")) if found else ()


def _check(what: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    if unknown := sorted(set(wanted) - set(there)):
        print(f"there is no {what} {', '.join(unknown)}; there is: {', '.join(there)}", file=sys.stderr)
        raise SystemExit(2)
