"""A broker that needs no server: a folder, with one file for each message.

kombu's own transport for folders can hand a message to a reader before it is written, and moves it through the system's temporary
folder. Here a message appears and disappears by one rename within the folder. A reader that dies loses the message it has taken:
tasks do not mind.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

import kombu.transport
from kombu.transport import filesystem

SCHEME = "headwater-folder"
POLL_SECONDS = 0.1


def register_file_broker() -> None:
    """Register the transport with kombu under ``SCHEME``."""
    kombu.transport.TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"


def prepare_folder(folder: Path) -> Path:
    """Create the folder for its owner alone: anybody who can write there can have any task looked at."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


class Channel(filesystem.Channel):
    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:  # type: ignore[override]  # kombu's own two differ
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
        hidden = Path(self.data_folder_out, f".{name}")
        hidden.write_text(json.dumps(payload))
        hidden.rename(hidden.with_name(f"{name}.{queue}.msg"))

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        for path in sorted(Path(self.data_folder_in).glob(f"*.{queue}.msg")):
            taken = path.with_name(f".{path.name}.taken")
            try:
                path.rename(taken)
            except FileNotFoundError:
                continue  # another reader was faster
            message: dict[str, Any] = json.loads(taken.read_text())
            taken.unlink()
            return message
        raise Empty


class Transport(filesystem.Transport):
    """Polls from Celery's event loop, like the Redis transport.

    Without the event loop Celery's pool shares one pair of pipes among its children, each guarded by a lock, and a child that is
    killed while it holds one stops the whole pool for ever.
    """

    Channel = Channel
    implements = filesystem.Transport.implements.extend(asynchronous=True)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        loop.call_repeatedly(POLL_SECONDS, self._deliver_what_waits)

    def _deliver_what_waits(self) -> None:
        with contextlib.suppress(Empty):
            while self.cycle is not None:
                self.cycle.get(self._deliver)  # type: ignore[no-untyped-call]  # kombu carries few types
