"""What another process commits meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from callers import at_once
from counters import Answer, tell
from grounds import Ground

__all__ = ["two_hundred"]


def two_hundred(ground: Ground, journal: list[Answer]) -> Callable[[], None]:
    """Two hundred commits of another process, most of them combined."""
    others = ground.open(is_safe=True)

    def act() -> None:
        works = [lambda client=client: [tell(others, f"other {client}") for _ in range(25)] for client in range(8)]  # type: ignore[misc]
        for answers in at_once(works):
            journal.extend(answers)

    return act
