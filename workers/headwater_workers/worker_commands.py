"""The commands that this package adds to the command line: `worker`, `up` and `spark-archive`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import click
import structlog
from structlog.typing import FilteringBoundLogger

from headwater.console import DURATION, UndashedPath, prints
from headwater.errors import RefusedError
from headwater.exits import FINDINGS
from headwater.logs import LEVELS
from headwater.monitoring import Health
from headwater.outcome_text import has_findings
from headwater.reconcile import FileCredentials, ReconcileOutcome, known_realms, load_manifests
from headwater.settings import Settings
from headwater.store import Store
from headwater.tasks import Task, TaskState
from headwater_workers.celery_app import EMBEDDED, broker_of, configure_worker_logs, has_folder
from headwater_workers.interruption import Interruption, TerminatedError
from headwater_workers.pipeline import pack_environment
from headwater_workers.up_loop import Convergence, ManifestFolder, remarks
from headwater_workers.up_summary import SUMMARY, summary, summary_text
from headwater_workers.worker import serve_worker
from headwater_workers.worker_metrics import WorkerMetrics, WorkerProbes
from headwater_workers.worker_process import WorkerProcess

TERMINATED = 128 + 15
"""The exit code that a shell reports for a process that SIGTERM ended early."""

log: FilteringBoundLogger = structlog.get_logger(__name__)


class CommandSession(Protocol):
    output: str

    @property
    def settings(self) -> Settings: ...
    def open_store(self) -> Store: ...
    def create_store(self, check: Callable[[], object]) -> Store: ...
    def say(self, sentence: str) -> None: ...
    def print_result(self, data: Any, lines: Callable[[], Sequence[str]]) -> None: ...


concurrency_option = click.option(
    "--concurrency", type=click.IntRange(min=1), default=2, show_default=True, help="Tasks done at the same time."
)
FOLDER = UndashedPath(file_okay=False)


@click.command(name="worker")
@concurrency_option
@click.option("--broker-folder", type=FOLDER, help="Folder of the embedded broker; default: beside the SQLite file.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True, help="What is logged.")
@click.option(
    "--alive-file",
    type=UndashedPath(dir_okay=False),
    help="File that is touched every few seconds while the worker is well, for a probe that looks at its age.",
)
@click.option("--parent", type=int, hidden=True, help="Stop when this process, which started the worker, is gone.")
@click.pass_obj
def worker_command(
    session: CommandSession,
    concurrency: int,
    broker_folder: Path | None,
    log_level: str,
    alive_file: Path | None,
    parent: int | None,
) -> int:
    """Do the tasks of the store until SIGTERM, which hands running ones back. Exit code 3 where there is no store."""
    settings = session.settings
    broker = broker_of(settings, broker_folder)
    with session.open_store() as store:
        return serve_worker(
            settings, broker, store, concurrency=concurrency, log_level=log_level, parent=parent, alive_file=alive_file
        )


@click.command(name="up")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--once", is_flag=True, help="End when nothing is due any more.")
@click.option(
    "--wait",
    "wait_seconds",
    default="0s",
    type=DURATION,
    metavar="DURATION",
    help="With --once: also wait for what is due within this time.",
)
@click.option(
    "--credentials",
    type=FOLDER,
    default=Path("credentials"),
    show_default=True,
    help="Folder for the credentials of new realms and principals.",
)
@concurrency_option
@prints(SUMMARY)
def up_command(
    session: CommandSession, folder: Path, once: bool, wait_seconds: float, credentials: Path, concurrency: int
) -> int:
    """Apply the manifests in DIR, run a worker, and keep watching the files.

    With --once a summary is printed at the end; exit code 8 if a task was given up or tables were quarantined. Without, what is done
    is printed as it happens.

    Ctrl-C and SIGTERM stop the worker, then `up`. Exit code: 130 after Ctrl-C, 0 after SIGTERM, 143 if SIGTERM came before --once
    was done.
    """
    if wait_seconds and not once:
        raise click.UsageError("--wait goes with --once: without it, `up` stays until it is interrupted")
    with Interruption() as interruption:
        try:
            return _up(session, folder, credentials, concurrency, wait_seconds if once else None, interruption)
        except TerminatedError:
            return TERMINATED if once else 0


def _up(
    session: CommandSession,
    folder: Path,
    credentials: Path,
    concurrency: int,
    wait_seconds: float | None,
    interruption: Interruption,
) -> int:
    """wait_seconds: None stays."""
    settings = session.settings
    tell = _teller(session)

    def check() -> None:
        load_manifests(folder, settings=settings)

    with _broker_folder(settings) as broker_folder, session.create_store(check) as store:
        manifests = ManifestFolder(folder, settings, lambda: known_realms(store))
        manifests.load()
        _warn_of_unsafe_settings(settings, tell)
        with WorkerProcess(
            settings.store, concurrency=concurrency, log_level="warning", broker_folder=broker_folder
        ) as process:
            convergence = Convergence(
                store, manifests, FileCredentials(credentials), process, tell, interruption, warn=_warner(session)
            )
            with _up_probes(settings, store, convergence, manifests, process, concurrency, interruption):
                if wait_seconds is None:
                    convergence.stay()
                waiting = convergence.run_once(wait_seconds=wait_seconds)
        tasks = {seen.id: seen for seen in (*convergence.watcher.seen, *waiting)}
        data = summary(store, list(tasks.values()), convergence.outcomes, realms_before=convergence.realms_before)
    session.print_result(data, lambda: [summary_text(data)])
    return exit_code_of_up(convergence.outcomes, [seen.value for seen in tasks.values()])


def _up_probes(
    settings: Settings,
    store: Store,
    convergence: Convergence,
    manifests: ManifestFolder,
    process: WorkerProcess,
    concurrency: int,
    interruption: Interruption,
) -> WorkerProbes:
    """Health of `up` and of its worker, and metrics of the store."""
    metrics = WorkerMetrics(
        store,
        concurrency=concurrency,
        is_stopping=lambda: interruption.is_asked,
        realms=settings.worker_metrics_realms,
        has_faulty_manifests=lambda: bool(manifests.fault),
    )

    def ready() -> dict[str, str]:
        return {
            "process": "it is stopping" if interruption.is_asked else "",
            "worker": "" if process.is_running else "it has ended, and is started again",
            "manifests": convergence.trouble or manifests.fault,
        }

    return WorkerProbes(settings, metrics, store, Health(convergence.loop_findings, ready))


@click.command(name="spark-archive")
@click.argument("file", type=UndashedPath(dir_okay=False))
@click.option("--without", multiple=True, metavar="NAME", help="A distribution that executors have or can do without.")
@click.pass_obj
def spark_archive_command(session: CommandSession, file: Path, without: tuple[str, ...]) -> int:
    """Pack this environment's headwater and what it runs on into FILE, for Spark executors that have none of it.

    Name the file by HEADWATER_SPARK_ARCHIVE, where executors can fetch it. It fits the same minor version of Python and the same platform.
    """
    packed = pack_environment(file, without=without)
    session.say(f"{file}: {packed.files} files of {len(packed.distributions)} distributions, {packed.size_bytes} bytes")
    return 0


@contextmanager
def _broker_folder(settings: Settings) -> Iterator[Path | None]:
    """The folder of this process' own embedded broker: next to the SQLite file (None), or a temporary one that is removed with it.

    No other worker has to share it: each finds what is due in the store.
    """
    if settings.broker != EMBEDDED or has_folder(settings):
        broker_of(settings)
        yield None
        return
    with TemporaryDirectory(prefix="headwater-broker-", ignore_cleanup_errors=True) as folder:
        broker_of(settings, Path(folder))
        yield Path(folder)


def exit_code_of_up(outcomes: Sequence[ReconcileOutcome], tasks: Sequence[Task]) -> int:
    """The exit code: 0, or 8 for a task that was given up, or that left findings such as tables in quarantine.

    raises        what kept a manifest from being carried out; RefusedError for one that will not be
    """
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    refused = [line for outcome in outcomes if outcome.refused for line in remarks(outcome)]
    if refused:
        raise RefusedError("\n".join(refused))
    reports = [report.reason for outcome in outcomes for report in outcome.reports]
    is_left = any(task.state is TaskState.FAILED or has_findings(task.kind, task.outcome or {}) for task in tasks)
    return FINDINGS if is_left or "TaskDeadLettered" in reports else 0


def _teller(session: CommandSession) -> Callable[[str], None]:
    """A function that prints events as they happen: as text, or where logs are JSON, as log lines on standard error."""
    if session.settings.log_format != "json":
        return session.say
    configure_worker_logs(session.settings)
    return log.info


def _warner(session: CommandSession) -> Callable[[str], None]:
    """A function that prints what a person should look at, in logs as a warning."""
    return log.warning if session.settings.log_format == "json" else session.say


def _warn_of_unsafe_settings(settings: Settings, tell: Callable[[str], None]) -> None:
    if settings.unsafe_short_graces:
        tell("UNSAFE: unsafe_short_graces lowers graces and holds: for tests and demonstrations, never where others write")
