"""One call of ``commit``: its change, how the last run of it ended, and what its caller is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from headwater.commits.making.groups import Group, Member
from headwater.commits.making.transaction import Memos, Transaction
from headwater.errors import CommitTimeoutError, HeadwaterError, RefusedError, UnknownCommitError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore, id_text

__all__ = ["Call", "Committed", "StartOverError", "inside"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """What came of a commit: the change's own result, and whether it changed anything.

    commit_id     the head afterwards: the new commit, or the old head when nothing changed (None when there is no commit yet)
    attempts      how often the change was run, or was to be run when the database was away
    """

    result: R
    changed: bool
    commit_id: ObjectId | None
    attempts: int
    elapsed_seconds: float = field(default=0.0, compare=False)


class StartOverError(Exception):
    """The last run counts for nothing: it took too long for its group, or the outcome of the group that it saw is not known."""


class _Run(NamedTuple, Generic[R]):
    """How a run of the change ended: with a result or a fault, on which head, and with what commit; None: it changed nothing."""

    result: R | None
    fault: Exception | None
    head_id: ObjectId | None
    made: Member | None


class Call(Generic[R]):
    """``started`` and all times are monotonic seconds of the store's clock."""

    def __init__(
        self,
        rows: RealmStore,
        reference: str,
        change: Callable[[Transaction], R],
        message: str,
        properties: dict[str, Any],
        fence: Callable[[], None] | None,
    ) -> None:
        self.rows = rows
        self.reference = reference
        self.started = rows.clock.monotonic()
        self.until = self.started + rows.settings.commit_timeout_seconds
        self.attempts = 0
        self._change = change
        self._message = message
        self._properties = properties
        self._fence = fence
        self._memos: Memos = {}
        self._last: _Run[R] | None = None

    @property
    def is_over(self) -> bool:
        """Whether its time is."""
        return self.rows.clock.monotonic() >= self.until

    @property
    def made(self) -> Member | None:
        """The commit of the last run; None when it changed nothing, or failed."""
        return None if self._last is None else self._last.made

    def run(self, group: Group, has_company: Callable[[], bool] = lambda: False) -> None:
        """Run the change on top of a group. Nothing is taken in by that.

        has_company   whether others wait to go on from here, asked when the change has returned
        raises        what the fence raises. What the change raises is the answer, to be told when it is sure
        """
        tx = group.begin(self.rows, self._memos)
        if self._fence is not None:
            self._fence()
        inside.change = self.reference
        try:
            result = self._change(tx)
            inside.change = None
            is_alone = not group and not has_company()
            made = group.make(self.rows, tx, message=self._message, properties=self._properties, is_alone=is_alone)
        except Exception as fault:  # noqa: BLE001  it is the caller's
            self._last = _Run(None, fault, tx.head_id, None)
        else:
            self._last = _Run(result, None, tx.head_id, made)
        finally:
            inside.change = None

    # what the caller is told

    def answer(self) -> Committed[R]:
        """What came of the last run, which is sure by now."""
        assert self._last is not None
        result, fault, head_id, made = self._last
        if fault is not None:
            try:
                raise fault
            finally:
                del fault, self._last  # its traceback holds this frame, and so itself
        commit_id = head_id if made is None else made.id
        elapsed = self.rows.clock.monotonic() - self.started
        return Committed(result, made is not None, commit_id, self.attempts, elapsed)  # type: ignore[arg-type]  # no fault: a result

    def say_unknown(self, unclear: UnknownOutcomeError | None) -> NoReturn:
        """Nobody knows what became of its commit. One that has made none starts over instead: it has written nothing."""
        if self.made is None:
            raise StartOverError
        raise UnknownCommitError(
            f"commit {id_text(self.made.id)} to reference {self.reference!r} of realm {self.rows.realm!r} may have happened:"
            f" {unclear}. Look for it in the log before doing it again",
            commit_id=self.made.id,
            reference=self.reference,
            realm=self.rows.realm,
            attempts=self.attempts,
        ) from unclear

    def give_up(self, fault: HeadwaterError | None) -> NoReturn:
        """Its time is over, and it certainly did not happen. ``fault``: the last thing that went wrong."""
        elapsed = self.rows.clock.monotonic() - self.started
        tried = (
            f" and {self.attempts} attempts" if self.attempts else ", waiting for its turn behind other commits of this process"
        )
        raise CommitTimeoutError(
            f"commit to reference {self.reference!r} of realm {self.rows.realm!r} did not happen within {elapsed:.1f} s{tried}"
            f"{'' if fault is None else f' ({fault})'}: try again later",
            attempts=self.attempts,
            elapsed_seconds=elapsed,
        ) from fault

    def refuse_nesting(self) -> None:
        if inside.change is not None:
            raise RefusedError(
                f"a commit to reference {self.reference!r} of realm {self.rows.realm!r} was begun inside a change for reference"
                f" {inside.change!r}: a change may run more than once and others wait for it, so it commits nothing itself,"
                " to no reference of any store. Edit through its transaction, or commit after it"
            )


class _Inside(threading.local):
    """What this thread is doing: whether it commits, and for which reference it runs a change."""

    is_committing = False
    change: str | None = None


inside = _Inside()


def _forget() -> None:
    """A child that was forked inside a change may commit: the change goes on in the parent."""
    inside.is_committing, inside.change = False, None


os.register_at_fork(after_in_child=_forget)
