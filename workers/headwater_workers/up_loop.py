"""The loop of `up`: reconcile the manifests of a folder, let the worker work, and reconcile again, until nothing is due, or for ever.

The last good state of the folder is kept while its files have faults.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from headwater.clock import Micros
from headwater.errors import HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.realms import RealmRegistry
from headwater.reconcile import (
    FileCredentials,
    KnownRealms,
    ManagerIdentity,
    Manifest,
    Notice,
    ReconcileOutcome,
    load_manifests,
    reconcile,
)
from headwater.settings import Settings, duration_text
from headwater.store import Store, Versioned
from headwater.tasks import Task, TaskQueue
from headwater_workers.interruption import Interruption
from headwater_workers.up_summary import TaskWatcher, is_due
from headwater_workers.worker_process import WorkerProcess


class ManifestFolder:
    """Reads a folder again when its contents have changed.

    known_realms  asked at each reading for the realms that manifests may name
    """

    def __init__(self, folder: Path, settings: Settings, known_realms: Callable[[], KnownRealms]) -> None:
        self._folder = folder
        self._settings = settings
        self._known_realms = known_realms
        self._digest = ""
        self.manifests: tuple[Manifest, ...] = ()
        self.fault = ""
        """Why ``manifests`` are those of an earlier state of the folder, in one line; empty while they are those of its files."""

    def load(self) -> bool:
        """Read the folder if it changed; returns whether it did.

        raises        ManifestError and NotFoundError, once for each change; ``manifests`` stay as they were
        """
        digest = self._digest_now()
        if digest == self._digest:
            return False
        known = self._known_realms()  # where the store does not answer, the change counts as unread
        self._digest = digest
        self.manifests = load_manifests(self._folder, settings=self._settings, known_realms=known)
        self.fault = ""
        return True

    def load_or_tell(self, warn: Callable[[str], None]) -> bool:
        """Read a folder that a person is editing if it changed: faults are warned of, and only a store that does not answer is raised."""
        try:
            return self.load()
        except (UnavailableError, UnknownOutcomeError):
            raise
        except HeadwaterError as error:
            lines = str(error).splitlines()
            for line in lines:
                warn(line)
            warn("the manifests stay as they were before")
            self.fault = (
                f"the files have faults, and an earlier state is in force: {lines[0] if lines else type(error).__name__}"
            )
            return False

    def _digest_now(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        files = sorted(path for path in self._folder.iterdir() if path.is_file()) if self._folder.is_dir() else []
        for path in files:
            try:
                content = path.read_bytes()
            except OSError:
                content = b"?"  # it vanished or is unreadable: reading will report it
            digest.update(b"%d:%s %d:" % (len(path.name.encode()), path.name.encode(), len(content)) + content)
        return digest.hexdigest()


BUSY_SECONDS, IDLE_SECONDS = 0.3, 1.0
HANGING_SECONDS = 600.0
"""A pass over all manifests that takes longer than this hangs."""
TRIES = 10
"""The number of passes in a row that may fail for a temporary reason before `up --once` gives up."""


class Convergence:
    """Converges a store to a folder of manifests.

    tell          prints one line
    warn          prints one line of what a person should look at; default: ``tell``
    interruption  is asked before each pass, and may end a pause
    """

    def __init__(
        self,
        store: Store,
        folder: ManifestFolder,
        credentials: FileCredentials,
        worker: WorkerProcess,
        tell: Callable[[str], None],
        interruption: Interruption | None = None,
        *,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._folder = folder
        self._credentials = credentials
        self._worker = worker
        self._tell = tell
        self._warn = warn or tell
        self._interruption = interruption or Interruption()
        self._told: set[str] = set()
        self._failed = 0
        self._turned = store.clock.monotonic()
        self.trouble = ""
        """What keeps the passes from reaching the store, or nothing."""
        self.realms_before = [realm.id for realm in RealmRegistry(store).list_realms()]
        self.watcher = TaskWatcher(TaskQueue(store), tell)
        self.outcomes: Sequence[ReconcileOutcome] = ()

    def stay(self) -> NoReturn:
        """Never returns. A folder with faults leaves the last good state in force; a store that does not answer is asked again.

        The fault is printed once, and so is its end: an outage of hours is two lines.
        """
        while True:
            self._worker.keep_alive()
            try:
                self._folder.load_or_tell(self._warn)
                active, _ = self._pass()
                is_busy = self._is_busy(active, wait_seconds=0)
            except (UnavailableError, UnknownOutcomeError) as fault:
                if str(fault) != self.trouble:
                    self._warn(f"{fault}: trying again")
                self.trouble = str(fault)
                is_busy = False
            else:
                if self.trouble:
                    self._tell("the store answers again")
                self.trouble = ""
            self._pause(BUSY_SECONDS if is_busy else IDLE_SECONDS)

    def run_once(self, *, wait_seconds: float) -> list[Versioned[Task]]:
        """Returns when nothing is due within the wait, with the tasks that are due later."""
        while True:
            self._worker.keep_alive()
            before, after = self._pass()
            if not self._is_busy([*before, *after], wait_seconds=wait_seconds):
                return after
            self._pause(BUSY_SECONDS)

    def loop_findings(self) -> dict[str, str]:
        """Whether the loop turns: a pass that takes far too long hangs, and only a restart helps."""
        seconds = self._store.clock.monotonic() - self._turned
        return {"loop": "" if seconds <= HANGING_SECONDS else f"it has not turned for {duration_text(round(seconds))}"}

    def _pause(self, seconds: float) -> None:
        self._turned = self._store.clock.monotonic()
        self._interruption.pause(self._store.clock.sleep, seconds)

    def _pass(self) -> tuple[list[Versioned[Task]], list[Versioned[Task]]]:
        """Reconcile once; returns the active tasks before and after."""
        self._interruption.check()
        before = self.watcher.poll()
        self.outcomes = reconcile(
            self._store,
            self._folder.manifests,
            credentials=self._credentials,
            manager=ManagerIdentity(),
            tell=lambda subject, sentence: self._tell(f"{subject}: {sentence}"),
        )
        self._tell_news()
        self._failed = self._failed + 1 if any(_may_pass(outcome) for outcome in self.outcomes) else 0
        return before, self.watcher.poll()

    def _is_busy(self, active: Sequence[Versioned[Task]], *, wait_seconds: float) -> bool:
        until = Micros(self._store.clock.now() + round(wait_seconds * 1_000_000))
        return (
            any(outcome.done for outcome in self.outcomes)
            or any(outcome.waits_until is not None and outcome.waits_until <= until for outcome in self.outcomes)
            or any(is_due(task.value, until=until) for task in active)
            or 0 < self._failed < TRIES
        )

    def _tell_news(self) -> None:
        """Print what a manifest waits for, is refused for, or reports; each message once, and again after it was absent."""
        now = {line for outcome in self.outcomes for line in remarks(outcome)}
        for line in sorted(now - self._told):
            self._tell(line)
        self._told = now


def remarks(outcome: ReconcileOutcome) -> list[str]:
    """The messages about a manifest that is not as it says."""
    notices: list[Notice] = [*outcome.waits, *outcome.refused, *outcome.reports]
    errors = [f"{outcome.subject}: {error}" for error in outcome.errors]
    return [f"{outcome.subject}: {notice.reason}: {notice.message}" for notice in notices] + errors


def _may_pass(outcome: ReconcileOutcome) -> bool:
    return isinstance(outcome.error, UnavailableError | UnknownOutcomeError)
