"""Two tiers of tests: ``make test`` runs what is not marked ``long``, and ``make test-long`` what is.

A test that takes long as a whole bears the mark. Where only some of its parameters do, or only the last call of a thousand adds to
the time, the quick tests take a part and the long ones the rest, or many of all; a soak (HEADWATER_SOAK=1) takes all.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

__all__ = ["Sample", "long_but_for", "tries_less_than_another"]

T = TypeVar("T")
IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"
_LONG_STRIDE = 5


def long_but_for(quick: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Parameters of which only some are tried in the quick tests, and all others in the long ones."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.long) for value in values]


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
