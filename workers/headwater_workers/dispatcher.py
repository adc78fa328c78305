"""The dispatcher makes lost messages harmless: it reads the due tasks, and sends messages for those that can be claimed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import monotonic

import structlog

from headwater.jobs import COLLECT, COLLECT_FILES, schedule_file_collections
from headwater.reconcile import next_time, weekly_schedule
from headwater.store import SYSTEM_REALM, ObjectId, Store, id_text
from headwater.tasks import ClaimableTask, LeaseWatch, TaskQueue

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 5.0, 60.0
"""A message is repeated after this time, doubling, while nobody claims its task: all workers may be busy."""
TIDY_SECONDS = 600.0
FILE_TABLES_SECONDS = 300.0
"""The longest time until a new file table, or one that was collected, gets its next collection."""
REMINDER_SECONDS = 60.0
"""How often a lasting fault is logged again."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Sent:
    token: str | None
    again: float
    wait_seconds: float


class Dispatcher:
    """Sends messages for claimable tasks. Any number of dispatchers may run on one store.

    send          hands a task's id, and a running one's token, to the broker
    kinds         tasks of other kinds are left alone
    """

    def __init__(self, store: Store, send: Callable[[ObjectId, str | None], None], *, kinds: Collection[str]) -> None:
        self._store = store
        self._tasks = TaskQueue(store)
        self._clock = store.clock
        self._send = send
        self._kinds = kinds
        self._watch = LeaseWatch(store.clock, store.settings.task_lease_seconds)
        self._sent: dict[ObjectId, _Sent] = {}
        self._tidy_at = self._file_tables_at = store.clock.monotonic()

    def step(self) -> None:
        """Read the due tasks once and send messages for the claimable ones."""
        claimable = [task for task in self._tasks.find_claimable(self._watch) if task.kind in self._kinds]
        ids = {task.id for task in claimable}
        self._sent = {task_id: sent for task_id, sent in self._sent.items() if task_id in ids}
        for task in claimable:
            self._send_unless_sent(task)
        if self._clock.monotonic() >= self._tidy_at:
            self._tidy()
            self._tidy_at = self._clock.monotonic() + TIDY_SECONDS
        if COLLECT_FILES in self._kinds and self._clock.monotonic() >= self._file_tables_at:
            schedule_file_collections(self._store)
            wait = min(self._store.settings.files_collect_seconds / 3, FILE_TABLES_SECONDS)
            self._file_tables_at = self._clock.monotonic() + wait

    def _tidy(self) -> None:
        """Do the maintenance that belongs to no manifest: delete old tasks, and keep one weekly collection of the system realm
        scheduled.
        """
        while self._tasks.forget_finished():
            pass
        due = next_time(weekly_schedule(SYSTEM_REALM), "UTC", self._clock.now())
        self._tasks.submit_task(COLLECT, realm=SYSTEM_REALM, due=due)

    def _send_unless_sent(self, task: ClaimableTask) -> None:
        now = self._clock.monotonic()
        sent = self._sent.get(task.id)
        wait = FIRST_WAIT_SECONDS
        if sent is not None and sent.token == task.token:
            if now < sent.again:
                return
            wait = min(sent.wait_seconds * 2, LONGEST_WAIT_SECONDS)
        self._send(task.id, task.token)
        self._sent[task.id] = _Sent(task.token, now + wait, wait)
        log.debug("message sent", task=id_text(task.id))


class DispatcherThread:
    """Runs a dispatcher until it is stopped, even while the database or the broker fails.

    A fault is logged when it appears, when it changes, once in REMINDER_SECONDS while it lasts, and when it is over.

    also          called before each step
    """

    def __init__(self, dispatcher: Dispatcher, *, wait_seconds: float, also: Callable[[], None]) -> None:
        self._dispatcher = dispatcher
        self._wait_seconds = wait_seconds
        self._also = also
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)
        # A pool's child must not be forked in the middle of a step: it would inherit locks that nobody ever releases.
        self._in_step = threading.Lock()
        os.register_at_fork(
            before=self._in_step.acquire, after_in_parent=self._in_step.release, after_in_child=self._in_step.release
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; does not wait."""
        self._stopped.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread's end; returns at once if it was never started because the broker could not be reached."""
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        trouble = _Trouble()
        while not self._stopped.wait(self._wait_seconds):
            self._also()
            try:
                with self._in_step:
                    self._dispatcher.step()
            except Exception as fault:  # noqa: BLE001 - the door: without this loop, lost messages would be lost tasks
                trouble.goes_on(f"{type(fault).__name__}: {fault}")
            else:
                trouble.is_over()


class _Trouble:
    """The fault that keeps due tasks from being read, and when it was last logged."""

    def __init__(self) -> None:
        self._error = ""
        self._began = self._logged = 0.0

    def goes_on(self, error: str) -> None:
        now = monotonic()
        if not self._error:
            self._began = now
        if error != self._error or now - self._logged >= REMINDER_SECONDS:
            log.warning("the due tasks could not be looked at: again soon", error=error)
            self._logged = now
        self._error = error

    def is_over(self) -> None:
        if self._error:
            log.info("the due tasks are looked at again", seconds=round(monotonic() - self._began, 1))
        self._error = ""
