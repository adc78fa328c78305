"""Callers who count on one reference, what each was told, and whether all of that can be true together."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from engines.properties.linearizability import Operation, find_anomaly
from headwater.commits import Transaction, commit_change, mark_reachable, read_changes, read_head, read_log
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

ADD, LOOK, REFUSE = "add", "look", "refuse"
TOLD, OPEN, NOT_DONE, KILLED = "told", "open", "not done", "killed"


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
    in_log = dict(feed)
    assert len(in_log) == len(feed), "a commit has two operations"
    _assert_told(journal, in_log)
    dead = sum(answer.kind == KILLED for answer in journal)
    unheard = in_log.keys() - ids_of(journal, TOLD) - ids_of(journal, OPEN)
    assert len(unheard) <= dead, f"{len(unheard)} commits that nobody was told of, with {dead} callers killed"
    assert find_anomaly(_history(journal, in_log), Counter()) is None
    _assert_whole(cold, deleted)
    return len(feed)


def _assert_told(journal: Sequence[Answer], in_log: dict[ObjectId, int]) -> None:
    adds = {answer.commit_id: answer.number for answer in journal if (answer.kind, answer.wish) == (TOLD, ADD)}
    assert len(adds) == sum((answer.kind, answer.wish) == (TOLD, ADD) for answer in journal), "two callers, one commit"
    wrong = {commit_id: number for commit_id, number in adds.items() if in_log.get(commit_id) != number}  # type: ignore[arg-type]
    assert not wrong, f"told, and not in the log like that: {wrong}"
    for answer in journal:
        if (answer.kind, answer.wish) == (TOLD, LOOK):
            found = 0 if answer.commit_id is None else in_log.get(answer.commit_id)
            assert found == answer.number, f"{answer} names a commit that holds {found}"


class Counter:
    """The sequential truth."""

    initial = 0

    def apply(self, value: Hashable, call: Hashable) -> tuple[Hashable, Hashable]:
        assert isinstance(value, int)
        return (value + 1, value + 1) if call == ADD else (value, value)


def _history(journal: Iterable[Answer], in_log: dict[ObjectId, int]) -> list[Operation]:
    """Without those that certainly did not happen."""
    history = []
    for one in journal:
        if one.kind == TOLD:
            history.append(Operation(one.client, one.wish, one.called, one.returned, one.number))
        elif one.kind == KILLED or one.commit_id in in_log:
            history.append(Operation(one.client, one.wish, one.called))
    return history


def _assert_whole(cold: RealmStore, deleted: Iterable[ObjectId]) -> None:
    """Whatever any commit leads to is there, reads as it did, and was never deleted by anybody."""
    marked: set[ObjectId] = set()

    def mark(object_id: ObjectId, parent: ObjectId | None) -> bool:
        is_new = object_id not in marked
        marked.add(object_id)
        return is_new

    found = list(read_log(cold, "main"))
    mark_reachable(cold, [one.id for one in found], mark)
    assert not marked & set(deleted), "a committer deleted what a head leads to"
    for one in (*found[:70], *found[-70:]):
        value = one.index("counters").get(b"n")
        assert value is not None
        assert int(value.data) == one.commit.seq
    newest = read_head(cold, "main", fresh=True)
    assert (newest.commit.seq if newest else 0) == len(found)


def _id_of(fault: UnknownOutcomeError) -> ObjectId:
    """Whoever is told that an outcome is open is told what to look for."""
    assert isinstance(fault, UnknownCommitError), f"an unknown outcome without the commit's id: {fault}"
    assert id_text(fault.commit_id) in str(fault)
    return fault.commit_id
