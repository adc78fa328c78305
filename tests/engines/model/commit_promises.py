"""Commits of one reference: what clients were told of them, and what the reference holds in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from engines.model.journal import COMMIT, LOOK, Event, Outcome
from engines.model.linearizability import Operation, find_anomaly
from engines.model.promise import promised
from engines.model.realm_walk import Chain
from headwater.store import ObjectId, id_text

NOT_DONE = (Outcome.REFUSED, Outcome.BEATEN)
COMMITS = "docs/concepts/commits.md"


@dataclass(frozen=True, slots=True)
class FoundCommit:
    """A commit of a history.

    number        how many commits the reference had with it, less those from before the clients began
    markers       what it puts that one client alone asked for
    """

    id: ObjectId
    number: int
    markers: tuple[str, ...]


@dataclass(frozen=True)
class FoundHistory:
    """What a store holds of a reference.

    where         the reference in words
    commits       newest first, as far as they can be read: a collection may have cut the rest
    there         every marker that holds at the head
    before        how many commits there were before the clients began
    """

    where: str
    commits: Sequence[FoundCommit]
    there: frozenset[str]
    before: int = 0

    @cached_property
    def put_by(self) -> Mapping[str, list[FoundCommit]]:
        found: dict[str, list[FoundCommit]] = {}
        for commit in self.commits:
            for marker in commit.markers:
                found.setdefault(marker, []).append(commit)
        return found


@promised(COMMITS, "How one ends")
def acknowledged_commits_are_there(history: FoundHistory, events: Iterable[Event]) -> list[str]:
    """A commit that was acknowledged stays in the history of its reference.

    history       of a reference that nobody moves but by commits
    events        all operations on it
    """
    told = [event for event in commits_of(events) if event.outcome is Outcome.OK]
    return [f"{history.where}: {event} was acknowledged, and is lost" for event in told if event.marker not in history.there]


@promised(COMMITS, "How one ends")
def refused_commits_are_not_there(history: FoundHistory, events: Iterable[Event]) -> list[str]:
    """A commit that was refused is in no history."""
    known = history.there | history.put_by.keys()
    return [
        f"{history.where}: {event.marker} is there, and its client was told that it is not: {event}"
        for event in commits_of(events)
        if event.outcome in NOT_DONE and event.marker in known
    ]


@promised(COMMITS, "When the database gives no answer")
def commits_take_effect_once(history: FoundHistory, events: Iterable[Event]) -> list[str]:
    """A commit is in a history once at most, under the id and the number that its client was told, and is no other client's."""
    faults = [
        f"{history.where}: commits {' and '.join(id_text(commit.id) for commit in commits)} both put {marker}"
        for marker, commits in history.put_by.items()
        if len(commits) > 1
    ]
    told_ids = Counter[ObjectId]()
    for event in commits_of(events):
        told, number = event.found.get("commit"), event.found.get("number")
        if event.outcome is not Outcome.OK or told is None:
            continue
        told_ids[told] += 1
        for commit in history.put_by.get(event.marker, []):
            if commit.id != told:
                faults.append(
                    f"{history.where}: {event.marker} was put by {id_text(commit.id)}, and its client was told {id_text(told)}"
                )
            elif number not in (None, commit.number):
                faults.append(f"{history.where}: {event.marker} is number {commit.number}, and its client was told {number}")
    return faults + [f"{history.where}: {n} clients were told of commit {id_text(one)}" for one, n in told_ids.items() if n > 1]


@promised(COMMITS, "What a commit holds")
def commits_were_asked_for(history: FoundHistory, events: Iterable[Event]) -> list[str]:
    """Every commit of a history is one that a client asked for.

    events        of commits of the whole store; those without a marker are of clients that died before they knew one
    """
    asked = list(commits_of(events))
    nameless = sum(not event.marker and event.outcome is Outcome.UNKNOWN for event in asked)
    strange = sorted((history.there | history.put_by.keys()) - {event.marker for event in asked})
    return [f"{history.where}: {marker} was never asked for" for marker in strange[nameless:]]


