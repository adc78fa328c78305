"""Callers who count on one reference, what each was told, and whether all of that can be true together."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from engines.model import (
    COMMIT,
    LOOK,
    Chain,
    Event,
    FoundCommit,
    FoundHistory,
    Outcome,
    Walk,
    acknowledged_commits_are_there,
    commits_put_one_marker_each,
    commits_take_effect_once,
    commits_were_asked_for,
    deleted_objects_are_not_needed,
    history_is_in_order,
    looks_see_what_was_told,
    refused_commits_are_not_there,
)
from headwater.commits import Transaction, commit_change, read_changes, read_head, read_log
from headwater.errors import UnavailableError, UnknownCommitError, UnknownOutcomeError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, id_text

__all__ = [
    "ADD",
    "LOOK",
    "NOT_DONE",
    "OPEN",
    "REFUSE",
    "TOLD",
    "Answer",
    "Refusal",
    "assert_exact",
    "count",
    "counted",
    "ids_of",
    "killed",
    "tell",
]

ADD, REFUSE = "add", "refuse"
TOLD, OPEN, NOT_DONE, KILLED = "told", "open", "not done", "killed"
_OUTCOMES = {TOLD: Outcome.OK, OPEN: Outcome.UNKNOWN, NOT_DONE: Outcome.REFUSED, KILLED: Outcome.UNKNOWN}


class Refusal(Exception):
    """What a change raises that does not want to; it says what it saw."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Answer(NamedTuple):
    """What one caller wished, when, and what it was told.

    commit_id     of one that was told: as in Committed; of one whose outcome is open: what to look for in the log
    """

    client: Hashable
    wish: str
    called: int
    returned: int
    kind: str
    number: int | None = None
    commit_id: ObjectId | None = None
    attempts: int = 0


def count(tx: Transaction) -> int:
    """Where the counter stands."""
    seen = tx.index("counters").get(b"n")
    return int(seen.data) if seen else 0


def counted(wish: str) -> Callable[[Transaction], int]:
    """The change that adds one and returns what it is then, or only looks, or refuses with what it saw."""

    def change(tx: Transaction) -> int:
        number = count(tx)
        if wish == REFUSE:
            raise Refusal(number)
        if wish == ADD:
            number += 1
            tx.index("counters").put(b"n", IndexValue(None, str(number).encode()))
        return number

    return change


def tell(
    rows: RealmStore,
    client: Hashable,
    wish: str = ADD,
    change: Callable[[Transaction], int] | None = None,
    *,
    name: str = "main",
) -> Answer:
    """Commit one change, and write down what came of it. Whatever else it raises is raised."""
    called = time.monotonic_ns()

    def answer(kind: str, number: int | None = None, commit_id: ObjectId | None = None, attempts: int = 0) -> Answer:
        return Answer(client, wish, called, time.monotonic_ns(), kind, number, commit_id, attempts)

    try:
        done = commit_change(rows, name, change or counted(wish))
    except Refusal as refusal:
        return answer(TOLD, refusal.number)
    except UnknownOutcomeError as fault:
        return answer(OPEN, None, _id_of(fault)) if wish == ADD else answer(NOT_DONE)
    except UnavailableError:
        return answer(NOT_DONE)
    assert done.changed == (wish == ADD), (wish, done)
    return answer(TOLD, done.result, done.commit_id, done.attempts)


def killed(client: Hashable, since: int) -> Answer:
    """What a caller was told who died since: nothing. It may have added one."""
    return Answer(client, ADD, since, since, KILLED)


def ids_of(journal: Iterable[Answer], kind: str, wish: str = ADD) -> set[ObjectId]:
    return {answer.commit_id for answer in journal if (answer.kind, answer.wish) == (kind, wish) and answer.commit_id}


def assert_exact(rows: RealmStore, journal: Sequence[Answer], *, deleted: Iterable[ObjectId] = ()) -> int:
    """Everything that callers were told is true, once and in one order; returns how far the counter got.

    deleted       objects that committers deleted
    """
    cold = rows.without_cache(budget_bytes=1 << 24)
    feed = [(found.id, int(done.data)) for found, done in read_changes(cold, "main") if done.index == "counters"]
    assert [number for _, number in feed] == list(range(1, len(feed) + 1))
    history = FoundHistory(
        "reference main",
        [FoundCommit(commit_id, number, (id_text(commit_id),)) for commit_id, number in reversed(feed)],
        frozenset(id_text(commit_id) for commit_id, _ in feed),
    )
    events = [_event_of(answer, number) for number, answer in enumerate(journal)]
    faults = acknowledged_commits_are_there(history, events) + refused_commits_are_not_there(history, events)
    faults += commits_take_effect_once(history, events) + commits_were_asked_for(history, events)
    faults += commits_put_one_marker_each(history) + looks_see_what_was_told(history, events)
    assert faults + _faults_of_rows(cold, len(feed), deleted) == []
    return len(feed)


def _event_of(answer: Answer, number: int) -> Event:
    """The answer as all engines write them: a caller that died knew no commit, and one that was refused has made none."""
    is_add = answer.wish == ADD
    found = {"number" if is_add else "markers": answer.number, "commit": answer.commit_id}
    if not is_add and answer.wish == REFUSE:
        del found["commit"]
    return Event(
        client=str(answer.client),
        number=number,
        action=COMMIT if is_add else LOOK,
        marker=id_text(answer.commit_id) if is_add and answer.commit_id is not None else "",
        called=answer.called,
        returned=None if answer.kind == KILLED else answer.returned,
        outcome=_OUTCOMES[answer.kind],
        found=found if answer.kind == TOLD else {},
    )


def _faults_of_rows(cold: RealmStore, commits: int, deleted: Iterable[ObjectId]) -> list[str]:
    """Whatever any commit leads to is there, reads as it did, and was never deleted by anybody."""
    newest = read_head(cold, "main", fresh=True)
    if newest is None:
        return [] if commits == 0 else [f"{commits} commits, and no head"]
    chain, walk = Chain(cold, newest.id), Walk(cold)
    found = list(read_log(cold, "main"))
    for one in found:
        walk.commit(one.id, "reference main")
    for one in (*found[:70], *found[-70:]):
        value = one.index("counters").get(b"n")
        assert value is not None
        assert int(value.data) == one.commit.seq
    assert newest.commit.seq == len(found) == commits
    faults = history_is_in_order(chain, "reference main", is_whole=True)
    return faults + walk.faults + deleted_objects_are_not_needed(walk, deleted)


def _id_of(fault: UnknownOutcomeError) -> ObjectId:
    """Whoever is told that an outcome is open is told what to look for."""
    assert isinstance(fault, UnknownCommitError), f"an unknown outcome without the commit's id: {fault}"
    assert id_text(fault.commit_id) in str(fault)
    return fault.commit_id
