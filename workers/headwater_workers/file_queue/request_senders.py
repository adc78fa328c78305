"""The sending end of the queue, and how requests are written into it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from headwater.errors import RefusedError
from headwater.files import FileRequest, FileScope, identify_request, kind_of
from headwater.settings import Settings
from headwater.typed_values import msgpack_decoder
from headwater_workers.celery_app import Broker, broker_of
from headwater_workers.file_broker import prepare_folder
from headwater_workers.file_queue.folder_requests import FolderRequestQueue
from headwater_workers.file_queue.redis_requests import RedisRequestQueue
from headwater_workers.file_queue.request_queue import LARGEST_BYTES, LEASE_SECONDS, QueuedRequest, RequestQueue, text_of_scope

_DECODER = msgpack_decoder(FileRequest)


def open_request_queue(broker: Broker, *, cap: int = 1, lease_seconds: float = LEASE_SECONDS) -> RequestQueue:
    """The queue of requests on a broker. Nothing is asked of the broker yet.

    cap           batches that readers hold at the same time, all together
    """
    if broker.folder is None:
        return RedisRequestQueue(broker.url, broker.queue, cap=cap, lease_seconds=lease_seconds)
    return FolderRequestQueue(prepare_folder(broker.folder) / "file-requests", cap=cap, lease_seconds=lease_seconds)


def open_request_sender(settings: Settings, broker_folder: Path | None = None) -> QueuedRequestSender:
    """A sender to the queue of the store and the broker that the settings name.

    broker_folder of the embedded broker, where it has none beside the store
    """
    return QueuedRequestSender(open_request_queue(broker_of(settings, broker_folder)))


def decode_request(body: bytes) -> FileRequest:
    """raises msgspec.MsgspecError, or RefusedError for values that no request may have"""
    request: FileRequest = _DECODER.decode(body)
    return request


class QueuedRequestSender:
    """Implements ``RequestSender`` of the core."""

    def __init__(self, queue: RequestQueue) -> None:
        self._queue = queue

    def send_requests(self, scope: FileScope, requests: Sequence[FileRequest]) -> list[FileRequest]:
        sent = [identify_request(request) for request in requests]
        messages = [QueuedRequest(uuid.uuid4().hex, _encode(scope, request)) for request in sent]
        if messages:
            self._queue.push(text_of_scope(scope), messages)
        return sent

    def find_set_aside(self, scope: FileScope, requests: Sequence[str]) -> dict[str, str]:
        return self._queue.find_reasons(text_of_scope(scope), requests)

    def close(self) -> None:
        self._queue.close()


def _encode(scope: FileScope, request: FileRequest) -> bytes:
    body = msgspec.msgpack.encode(request)
    if len(body) > LARGEST_BYTES:
        raise RefusedError(
            f"request {request.request!r} ({kind_of(request)}) for file table {scope.table} takes {len(body)} bytes, and the queue takes"
            f" requests of up to {LARGEST_BYTES}: apply it at once instead of sending it, or send several smaller ones"
        )
    return body
