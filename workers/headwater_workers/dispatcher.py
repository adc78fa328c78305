"""The dispatcher makes lost messages harmless: it reads the due tasks, and sends messages for those that can be claimed.

It sends no more than its worker can soon take, however many tasks wait: what is in the store need not be in the broker as well.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Protocol

import structlog

from headwater.jobs import COLLECT, COLLECT_FILES, schedule_file_collections
from headwater.reconcile import next_time, weekly_schedule
from headwater.store import SYSTEM_REALM, ObjectId, Store, id_text
from headwater.tasks import ClaimableTask, DueWindow, LeaseWatch, TaskQueue

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 5.0, 60.0
"""A message is repeated after this time, doubling, while nobody claims its task: all workers may be busy."""
WAITING_A_CHILD = 2
"""Messages that may wait in the broker for each child of a pool. With the one that a child has taken, a worker adds at most three."""
DUE_AT_ONCE = 150
"""Due tasks that a look reads beside the running ones: about 5 ms of CPU. A longer list is read in several looks."""
REFILL_SECONDS = 0.1
"""How often room in the broker is looked for while tasks wait for it."""
TIDY_SECONDS = 600.0
FILE_TABLES_SECONDS = 300.0
"""The longest time until a new file table, or one that was collected, gets its next collection."""
REMINDER_SECONDS = 60.0
"""How often a lasting fault is logged again."""

log = structlog.get_logger(__name__)


class MessageBroker(Protocol):
    """What carries the messages."""

    def send(self, task_id: ObjectId, token: str | None) -> None:
        """Ask any worker to look at a task.

        token         of a running task whose lease was seen to expire
        """
        ...

    def count_waiting(self) -> int:
        """The number of messages that no worker has taken yet, from all senders."""
        ...


@dataclass(slots=True)
class _Sent:
    version: str
    again: float
    wait_seconds: float


class Dispatcher:
    """Sends messages for claimable tasks. Any number of dispatchers may run on one store.

    children      of this worker's pool: twice as many messages may wait in the broker
    kinds         tasks of other kinds are left alone
    """

    def __init__(self, store: Store, broker: MessageBroker, *, children: int, kinds: Collection[str]) -> None:
        self._store = store
        self._tasks = TaskQueue(store)
        self._clock = store.clock
        self._broker = broker
        self._most_waiting = WAITING_A_CHILD * children
        self._kinds = kinds
        self._watch = LeaseWatch(store.clock, store.settings.task_lease_seconds)
        self._window = DueWindow(DUE_AT_ONCE)
        self._claimable: dict[ObjectId, None] = {}
        """In the order of their due times. By now others may have claimed some, which is found out before a message is sent."""
        self._in_this_round: dict[ObjectId, None] = {}
        self._sent: dict[ObjectId, _Sent] = {}
        self._tidy_at = self._file_tables_at = store.clock.monotonic()

    def step(self) -> bool:
        """Read some of the due tasks and send messages for claimable ones, the longest due first.

        returns       whether more tasks wait for room in the broker
        """
        self._look()
        is_behind = self.refill()
        if self._clock.monotonic() >= self._tidy_at:
            self._tidy()
            self._tidy_at = self._clock.monotonic() + TIDY_SECONDS
        if COLLECT_FILES in self._kinds and self._clock.monotonic() >= self._file_tables_at:
            schedule_file_collections(self._store)
            wait = min(self._store.settings.files_collect_seconds / 3, FILE_TABLES_SECONDS)
            self._file_tables_at = self._clock.monotonic() + wait
        return is_behind

    def refill(self) -> bool:
        """Send messages for tasks that looks have found, as long as there is room in the broker.

        returns       whether more tasks wait for room
        """
        if not self._to_send(1):
            return False
        room = self._most_waiting - self._broker.count_waiting()
        while room > 0 and (chosen := self._to_send(room)):
            room -= self._send_to_claimable(chosen)
        return bool(self._to_send(1))

    def _look(self) -> None:
        for task in self._tasks.find_claimable(self._watch, window=self._window):
            if task.kind not in self._kinds:
                continue
            self._claimable[task.id] = self._in_this_round[task.id] = None
            sent = self._sent.get(task.id)
            if sent is not None and sent.version != task.version:  # it has been claimed since: this is another wait
                del self._sent[task.id]
        if not self._window.start:
            self._claimable, self._in_this_round = self._in_this_round, {}
            self._sent = {task_id: sent for task_id, sent in self._sent.items() if task_id in self._claimable}

    def _to_send(self, most: int) -> list[ObjectId]:
        """The tasks that got no message yet, or none for too long."""
        now = self._clock.monotonic()
        waiting = (task_id for task_id in self._claimable if task_id not in self._sent or now >= self._sent[task_id].again)
        return list(islice(waiting, most))

    def _send_to_claimable(self, task_ids: Collection[ObjectId]) -> int:
        """Send messages for the tasks that nobody has claimed since they were found; returns how many."""
        found = {task.id: task for task in self._tasks.check_claimable(task_ids, self._watch)}
        for task_id in task_ids:
            if task_id in found:
                self._send(found[task_id])
            else:
                del self._claimable[task_id]
                self._sent.pop(task_id, None)
        return len(found)

    def _send(self, task: ClaimableTask) -> None:
        sent = self._sent.get(task.id)
        is_repeated = sent is not None and sent.version == task.version
        wait = min(sent.wait_seconds * 2, LONGEST_WAIT_SECONDS) if sent and is_repeated else FIRST_WAIT_SECONDS
        self._broker.send(task.id, task.token)
        self._sent[task.id] = _Sent(task.version, self._clock.monotonic() + wait, wait)
        log.debug("message sent", task=id_text(task.id))

    def _tidy(self) -> None:
        """Do the maintenance that belongs to no manifest: delete old tasks, and keep one weekly collection of the system realm
        scheduled.
        """
        while self._tasks.forget_finished():
            pass
        due = next_time(weekly_schedule(SYSTEM_REALM), "UTC", self._clock.now())
        self._tasks.submit_task(COLLECT, realm=SYSTEM_REALM, due=due)


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
        looked, is_behind = monotonic(), False
        while not self._stopped.wait(min(REFILL_SECONDS, self._wait_seconds) if is_behind else self._wait_seconds):
            self._also()
            try:
                with self._in_step:
                    if is_behind and monotonic() - looked < self._wait_seconds:
                        is_behind = self._dispatcher.refill()
                    else:
                        looked, is_behind = monotonic(), self._dispatcher.step()
            except Exception as fault:  # noqa: BLE001 - the door: without this loop, lost messages would be lost tasks
                is_behind = False
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
