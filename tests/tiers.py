"""Two tiers of tests: ``make test`` runs the quick ones, and ``make test-long`` those that are marked ``long``.

A test that takes long as a whole bears the mark. Of others the quick tier takes a part, and the long tier the rest:

- no case on a database server: a contract that holds on memory and SQLite is repeated on servers by the long tier
- of a test with many cases at most QUICK_CASES, in SAMPLED_FOLDERS one: chosen by the hash of their names, so always the same
- 30 examples of a property that names no number of them; where it is long, and without ``-m``, 100
- the parameters that ``long_but_for`` names, and a few of the moments that the ``sample`` fixture goes through

The long tier runs all cases of a test up to LONG_CASES, and of more an eighth, but no fewer: others at each run, by the seed that the run
shows. An expensive test marked ``rare(n)`` is in one of n runs, by the same seed. A soak (HEADWATER_SOAK=1) runs all tests and cases, and
tries all moments and more seeds. ``pytest tests/x`` without ``-m`` runs both tiers of a folder, with all cases.
"""

from __future__ import annotations

import itertools
import os
import random
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

__all__ = ["IS_SOAK", "Sample", "cases_for_soaks", "long_but_for", "mark_long_cases", "tries_less_than_another"]

T = TypeVar("T")
IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"
_LONG_STRIDE = 5
QUICK_CASES = 2
LONG_CASES = 3
SAMPLED_FOLDERS = frozenset({"chart", "crds", "engines", "house"})
SERVERS = frozenset({"postgresql", "mongodb"})
SERVER_FIXTURES = frozenset(f"{server}_{kind}" for server in SERVERS for kind in ("server", "url"))


def long_but_for(quick: Collection[Any], values: Iterable[Any], *, rare: int = 1) -> list[Any]:
    """Parameters of which only some are tried in the quick tests, and all others in the long ones.

    rare          the others are tried by one run in so many
    """
    marks = [pytest.mark.long, pytest.mark.rare(rare)]
    return [value if value in quick else pytest.param(value, marks=marks) for value in values]


@dataclass(frozen=True)
class Sample:
    """Which of many moments a test tries: a few in the quick tests, one in five or more in the long ones, all in a soak."""

    is_quick: bool

    def one_in(self, stride: int, moments: Iterable[T]) -> Iterator[T]:
        """Every so many, from one that chance chooses: the seed that pytest shows, as ``-p randomly_seed``, repeats it.

        stride        of the quick tests; the long ones try more
        """
        step = stride if self.is_quick else 1 if IS_SOAK else min(_LONG_STRIDE, (stride + 1) // 2)
        offset = random.randrange(step)
        print(f"of the moments from number {offset} on, one in {step}")  # noqa: T201 - shown with a failure
        return itertools.islice(moments, offset, None, step)

    def at_least(self, count: int, *, quick: int = 0) -> int:
        """How many moments are tried at least, where all are so many."""
        return quick if self.is_quick else count if IS_SOAK else count // _LONG_STRIDE


def tries_less_than_another(item: pytest.Item) -> bool:
    """Whether a long test tries some moments: its twin that tries all of them is long in any case."""
    moments = item.callspec.params.get("sample") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    return moments == "some" and item.get_closest_marker("long") is not None


def mark_long_cases(items: Iterable[pytest.Item], folder: str) -> None:
    """Mark what the quick tier leaves to the long one: cases on servers, and of each test the cases beyond a few.

    folder  the one below ``tests`` that the items are in
    """
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if needs_server(item):
            item.add_marker(pytest.mark.long)
        elif item.get_closest_marker("long") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        found.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in found[1 if folder in SAMPLED_FOLDERS else QUICK_CASES :]:
            item.add_marker(pytest.mark.long)


def cases_for_soaks(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """What a run of the long tier leaves out: rare tests whose turn it is not, and cases of tests that have more than LONG_CASES."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    left_out = []
    for item in items:
        if item.get_closest_marker("long") is None or tries_less_than_another(item):
            continue
        rare = item.get_closest_marker("rare")
        if rare is not None and _chance(item, seed) % rare.args[0]:
            left_out.append(item)
        else:
            cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        found.sort(key=lambda item: _chance(item, seed))
        left_out += found[max(LONG_CASES, -(-len(found) // 8)) :]
    return left_out


def _chance(item: pytest.Item, seed: int) -> int:
    return zlib.crc32(f"{seed} {item.nodeid}".encode())


def needs_server(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return not SERVER_FIXTURES.isdisjoint(item.fixturenames) or any(
        isinstance(value, str) and value in SERVERS for value in values
    )
