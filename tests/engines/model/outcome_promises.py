"""What an operation tells its caller, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engines.model.journal import Event, Outcome, outcome_of
from engines.model.promise import promised


@promised("docs/concepts/commits.md", "How one ends")
def outcome_is_as_told(
    error: Exception | None, before: Any, after: Any, end: Any, *, plain: Callable[[Any], Any], is_resumable: bool
) -> list[str]:
    """What was acknowledged is there, of what was refused nothing is, and every error says which of both, or that nobody knows.

    error         what the caller met
    before, after what can be read before and after the operation
    end           ``plain`` of what can be read after it where nothing fails: without ids and times
    is_resumable  one that is refused in the middle may leave a part, and goes on from there
    """
    outcome = Outcome.OK if error is None else outcome_of(error)
    if outcome is Outcome.OK:
        return [] if plain(after) == end else [f"done, and it is not there: {difference(end, plain(after))}"]
    if outcome is Outcome.BROKEN:
        return [f"{error!r} is no kind of error that says what became of it"]
    if outcome is not Outcome.UNKNOWN and after != before and not is_resumable:
        return [f"something happened: {difference(before, after)}"]
    return []


@promised("docs/concepts/commits.md", "How one ends")
def errors_say_what_became_of_it(events: Iterable[Event]) -> list[str]:
    """No client meets an error that nobody should: something unreadable, or an error that is none of ours."""
    return [f"nobody should ever be told: {event}" for event in events if event.outcome is Outcome.BROKEN]


def difference(wanted: Any, found: Any, path: str = "") -> str:
    """Where two nested dictionaries differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        differing = [name for name in {*wanted, *found} if wanted.get(name) != found.get(name)]
        return "; ".join(difference(wanted.get(name), found.get(name), f"{path}/{name}") for name in sorted(differing))
    return f"{path} is {found}, not {wanted}"
