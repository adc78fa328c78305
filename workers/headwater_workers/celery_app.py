"""The Celery app and its logging. Its one message, ``headwater.look``, carries a task's id; everything else about a task is in the
store.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery

from headwater.errors import RefusedError
from headwater.logs import log_to_stderr
from headwater.settings import Settings
from headwater.store import ObjectId, StoreUrl, id_text, parse_url
from headwater_workers import file_broker as embedded


def configure_worker_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    """Set up this process. Lines carry task, kind, realm and catalog."""
    log_to_stderr(settings, package="headwater_workers", level=level)
    # Celery warns of every worker that runs as root because of pickle; only JSON is accepted here.
    warnings.filterwarnings("ignore", message="(?s).*superuser privileges")


LOOK = "headwater.look"
EMBEDDED = "embedded"
SOFT_LIMIT_AFTER_SECONDS = 30.0
"""Work that exceeds its time limit stops at its next check; this much later it is interrupted wherever it is."""
HARD_LIMIT_AFTER_SECONDS = 60.0
"""A child process that ignores the interruption, too, is killed this much later."""


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker that messages are sent to.

    folder        of the embedded broker; None with a server
    queue         each store has its own, so that stores can share a Redis
    """

    url: str
    queue: str
    folder: Path | None = None


def broker_of(settings: Settings, folder: Path | None = None) -> Broker:
    """The broker that the settings name; the embedded one is a folder next to the SQLite file, unless another is given.

    raises        RefusedError when there is no such broker, or no worker can reach the store
    """
    store = parse_url(settings.store)
    if store.scheme == "memory":
        raise RefusedError(
            "store memory:// lives in one process, and a worker is another one: use for example sqlite:///headwater.db"
        )
    queue = "headwater-" + hashlib.blake2b(_place_of(store).encode(), digest_size=6).hexdigest()
    if settings.broker != EMBEDDED:
        if urlsplit(settings.broker).scheme not in ("redis", "rediss"):
            raise RefusedError(
                f"broker {_shown(settings.broker)}: write `embedded`, or the URL of a Redis such as redis://localhost:6379/0"
            )
        return Broker(settings.broker, queue)
    if settings.worker_remote_control:
        raise RefusedError(
            "HEADWATER_WORKER_REMOTE_CONTROL needs a Redis, because the embedded broker carries no events: set HEADWATER_BROKER to the URL"
            " of one, such as redis://localhost:6379/0"
        )
    if folder is None and not has_folder(settings):
        raise RefusedError(
            "the embedded broker needs a folder that all workers share: give --broker-folder, or the URL of a Redis as broker"
        )
    return Broker(f"{embedded.SCHEME}://localhost/", queue, folder or Path(f"{_file_of(store)}-broker"))


def has_folder(settings: Settings) -> bool:
    """Whether the embedded broker has a default folder: next to the file of a SQLite store."""
    return _file_of(parse_url(settings.store)) is not None


def _file_of(store: StoreUrl) -> Path | None:
    return Path(store.path).absolute() if store.scheme == "sqlite" else None


def _place_of(store: StoreUrl) -> str:
    """The identity of a store: its file, or the address and settings of its database without the user."""
    options = "&".join(sorted(f"{name}={value}" for name, value in store.query))
    return str(_file_of(store) or f"{store.place}/{store.path}?{options}")


def _shown(broker: str) -> str:
    """The text of an invalid broker URL without what may be a password."""
    return f"with the scheme {urlsplit(broker).scheme!r}" if "@" in broker else repr(broker)


def make_app(settings: Settings, broker: Broker) -> Celery:
    """An app that can send messages; a worker adds the task that handles them."""
    app = Celery("headwater", set_as_current=False)
    app.conf.update(_configuration(settings, broker))
    return app


class LookMessages:
    """The messages of a store's queue: each asks any worker to look at a task. For one thread.

    Its connection is closed after each fault: a Redis that became a replica keeps connections open, and a new one leads to the primary.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._connection: Any = None

    def send(self, task_id: ObjectId, token: str | None = None) -> None:
        """Ask any worker to look at a task.

        token         of a running task whose lease was seen to expire
        """
        with self._connected() as connection:
            self._app.send_task(LOOK, args=[id_text(task_id), token], connection=connection, ignore_result=True)

    def count_waiting(self) -> int:
        """The number of messages that no worker has taken yet, from all senders."""
        with self._connected() as connection:
            return int(connection.default_channel.queue_declare(queue=self._app.conf.task_default_queue).message_count)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        if self._connection is None:
            self._connection = self._app.connection_for_write()
        try:
            yield self._connection
        except Exception:
            connection, self._connection = self._connection, None
            connection.release()
            raise


def _configuration(settings: Settings, broker: Broker) -> dict[str, Any]:
    soft_limit = settings.task_time_limit_seconds + SOFT_LIMIT_AFTER_SECONDS
    return {
        "broker_url": broker.url,
        "broker_transport_options": _transport_options(broker, soft_limit + HARD_LIMIT_AFTER_SECONDS),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # READONLY, UNBLOCKED, MASTERDOWN and their like, as Redis gives them while another server takes over, are such errors.
        "broker_channel_error_retry": True,
        "worker_consumer": "headwater_workers.patient_consumer:PatientConsumer",
        "task_default_queue": broker.queue,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_soft_time_limit": soft_limit,
        "task_time_limit": soft_limit + HARD_LIMIT_AFTER_SECONDS,
        "task_publish_retry_policy": {"max_retries": 3, "interval_start": 0.1, "interval_step": 0.5},
        "worker_prefetch_multiplier": 1,
        "worker_max_tasks_per_child": 100,
        "worker_proc_alive_timeout": 60.0,
        "worker_enable_remote_control": settings.worker_remote_control,
        "worker_send_task_events": settings.worker_remote_control,
        "task_send_sent_event": settings.worker_remote_control,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "enable_utc": True,
    }


def _transport_options(broker: Broker, time_limit_seconds: float) -> dict[str, Any]:
    if broker.folder is not None:
        embedded.register_file_broker()
        folder = str(embedded.prepare_folder(broker.folder))
        return {"data_folder_in": folder, "data_folder_out": folder, "control_folder": folder}
    # A message without acknowledgement is redelivered after the visibility time-out, even while its reader lives.
    return {"visibility_timeout": round(time_limit_seconds * 1.5), "socket_timeout": 10, "socket_connect_timeout": 10}
