"""The counts of results, as plain data."""

from __future__ import annotations

from typing import Any, Protocol


class CountedResult(Protocol):
    """The result of long work."""

    def as_plain(self) -> dict[str, Any]:
        """The counts by name, as a task's outcome has them."""
        ...


def plain_counts(result: CountedResult) -> dict[str, Any]:
    """The counts of a result by name, as the command line prints them in JSON."""
    return result.as_plain()
