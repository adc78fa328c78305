"""A worker: Celery's main process with its pool of children, and the dispatcher thread."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
from billiard.util import set_pdeathsig
from celery import Celery, signals

from headwater.errors import HeadwaterError
from headwater.logs import LEVELS
from headwater.monitoring import Health
from headwater.settings import Settings
from headwater.store import Store, id_of, open_store
from headwater.tasks import LeaseExpiry
from headwater_workers.celery_app import LOOK, Broker, LookMessages, configure_worker_logs, make_app
from headwater_workers.dispatcher import Dispatcher, DispatcherThread
from headwater_workers.file_queue import CommitterGuard, guard_of
from headwater_workers.liveness import DISPATCHER, Pulse, beat_in_the_main_loop
from headwater_workers.task_executor import TASK_BODIES, execute_task
from headwater_workers.worker_metrics import WorkerMetrics, WorkerProbes

JOIN_SECONDS = 5.0
MIND_SECONDS, LINGER_SECONDS = 0.5, 3.0

log = structlog.get_logger(__name__)


def serve_worker(
    settings: Settings,
    broker: Broker,
    store: Store,
    *,
    concurrency: int,
    log_level: str = "info",
    parent: int | None = None,
    alive_file: Path | None = None,
) -> int:
    """Work until SIGTERM or SIGINT; running tasks are then handed back at their next check.

    store         of the main process; each child opens one of its own
    concurrency   tasks done at the same time, each in a separate process
    parent        a process whose end is this worker's end, too
    alive_file    touched every few seconds as long as the worker is well
    returns       the exit code
    """
    configure_worker_logs(settings, level=LEVELS[log_level])
    _silence_standard_output()
    app = make_app(settings, broker)
    children = _Children(settings)
    app.task(name=LOOK)(children.look)
    with ExitStack() as closing:
        pulse = closing.enter_context(Pulse(alive_file))
        is_ready = threading.Event()
        signals.worker_ready.connect(lambda **_: is_ready.set(), weak=False)
        metrics = WorkerMetrics(
            store, concurrency=concurrency, is_stopping=children.is_stopping, realms=settings.worker_metrics_realms
        )
        health = Health(
            lambda: _loop_findings(pulse), lambda: {"process": _process_finding(is_ready.is_set(), children.is_stopping())}
        )
        closing.enter_context(WorkerProbes(settings, metrics, store, health))
        beat_in_the_main_loop(app, pulse)
        dispatcher = Dispatcher(store, LookMessages(app), children=concurrency, kinds=TASK_BODIES)
        thread = DispatcherThread(dispatcher, wait_seconds=settings.dispatch_seconds, also=_before_a_step(pulse, parent))
        guard = guard_of(settings, broker, log_level=log_level)
        _connect(thread, children, pulse, guard)
        worker = _celery_worker(app, concurrency, is_controlled=settings.worker_remote_control)
        log.info("worker started", concurrency=concurrency, store=store.url, pid=os.getpid())
        worker.start()
        thread.stop()
        thread.join(JOIN_SECONDS)
        guard.join()
    log.info("worker stopped", pid=os.getpid())
    return int(worker.exitcode or 0)


class _Children:
    """The shared state of the pool's children: their settings, and whether they, or the whole worker, have to end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._main = os.getpid()
        # A byte of shared memory: a child that is killed while it looks holds no lock on it.
        self._stopping = multiprocessing.get_context("fork").RawValue("b", 0)
        self._is_told = False
        self._is_busy = False

    @cached_property
    def _store(self) -> Store:
        """Open the store in a child when it is first needed, never before the fork. A store that was deleted under its worker is
        not set up anew.
        """
        return open_store(self._settings.store, settings=self._settings, create=False)

    def look(self, task_id: str, token: str | None) -> None:
        if self._is_told:
            return  # the message will be sent again
        owner = f"{socket.gethostname()}:{os.getpid()}"
        # A signal to the whole process group must give a busy child time to hand its task back, too.
        idle = signal.signal(signal.SIGTERM, self._be_told)
        self._is_busy = True
        try:
            execute_task(self._store, id_of(task_id), LeaseExpiry(token), owner=owner, is_stopping=self.is_stopping)
        except HeadwaterError as fault:  # only what opens the store raises: the dispatcher finds the task again
            log.warning("the store could not be opened: the task is looked at later", task=task_id, error=str(fault))
        finally:
            self._is_busy = False
            signal.signal(signal.SIGTERM, idle)

    def is_stopping(self) -> bool:
        return bool(self._stopping.value) or self._is_told

    def stop(self) -> None:
        """Called in the main process: all children hand back their tasks."""
        self._stopping.value = 1

    def begin(self) -> None:
        """Run at the start of a child: let it end with its main process, and not before.

        Celery asks the kernel to kill it when the *thread* that forked it ends. In a pool that replaces its children, that thread
        ends at the beginning of an orderly stop: the task would be killed instead of handed back.
        """
        with contextlib.suppress(OSError):  # only Linux has it
            set_pdeathsig(0)
        threading.Thread(target=self._end_when_told, name="end", daemon=True).start()

    def _end_when_told(self) -> None:
        """End a child that was told to end, or has lost its main process, once its task is handed back; a closing pool is quicker."""
        idle = 0
        while idle * MIND_SECONDS < LINGER_SECONDS:
            time.sleep(MIND_SECONDS)
            self._is_told = self._is_told or os.getppid() != self._main
            idle = idle + 1 if self._is_told and not self._is_busy else 0
        os._exit(0)

    def close(self) -> None:
        """Run at the end of a child: give back what its store has leased."""
        if "_store" in self.__dict__:
            self._store.close()

    def _be_told(self, number: int, frame: FrameType | None) -> None:
        self._is_told = True


