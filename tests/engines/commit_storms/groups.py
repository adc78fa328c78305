"""Commits that are combined in a known order, and the groups that can be seen in a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from callers import Caller, in_line
from counters import Answer, counted, tell

from headwater.commits import Head, Transaction, commit_change, read_log
from headwater.store import RealmStore

__all__ = ["Change", "a_group", "callers_of", "groups_in"]

Change = Callable[[Transaction], Any]


def nothing() -> None:
    """Nothing is planned."""


def callers_of(rows: RealmStore, changes: Sequence[Change], plan: Callable[[], object] = nothing) -> list[Caller]:
    """A caller for each of these changes, all in one group in this order; they have ended.

    plan          done when they all stand in line, and none has returned from its change
    """
    with in_line() as held:

        def first(tx: Transaction) -> Any:
            held.hold(tx)
            return changes[0](tx)

        held.lead(lambda: commit_change(rows, "main", first))
        for change in changes[1:]:
            held.call(lambda change=change: commit_change(rows, "main", change))  # type: ignore[misc]
        plan()
    return held.callers


def a_group(rows: RealmStore, wishes: Sequence[str], plan: Callable[[], object] = nothing) -> list[Answer]:
    """What callers with these wishes were told, in their order; they were combined, after ``plan`` was laid."""
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(wishes[0])(tx)

        held.lead(lambda: tell(rows, 0, wishes[0], first))
        for client, wish in enumerate(wishes[1:], 1):
            held.call(lambda client=client, wish=wish: tell(rows, client, wish))  # type: ignore[misc]
        plan()
    return [caller.result() for caller in held.callers]


def groups_in(rows: RealmStore, name: str = "main") -> list[list[Head]]:
    """The commits of a reference, oldest first, those of a group together; a commit without company is a group of one."""
    groups: list[list[Head]] = []
    group: list[Head] = []
    for found in reversed(list(read_log(rows.without_cache(budget_bytes=1 << 24), name))):
        group.append(found)
        if found.commit.depth == 0:
            groups.append(group)
            group = []
    assert not group, "the newest commit is an inner member"
    return groups
