"""The commands of the queue of requests on file references: `file-committer`, which applies them, and `file-queue`, which shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from headwater.console import ResultView, UndashedPath, ViewField, count_text, prints, time_field
from headwater.errors import NotFoundError
from headwater.files import open_file_references
from headwater.logs import LEVELS
from headwater.settings import Settings
from headwater.store import Store
from headwater_workers.celery_app import broker_of, configure_worker_logs
from headwater_workers.file_queue import (
    QueueFigures,
    RequestQueue,
    SetAsideRequest,
    open_request_queue,
    scope_of,
    serve_committers,
)

T = TypeVar("T")
FOLDER = UndashedPath(file_okay=False)
folder_option = click.option(
    "--broker-folder", type=FOLDER, help="Folder of the embedded broker; default: beside the SQLite file."
)
keys_argument = click.argument("keys", metavar="KEY...", nargs=-1, required=True)


class QueueSession(Protocol):
    @property
    def settings(self) -> Settings: ...
    def open_store(self) -> Store: ...
    def say(self, sentence: str) -> None: ...
    def show(self, view: ResultView[T], item: T) -> None: ...
    def show_all(self, view: ResultView[T], items: Sequence[T]) -> None: ...


def _tables(figures: QueueFigures) -> list[dict[str, Any]]:
    names = sorted({*figures.waiting, *figures.held, *figures.delayed})
    return [
        {
            **_scope(name),
            "waiting": figures.waiting.get(name, 0),
            "held": figures.held.get(name, 0),
            "delayed": figures.delayed.get(name, 0),
        }
        for name in names
    ]


def _scope(name: str) -> dict[str, str]:
    try:
        scope = scope_of(name)
    except ValueError:
        return {"realmKey": "", "table": name}
    return {"realmKey": f"{scope.realm:016x}", "table": scope.table}


FILE_QUEUE: ResultView[QueueFigures] = ResultView(
    "file queue",
    "file queues",
    (
        ViewField(
            "tables",
            "file tables with requests in the queue",
            _tables,
            inside={
                "[].realmKey": "key of the realm",
                "[].table": "id of the file table",
                "[].waiting": "requests that wait for their turn",
                "[].held": "requests that a committer has taken",
                "[].delayed": "requests that are tried again after a while",
            },
        ),
        ViewField("setAside", "requests that wait for a person: `headwater file-queue aside`"),
        ViewField(
            "counts",
            "since the queue began: `applied`, `refused`, `retried` and `set aside` requests, and transactions that were begun again,"
            " by SQLSTATE",
        ),
    ),
)
SET_ASIDE: ResultView[SetAsideRequest] = ResultView(
    "set-aside request",
    "set-aside requests",
    (
        ViewField("key", "its key in the queue", header="KEY"),
        ViewField("time", "when it was set aside", header="TIME", form=time_field),
        ViewField("realmKey", "key of the realm", lambda each: _scope(each.table)["realmKey"]),
        ViewField("table", "id of the file table", lambda each: _scope(each.table)["table"], "TABLE"),
        ViewField("request", "its id, of a commit that of the job; empty: it cannot be read", header="REQUEST"),
        ViewField("kind", "add, split, assign, commit or forget; empty: it cannot be read", header="KIND"),
        ViewField("strikes", "committers that failed or died with it", header="STRIKES"),
        ViewField("reason", "why", header="REASON"),
    ),
)


@click.command(name="file-committer")
@folder_option
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True, help="What is logged.")
@click.option(
    "--alive-file",
    type=UndashedPath(dir_okay=False),
    help="File that is touched every few seconds while all committers turn, for a probe that looks at its age.",
)
@click.option("--parent", type=int, hidden=True, help="Stop when this process, which started the committers, is gone.")
@click.pass_obj
def file_committer_command(
    session: QueueSession, broker_folder: Path | None, log_level: str, alive_file: Path | None, parent: int | None
) -> int:
    """Apply queued requests on file references until SIGTERM. `headwater worker` starts this itself once there are any."""
    settings = session.settings
    broker = broker_of(settings, broker_folder)
    _require_store(session)
    configure_worker_logs(settings, level=LEVELS[log_level])
    opener = partial(open_file_references, awaits_assignments=True)
    return serve_committers(settings, broker, opener, parent=parent, alive_file=alive_file)


@click.group(name="file-queue")
def file_queue_group() -> None:
    """Requests on file references that are applied later: how many there are, and those that need a person."""


@file_queue_group.command(name="show")
@folder_option
@prints(FILE_QUEUE)
def show_command(session: QueueSession, broker_folder: Path | None) -> None:
    """Show how many requests wait, by file table."""
    session.show(FILE_QUEUE, _open(session, broker_folder).figures())


@file_queue_group.command(name="aside")
@folder_option
@prints(SET_ASIDE, many=True)
def aside_command(session: QueueSession, broker_folder: Path | None) -> None:
    """List the requests that were set aside, the oldest first, with the reasons."""
    session.show_all(SET_ASIDE, _open(session, broker_folder).list_set_aside())


@file_queue_group.command(name="retry")
@keys_argument
@folder_option
@click.pass_obj
def retry_command(session: QueueSession, keys: tuple[str, ...], broker_folder: Path | None) -> None:
    """Put requests that were set aside back into the queue, after their cause was mended."""
    queue = _open(session, broker_folder)
    session.say(f"{count_text(queue.retry_set_aside(_known(queue, keys)), 'request')} put back into the queue")


@file_queue_group.command(name="discard")
@keys_argument
@folder_option
@click.pass_obj
def discard_command(session: QueueSession, keys: tuple[str, ...], broker_folder: Path | None) -> None:
    """Forget requests that were set aside; what they asked for does not happen."""
    queue = _open(session, broker_folder)
    session.say(f"{count_text(queue.discard_set_aside(_known(queue, keys)), 'request')} discarded")


def _require_store(session: QueueSession) -> None:
    """Refuse a store that is not there, before a folder for its queue is made."""
    session.open_store().close()


def _open(session: QueueSession, broker_folder: Path | None) -> RequestQueue:
    _require_store(session)
    return open_request_queue(broker_of(session.settings, broker_folder))


def _known(queue: RequestQueue, keys: Sequence[str]) -> Sequence[str]:
    there = {record.key for record in queue.list_set_aside()}
    if unknown := sorted(set(keys) - there):
        raise NotFoundError(f"no request with the key {unknown[0]!r} was set aside: `headwater file-queue aside` lists them")
    return keys