def _loop_findings(pulse: Pulse) -> dict[str, str]:
    stuck = pulse.stuck()
    return {"loops": f"hanging: {', '.join(stuck)}" if stuck else ""}


def _process_finding(is_ready: bool, is_stopping: bool) -> str:
    if is_stopping:
        return "it is stopping"
    return "" if is_ready else "the process is starting, or waits for its broker"


def _silence_standard_output() -> None:
    """Silence standard output: a worker logs to standard error, and Celery prints its own words past all streams."""
    sys.stdout.flush()
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
        os.dup2(nowhere.fileno(), 1)


def _connect(thread: DispatcherThread, children: _Children, pulse: Pulse, guard: CommitterGuard) -> None:
    def stop(**_: Any) -> None:
        log.info("worker is stopping: running tasks are handed back", pid=os.getpid())
        children.stop()
        thread.stop()
        guard.stop()
        pulse.forget_beat(DISPATCHER)

    def start(**_: Any) -> None:
        thread.start()
        guard.start()

    # Celery holds receivers weakly by default.
    signals.worker_ready.connect(start, weak=False)
    signals.worker_shutting_down.connect(stop, weak=False)
    signals.worker_process_init.connect(lambda **_: children.begin(), weak=False)
    signals.worker_process_shutdown.connect(lambda **_: children.close(), weak=False)
    signals.setup_logging.connect(lambda **_: None, weak=False)  # a receiver keeps Celery from setting up its own


def _celery_worker(app: Celery, concurrency: int, *, is_controlled: bool) -> Any:
    return app.Worker(
        pool="prefork",
        concurrency=concurrency,
        loglevel="WARNING",
        quiet=True,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=not is_controlled,  # Flower counts a worker as online by its heartbeats
    )


def _before_a_step(pulse: Pulse, parent: int | None) -> Callable[[], None]:
    """Record a beat of the dispatcher, and end this process once it is no longer a child of ``parent``."""

    def check() -> None:
        pulse.beat(DISPATCHER)
        if parent is not None and os.getppid() != parent:
            log.warning("the process that started this worker is gone: the worker stops")
            os.kill(os.getpid(), signal.SIGTERM)

    return check
