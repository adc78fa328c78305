"""A worker as a child process: started, watched, and always ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from headwater.errors import UnavailableError
from headwater.settings import unknown_variables

RESTARTS = 3
STABLE_SECONDS = 60.0
"""A worker that lived for this long did not fail to start."""


class WorkerProcess:
    """`headwater worker` on the same store. A context manager: on exit the worker has ended.

    store_url     as this process would open it; handed on in the environment, because it may hold a password
    broker_folder of the embedded broker, where it has none beside the store
    stop_seconds  how long it may take to hand its tasks back before it is killed
    """

    def __init__(
        self,
        store_url: str,
        *,
        concurrency: int,
        log_level: str = "info",
        stop_seconds: float = 30.0,
        broker_folder: Path | None = None,
    ) -> None:
        self._stop_seconds = stop_seconds
        self._restarts = 0
        # Probes are answered by this process, at the one address that there is; of variables that nothing reads it has warned already.
        known = {name: value for name, value in os.environ.items() if not unknown_variables({name: value})}
        self._environment = {**known, "HEADWATER_STORE": store_url, "HEADWATER_WORKER_PROBES": ""}
        self._command = [sys.executable, "-m", "headwater", "worker", "--concurrency", str(concurrency)]
        self._command += ["--log-level", log_level, "--parent", str(os.getpid())]
        self._command += [] if broker_folder is None else ["--broker-folder", str(broker_folder)]
        self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def keep_alive(self) -> None:
        """Restart the worker if it has ended.

        raises        UnavailableError when an earlier restart did not help
        """
        code = self._process.poll()
        if code is None:
            return
        if time.monotonic() - self._started > STABLE_SECONDS:
            self._restarts = 0
        if self._restarts == RESTARTS:
            raise UnavailableError(
                f"the worker process ended {RESTARTS + 1} times, at last with code {code}: see what it said above"
            )
        self._restarts += 1
        self._process = self._start()

    def stop(self) -> None:
        """Send SIGTERM; after the time limit, SIGKILL to every process that it started."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(self._stop_seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the worker and its children, which are in its session."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        # A session of its own, so that Ctrl-C reaches this process alone, which then ends the worker in order.
        # Its standard output is Celery's small talk; what it logs goes to standard error, as ours does.
        self._started = time.monotonic()
        silent = subprocess.DEVNULL
        return subprocess.Popen(self._command, start_new_session=True, stdin=silent, stdout=silent, env=self._environment)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