@promised(COMMITS, "What a commit holds")
def commits_put_one_marker_each(history: FoundHistory) -> list[str]:
    """A history has as many commits as clients made, no one more.

    history       of a reference on which every commit puts one marker
    """
    count = history.commits[0].number if history.commits else 0
    if count == len(history.there):
        return []
    return [f"{history.where}: {count} commits since the beginning put {len(history.there)} markers"]


@promised(COMMITS, "Reading history")
def history_is_in_order(chain: Chain, where: str, *, is_whole: bool = False) -> list[str]:
    """Along a history numbers go down by one, times fall, and each commit names its ancestors.

    is_whole      nothing was cut: it goes back to its first commit
    """
    numbers = [commit.seq for _, commit in chain.commits()]
    is_cut = is_whole and numbers[-1:] not in ([], [1])
    return chain.faults(where) + ([f"{where}: the history ends at number {numbers[-1]}"] if is_cut else [])


@promised(COMMITS, "How one ends")
def looks_see_what_was_told(history: FoundHistory, events: Sequence[Event]) -> list[str]:
    """Commits and looks happened at one instant each: a look sees what was acknowledged before it, and none goes back.

    history       of a reference that nobody moves but by commits, each of one marker
    events        all operations on it; a look's ``found`` has "markers", how many it saw, and may have the head's "seq" or "commit"
    """
    numbers, faults = {commit.id: commit.number for commit in history.commits}, list[str]()
    for look in (event for event in events if event.action == LOOK and event.outcome is Outcome.OK):
        seen = look.found["markers"]
        if look.found.get("seq", seen + history.before) != seen + history.before:
            faults.append(f"{history.where}: {look}: its commit has another number than markers")
        if "commit" in look.found and numbers.get(look.found["commit"], 0) != seen:
            faults.append(f"{history.where}: {look}: its commit is number {numbers.get(look.found['commit'], 0)}")
    anomaly = find_anomaly(_operations(history, events), _CountedCommits())
    return faults if anomaly is None else [*faults, f"{history.where}: {anomaly}"]


def commits_of(events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event.action == COMMIT)


def _operations(history: FoundHistory, events: Iterable[Event]) -> Iterator[Operation]:
    """What may have happened. A commit that can be read has a known number; one that was cut, and whose answer is lost, has none."""
    numbers = {marker: commits[0].number for marker, commits in history.put_by.items()}
    cut = 0
    for event in sorted(events, key=lambda event: event.called):
        if event.action == LOOK and event.outcome is Outcome.OK:
            yield Operation(event.client, LOOK, event.called, event.returned, event.found["markers"])
        elif event.action != COMMIT or event.outcome in NOT_DONE:
            continue
        elif event.marker in numbers:
            is_told = event.outcome is Outcome.OK
            yield Operation(
                event.client, _Numbered(numbers[event.marker]), event.called, event.returned if is_told else None, True
            )
        elif event.outcome is Outcome.OK:
            yield Operation(event.client, COMMIT, event.called, event.returned, True)
        elif event.marker in history.there or not event.marker:
            yield Operation(event.client, _Unclear(cut), event.called)
            cut += 1


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int


@dataclass(frozen=True, slots=True)
class _Unclear:
    """A commit whose answer is lost, and whose row was cut. All such commits look alike to every client, so it is enough to try them in
    the order of their calls.
    """

    turn: int


class _CountedCommits:
    """The sequential truth: how many commits there are, and how many of them are unclear."""

    initial: Hashable = (0, 0)

    def apply(self, value: Hashable, call: Hashable) -> tuple[Hashable, Hashable]:
        count, unclear = value  # type: ignore[misc]  # as in ``initial``
        match call:
            case _Numbered(number):
                return ((count + 1, unclear), True) if number == count + 1 else (value, False)
            case _Unclear(turn):
                return ((count + 1, unclear + 1) if turn == unclear else value), True
            case "commit":
                return (count + 1, unclear), True
        return value, count
