"""The process of the committers, and the guard that starts it from a worker."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from headwater.exits import stop_at_signals
from headwater.files import FileReferenceStore, FileScope
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_workers.celery_app import Broker
from headwater_workers.file_queue.file_committer import CommitterThreads, FileCommitter
from headwater_workers.file_queue.request_queue import LEASE_SECONDS, RequestQueue
from headwater_workers.file_queue.request_senders import open_request_queue
from headwater_workers.liveness import PATIENCE_SECONDS, Pulse

CHECK_SECONDS = 0.5
DRAIN_SECONDS = 20.0
"""How long the batches that are held at a stop may take; after it they come back to the queue by themselves."""
RESTART_SECONDS = 30.0
"""The longest wait before a committer process that ended by itself is started again; doubles from one second."""

log = structlog.get_logger(__name__)

ReferenceOpener = Callable[[Store, FileScope], FileReferenceStore]


def serve_committers(
    settings: Settings,
    broker: Broker,
    open_references: ReferenceOpener,
    *,
    parent: int | None = None,
    alive_file: Path | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> int:
    """Apply the requests of the queue until SIGTERM or SIGINT, which let the batches that are held end.

    parent        a process whose end is this one's end, too
    alive_file    touched every few seconds while all committers turn
    returns       the exit code
    """
    stopped = stop_at_signals(is_forced_by_second=False)  # Ctrl-C reaches it by its terminal and, once more, by its worker
    queue = open_request_queue(broker, cap=settings.files_committers, lease_seconds=lease_seconds)
    with Pulse(alive_file) as pulse, open_store(settings.store, settings=settings, create=False) as store:
        committer = FileCommitter(queue, lambda scope: open_references(store, scope), clock=store.clock)
        threads = CommitterThreads(
            committer, queue, threads=settings.files_committers, beat=pulse.beat, lease_seconds=lease_seconds
        )
        threads.start()
        log.info("file committer started", committers=settings.files_committers, store=store.url, pid=os.getpid())
        while not stopped.wait(CHECK_SECONDS):
            if parent is not None and os.getppid() != parent:
                log.warning("the process that started this file committer is gone: it stops")
                stopped.set()
        threads.stop()
        is_drained = threads.join(DRAIN_SECONDS)
    queue.close()
    log.info("file committer stopped", pid=os.getpid(), drained=is_drained)
    return 0


class CommitterGuard:
    """Starts the committer process of a worker once there are requests, starts it again where it ended, and stops it.

    command       the command line, without the options that the guard adds
    """

    def __init__(self, queue: RequestQueue, command: list[str], environment: dict[str, str]) -> None:
        self._queue = queue
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-committer-", ignore_cleanup_errors=True)
        self._alive_file = Path(self._folder.name, "alive")
        self._started = 0.0
        self._pause = 1.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="committer guard", daemon=True)
        # A pool's child must not be forked in the middle of a step: it would inherit locks that nobody ever releases.
        self._in_step = threading.Lock()
        os.register_at_fork(
            before=self._in_step.acquire, after_in_parent=self._in_step.release, after_in_child=self._in_step.release
        )

    @property
    def pid(self) -> int | None:
        """The process, where it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the process to end; does not wait."""
        self._stopped.set()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def join(self) -> None:
        """Wait for the process, and kill it if it takes too long."""
        self.stop()
        if self._thread.ident is not None:
            self._thread.join(CHECK_SECONDS + DRAIN_SECONDS)
        self.stop()  # the thread may have started it meanwhile
        if self._process is not None:
            try:
                self._process.wait(DRAIN_SECONDS + 5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._queue.close()
        self._folder.cleanup()

    def step(self) -> None:
        """Look after the process once."""
        if self._process is None:
            if self._queue.has_requests():
                self._start()
            return
        code = self._process.poll()
        now = time.monotonic()
        if code is None:
            if self._is_stuck(now):
                log.error("the file committer hangs: it is killed and started again", pid=self._process.pid)
                self._process.kill()
        elif now - self._started > self._pause and self._queue.has_requests():
            log.warning("the file committer ended: it is started again", code=code)
            self._pause = min(self._pause * 2, RESTART_SECONDS) if now - self._started < PATIENCE_SECONDS else 1.0
            self._start()

    def _run(self) -> None:
        while not self._stopped.wait(CHECK_SECONDS):
            try:
                with self._in_step:
                    self.step()
            except Exception as fault:  # noqa: BLE001 - the door: without this loop nobody would start the committers
                log.debug("the queue of requests could not be looked at", error=f"{type(fault).__name__}: {fault}")

    def _is_stuck(self, now: float) -> bool:
        if now - self._started < PATIENCE_SECONDS:
            return False
        try:
            return time.time() - self._alive_file.stat().st_mtime > PATIENCE_SECONDS
        except FileNotFoundError:
            return True

    def _start(self) -> None:
        self._started = time.monotonic()
        self._alive_file.unlink(missing_ok=True)
        command = [*self._command, "--parent", str(os.getpid()), "--alive-file", str(self._alive_file)]
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=silent, stdout=silent, env=self._environment)


def guard_of(settings: Settings, broker: Broker, *, log_level: str) -> CommitterGuard:
    """The guard of a worker's committer process, which works on the same store and broker."""
    command = [sys.executable, "-m", "headwater", "file-committer", "--log-level", log_level]
    if broker.folder is not None:
        command += ["--broker-folder", str(broker.folder)]
    environment = {**os.environ, "HEADWATER_STORE": settings.store}
    return CommitterGuard(open_request_queue(broker), command, environment)
