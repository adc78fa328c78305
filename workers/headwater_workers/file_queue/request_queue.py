"""The queue of requests on file references: what it promises, on whatever broker, and what it hands out.

Neither FIFO nor Celery: the queue keeps a list for each file table and serves the lists in turn, and a reader takes a batch of one table
at a time. A batch is held under a lease, which its reader renews. What is not settled comes back: at once where the reader says so, after
the lease where the reader died.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.files import FileScope
from headwater.store import RealmKey

LEASE_SECONDS = 15.0
"""The requests of a reader that died come back this long after its last renewal."""
LARGEST_BYTES = 128 * 1024
"""A queue in a Redis is memory: larger requests are applied at once by whoever has them."""


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request in the queue.

    key           32 hex digits, of this message: a request that was sent twice has two
    strikes       how often its reader died or failed unexpectedly while it held this; such a request is handed out alone
    tries         how often it was handed back because a database did not answer
    body          MessagePack of the request
    """

    key: str
    body: bytes
    strikes: int = 0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """Requests of one file table that a reader holds. ``table`` is the text of its scope."""

    id: str
    table: str
    requests: tuple[QueuedRequest, ...]


class SetAsideRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that waits for a person.

    request       its id; empty where the message could not be read
    kind          add, split, assign, commit or forget; empty where the message could not be read
    """

    key: str
    table: str
    request: str
    kind: str
    reason: str
    strikes: int
    time: Micros
    body: bytes


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is to become of the requests of a batch; those that are not mentioned are done.

    later         requests to be handed out again, with their new strikes and tries
    delay_seconds how long from now those wait
    """

    later: Sequence[QueuedRequest] = ()
    delay_seconds: float = 0.0
    set_aside: Sequence[SetAsideRequest] = ()


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The state of a queue. ``waiting``, ``held`` and ``delayed`` are requests by table; the last wait until they are tried again."""

    waiting: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    delayed: Mapping[str, int] = field(default_factory=dict)
    set_aside: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


class RequestQueue(Protocol):
    """A queue of requests. Safe for threads. Every call raises UnavailableError when the broker does not answer."""

    def push(self, table: str, requests: Sequence[QueuedRequest]) -> None:
        """Add requests of one table. After an error some may have been added."""

    def take(self, limit: int) -> RequestBatch | None:
        """Take up to ``limit`` requests of the table whose turn it is; one with strikes comes alone. None: nothing waits, or as many
        batches are held as may be, by all readers of the queue together.
        """

    def wait(self, seconds: float) -> None:
        """Return when requests were added, at the latest after this time."""

    def settle_batch(self, batch: RequestBatch, settlement: Settlement) -> None:
        """End a batch. Has no effect once the batch has come back to the queue: its requests will be handed out again."""

    def renew_batches(self, batches: Sequence[RequestBatch]) -> None:
        """Renew the leases of batches that are held."""

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add to the counters of the queue."""

    def has_requests(self) -> bool:
        """Whether any request waits, is held or delayed."""

    def figures(self) -> QueueFigures: ...

    def find_reasons(self, table: str, requests: Sequence[str]) -> dict[str, str]:
        """The reasons of those requests, by id, that were set aside."""

    def list_set_aside(self) -> list[SetAsideRequest]:
        """All that was set aside, the oldest first."""

    def retry_set_aside(self, keys: Sequence[str]) -> int:
        """Put requests back into the queue, without strikes. Returns how many."""

    def discard_set_aside(self, keys: Sequence[str]) -> int:
        """Forget requests that were set aside. Returns how many."""

    def close(self) -> None: ...


def text_of_scope(scope: FileScope) -> str:
    """The text of a scope, which is also the name of a folder and a part of keys.

    raises        RefusedError for an id of a table that would not do as one
    """
    if not (scope.table.isascii() and scope.table.isalnum()):
        raise RefusedError(f"{scope.table!r} is not an id of a file table: these are 16 hex digits")
    return f"{scope.realm:016x}-{scope.table}"


def scope_of(table: str) -> FileScope:
    """The scope of a text.

    raises        ValueError
    """
    realm, _, name = table.partition("-")
    return FileScope(RealmKey(int(realm, 16)), name)
