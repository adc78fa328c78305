"""Requests on file references that are applied later: the queue on the workers' broker, its senders, and its committers.

Knows the broker and the store of file references. Must not know Celery's tasks, or what a request is for.
"""

from headwater_workers.file_queue.committer_process import CommitterGuard, guard_of, serve_committers
from headwater_workers.file_queue.file_committer import CommitterThreads, FileCommitter
from headwater_workers.file_queue.folder_requests import FolderRequestQueue
from headwater_workers.file_queue.redis_requests import RedisRequestQueue
from headwater_workers.file_queue.request_queue import (
    QueuedRequest,
    QueueFigures,
    RequestBatch,
    RequestQueue,
    SetAsideRequest,
    Settlement,
    scope_of,
    text_of_scope,
)
from headwater_workers.file_queue.request_senders import QueuedRequestSender, open_request_queue, open_request_sender

__all__ = [
    "CommitterGuard",
    "CommitterThreads",
    "FileCommitter",
    "FolderRequestQueue",
    "QueueFigures",
    "QueuedRequest",
    "QueuedRequestSender",
    "RedisRequestQueue",
    "RequestBatch",
    "RequestQueue",
    "SetAsideRequest",
    "Settlement",
    "guard_of",
    "open_request_queue",
    "open_request_sender",
    "scope_of",
    "serve_committers",
    "text_of_scope",
]
