"""How a change becomes the truth: read the head, run the change, write its objects, swap the reference; and know the outcome."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

import structlog

from headwater.clock import Micros
from headwater.commits.objects import Commit, Head
from headwater.commits.transaction import Transaction
from headwater.errors import (
    BeatenError,
    CommitTimeoutError,
    HeadwaterError,
    UnavailableError,
    UnknownOutcomeError,
    UnreadableError,
)
from headwater.store import Batch, ObjectId, RealmStore, Reference, id_text

__all__ = ["Committed", "commit", "descends", "load_head"]

R = TypeVar("R")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """What came of a commit: the change's own result, and whether it changed anything.

    commit_id     the head afterwards: the new commit, or the old head when nothing changed (None when there is no commit yet)
    """

    result: R
    changed: bool
    commit_id: ObjectId | None
    attempts: int


def commit(
    rows: RealmStore,
    reference: str,
    change: Callable[[Transaction], R],
    *,
    message: str = "",
    properties: dict[str, Any] | None = None,
    fence: Callable[[], None] | None = None,
) -> Committed[R]:
    """Run ``change`` on the head of a reference and make what it edited the new head.

    change        gets a Transaction; may run more than once, so it has no other effect than its edits. What it raises is passed
                  on, and nothing is written.
    fence         called before every run of ``change``; raises FencedError when the work was taken over by another
    raises        MissingError: no such reference · UnreadableError: its head cannot be read, nothing was changed ·
                  CommitTimeoutError: not committed within the time-out · UnknownOutcomeError: may be committed, and the database
                  does not answer
    """
    return _Committer(rows, reference, change, message, properties or {}, fence).run()


def load_head(rows: RealmStore, reference: Reference) -> Head | None:
    """The commit that a reference points to; None when it has none yet.

    raises        UnreadableError when it points to a commit that is not there: never to be taken for "no commit yet"
    """
    if reference.pointer is None:
        return None
    found = rows.find(reference.pointer, Commit)
    if found is None:
        raise UnreadableError(
            f"reference {reference.name!r} of realm {rows.realm!r} points to commit {id_text(reference.pointer)}, which is not there;"
            f" recent pointers: {', '.join(id_text(i) for i in reference.recent[:3]) or 'none'}. Nothing was changed: run `headwater fsck`"
        )
    return Head(reference.pointer, found, rows)


class _Committer(Generic[R]):
    def __init__(
        self,
        rows: RealmStore,
        reference: str,
        change: Callable[[Transaction], R],
        message: str,
        properties: dict[str, Any],
        fence: Callable[[], None] | None,
    ) -> None:
        self._rows = rows
        self._reference = reference
        self._change = change
        self._message = message
        self._properties = properties
        self._fence = fence
        self._timeout = rows.settings.commit_timeout_seconds
        self._started = rows.clock.monotonic()
        self._attempts = 0
        self._last_fault: HeadwaterError | None = None

    def run(self) -> Committed[R]:
        while True:
            self._attempts += 1
            try:
                return self._attempt()
            except _NextAttempt as again:
                self._last_fault = again.fault
            if self._elapsed() >= self._timeout:
                self._give_up()
            self._back_off()

    def _attempt(self) -> Committed[R]:
        prepared = self._rows.clock.monotonic()
        seen, head = self._look()
        time = Micros(max(self._rows.clock.now(), head.commit.time + 1 if head else 0))
        tx = Transaction(self._rows, self._reference, head, time)
        if self._fence is not None:
            self._fence()
        result = self._change(tx)
        if tx.is_empty():
            return Committed(result, False, seen.pointer, self._attempts)
        commit_id = self._rows.new_id()
        new = tx.commit(message=self._message, properties=self._properties)
        batch = self._rows.pack([*tx.objects(), (commit_id, new)])
        if self._rows.clock.monotonic() - prepared > self._timeout:
            raise _NextAttempt(UnavailableError("preparing the commit took longer than the time-out"))
        if not self._publish(batch, seen, commit_id, new.seq):
            self._clean_up(batch)
            raise _NextAttempt(BeatenError("another commit was faster"))
        if self._rows.clock.monotonic() - prepared > self._timeout and seen.pointer is not None:
            self._record_late_move(seen.pointer)
        return Committed(result, True, commit_id, self._attempts)

    def _look(self) -> tuple[Reference, Head | None]:
        try:
            seen = self._rows.read_reference(self._reference, fresh=True)
            return seen, load_head(self._rows, seen)
        except UnavailableError as fault:
            raise _NextAttempt(fault) from fault

    def _publish(self, batch: Batch, seen: Reference, commit_id: ObjectId, seq: int) -> bool:
        """Whether the commit became the head; found out by all means before it is said."""
        try:
            self._rows.write_and_advance(batch, seen, commit_id)
        except BeatenError:
            return False
        except UnavailableError as fault:
            raise _NextAttempt(fault) from fault
        except UnknownOutcomeError as unclear:
            return self._find_out(batch, seen, commit_id, seq, unclear)
        return True

    def _find_out(self, batch: Batch, seen: Reference, commit_id: ObjectId, seq: int, unclear: UnknownOutcomeError) -> bool:
        """Repeat the very same swap until it works or is beaten; when beaten, look for our commit in what came after.

        A swap whose answer was lost may still be on its way. It can only do something while the version is the one that was
        seen; so "not applied" is known once the version has passed it, and not before.
        """
        while True:
            try:
                self._rows.write_and_advance(batch, seen, commit_id)
            except BeatenError:
                try:
                    return self._is_in_history(seen, commit_id, seq)
                except HeadwaterError as fault:
                    unclear = UnknownOutcomeError(str(fault))
            except HeadwaterError as fault:  # also a gate that closed meanwhile: it does not make the outcome any clearer
                unclear = UnknownOutcomeError(str(fault))
            else:
                return True
            if self._elapsed() >= self._timeout:
                raise UnknownOutcomeError(
                    f"commit {id_text(commit_id)} to reference {self._reference!r} of realm {self._rows.realm!r} may have happened:"
                    f" {unclear}. Look for it in the log before doing it again"
                )
            self._back_off()

    def _is_in_history(self, seen: Reference, commit_id: ObjectId, seq: int) -> bool:
        row = self._rows.find_row(self._reference)
        if row is None or row.created != seen.created:
            raise UnknownOutcomeError("the reference was removed meanwhile, and with it its record of what it pointed to")
        starts = [pointer for pointer in (row.pointer, *(move.pointer for move in row.moves)) if pointer is not None]
        cut: UnknownOutcomeError | None = None
        for start in starts:
            try:
                if descends(self._rows, start, commit_id, seq):
                    return True
            except UnknownOutcomeError as fault:
                cut = fault  # another start may tell
        if cut is not None:
            raise cut
        return False

    def _record_late_move(self, left: ObjectId) -> None:
        """The swap took effect long after the commit's time, from which readers' grace is counted: note when it really was."""
        for _ in range(20):
            try:
                row = self._rows.find_row(self._reference)
                if row is not None:
                    self._rows.record_move(row, left)
            except BeatenError:
                continue
            except HeadwaterError as fault:
                _log.warning(
                    "a late move was not recorded", reference=self._reference, realm=self._rows.realm, fault=str(fault)
                )
            return

    def _clean_up(self, batch: Batch) -> None:
        """Delete what the lost attempt wrote. Best effort: what stays is garbage, and the collector's."""
        try:
            self._rows.discard(batch)
        except HeadwaterError as fault:
            _log.debug("a lost attempt's objects were left to the collector", reference=self._reference, fault=str(fault))

    def _elapsed(self) -> float:
        return self._rows.clock.monotonic() - self._started

    def _back_off(self) -> None:
        settings = self._rows.settings
        longest = min(settings.commit_backoff_limit_seconds, settings.commit_backoff_seconds * 2 ** min(self._attempts, 20))
        self._rows.clock.sleep(random.uniform(settings.commit_backoff_seconds, max(longest, settings.commit_backoff_seconds)))

    def _give_up(self) -> NoReturn:
        elapsed = self._elapsed()
        raise CommitTimeoutError(
            f"commit to reference {self._reference!r} of realm {self._rows.realm!r} did not happen within {elapsed:.1f} s"
            f" and {self._attempts} attempts ({self._last_fault}): try again later",
            attempts=self._attempts,
            elapsed_seconds=elapsed,
        )


class _NextAttempt(Exception):
    """This attempt had no effect; the reason goes into the error if there is no time for another."""

    def __init__(self, fault: HeadwaterError) -> None:
        self.fault = fault


def descends(rows: RealmStore, start: ObjectId, wanted: ObjectId, seq: int) -> bool:
    """Whether ``wanted``, whose seq is known, is ``start`` or one of its ancestors. Reads one commit in twenty.

    raises        UnknownOutcomeError when history was cut before the answer was found
    """
    while True:
        found = rows.find(start, Commit)
        if found is None:
            raise UnknownOutcomeError(f"commit {id_text(start)} of realm {rows.realm!r} is not there any more")
        distance = found.seq - seq
        if distance <= 0:
            return start == wanted
        if distance <= len(found.tail):
            return found.tail[distance - 1] == wanted
        if not found.tail:
            return False
        start = found.tail[-1]
