"""How far long work is, told to a Python program by its phases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from headwater.tasks import TaskProgress
from headwater.throttle import ProgressCallback, no_progress

_TOLD_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgressInfo:
    """How far one phase of some work is.

    kind          of the task, such as ``gc``; what is done without a task has a kind, too, such as ``fsck``
    subject       what within the realm, such as a catalog; empty: the realm
    total         None: not known yet
    unit          what is counted, in words that name the phase, such as ``rows deleted``: with another unit another phase begins
    """

    kind: str
    realm: str
    subject: str
    done: int
    total: int | None
    unit: str


Observe = Callable[[TaskProgressInfo], None]
"""Told of each phase of the work when it begins and when its count is complete, and ten times a second at most between them. May be called
by any thread, one at a time. An error that it raises stops the work, and comes out of the method that does it: a task waits then, for a
worker or another call to go on with it. Where the work is done by then, it is a warning."""


class WorkProgress:
    """Tells an observer how far one piece of work is.

    observe       None: nobody wants to know
    """

    def __init__(self, observe: Observe | None, *, kind: str, realm: str, subject: str = "") -> None:
        self._observe = observe
        self._about = (kind, realm, subject)
        self._lock = threading.Lock()
        # What was told last, and when on the monotonic clock: another thread's report may be older, and another phase always is news.
        self._told: TaskProgressInfo | None = None
        self._told_at = 0.0

    @property
    def callback(self) -> ProgressCallback:
        """What the work reports to."""
        return no_progress if self._observe is None else self.update

    def update(self, done: int, total: int, unit: str) -> None:
        """Tell how far the present phase is: ``ProgressCallback``."""
        kind, realm, subject = self._about
        self._tell(TaskProgressInfo(kind=kind, realm=realm, subject=subject, done=done, total=total or None, unit=unit))

    def end(self, progress: TaskProgress | None) -> None:
        """Tell how far a task was when it had ended, unless that was told."""
        if progress is not None:
            self.update(progress.done, progress.total or 0, progress.unit)

    def _tell(self, news: TaskProgressInfo) -> None:
        if self._observe is None:
            return
        with self._lock:
            now, told = time.monotonic(), self._told
            is_phase = told is None or news.unit != told.unit or news.done < told.done or news.done == news.total
            if news == told or not (is_phase or now - self._told_at >= _TOLD_SECONDS):
                return
            self._told, self._told_at = news, now
            self._observe(news)
