"""Requests that were applied to a branch: a repeated request finds its earlier commit instead of being applied once more.

A branch's index ``requests`` has an entry for each request with a key. It is read first and written last by the change that makes
the commit, and so published in the same swap. Of two processes that are sent the same request the second one finds the entry of the
first, and a repeat finds it where an answer was lost:

    process A                          process B
    looks the head up, version 7       looks the head up, version 7
    reads: no entry                    reads: no entry
    swaps to 8, with the entry
                                       is beaten, and runs again on the new head
                                       reads the entry: changes nothing, and answers with A's commit

    key           16 bytes UUID, 16 bytes BLAKE2b of whose it is: 8 bytes realm key, the reference's name, 0x00 and the scope
    value         8 bytes time in microseconds, 16 bytes BLAKE2b of the digest, 2 bytes status, 8 bytes commit id, all big-endian

Merges, transplants and restores edit the content, and leave this index as it is. A new branch begins with the commit of another one,
and an archive has whole commits, so their entries come along. But they are of another reference or realm: nothing asks for them
there, and they are dropped when they expire. A UUID of version 7 begins with the client's time, so the oldest entries stand in front.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from headwater.clock import Micros
from headwater.commits import Transaction
from headwater.errors import CorruptionError, RefusedError
from headwater.index import Index, IndexValue
from headwater.store import ObjectId, RealmKey

REQUESTS = "requests"
"""The index of the requests that were applied to a branch."""
EXPIRED_LIMIT = 100
"""Expired entries that a commit looks at."""

_KEY_BYTES = 16 + 16
_VALUE_BYTES = 8 + 16 + 2 + 8
_UUID_VERSION = 7


class RequestKeyReusedError(RefusedError):
    """The key was used for another request: a new request needs a new key."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """What a client gives with a request that it may have to repeat, for instance as the header ``Idempotency-Key``.

    uuid          of version 7
    scope         whose key it is, such as a hash of realm and principal: the same UUID from others is another key
    digest        what is asked for, such as a hash of method, path and body
    status        what the answer is told by, which a repeat tells again
    raises        RefusedError for a UUID of another version
    """

    uuid: UUID
    scope: bytes
    digest: bytes
    status: int = 200

    def __post_init__(self) -> None:
        if self.uuid.version != _UUID_VERSION:
            raise RefusedError(f"{self.uuid} cannot be the key of a request: it must be a UUID of version {_UUID_VERSION}")
        if not 0 <= self.status < 1 << 16:
            raise RefusedError(f"the status of request {self.uuid} must be a number of 2 bytes, not {self.status}")

    def fresh_uuid(self) -> UUID:
        """A uuid for what the request makes: the same in every attempt and process, and of no other request."""
        return UUID(bytes=_hash16(b"made by" + self.uuid.bytes + _hash16(self.scope) + _hash16(self.digest)), version=4)

    def index_key(self, realm_key: RealmKey, reference: str) -> bytes:
        return self.uuid.bytes + _hash16(realm_key.to_bytes(8, "big") + reference.encode() + b"\0" + self.scope)


@dataclass(frozen=True, slots=True)
class AppliedRequest:
    """A request that was applied, and the commit that it made.

    time          of the commit, by the clock of the process that made it
    digest        16 bytes
    """

    time: Micros
    digest: bytes
    status: int
    commit_id: ObjectId

    def to_value(self) -> IndexValue:
        parts = (self.time.to_bytes(8, "big"), self.digest, self.status.to_bytes(2, "big"), self.commit_id.to_bytes(8, "big"))
        return IndexValue(None, b"".join(parts))

    @classmethod
    def from_value(cls, value: IndexValue) -> AppliedRequest:
        """Decode a value that ``to_value`` wrote; raises CorruptionError when it has another length."""
        data = bytes(value.data)
        if len(data) != _VALUE_BYTES:
            raise CorruptionError(f"an applied request of {len(data)} bytes; {_VALUE_BYTES} would be right")
        time, status, commit_id = (int.from_bytes(part, "big") for part in (data[:8], data[24:26], data[26:]))
        return cls(Micros(time), data[8:24], status, ObjectId(commit_id))


def find_request(requests: Index, realm_key: RealmKey, reference: str, request: RequestKey) -> AppliedRequest | None:
    """Find what became of a request on a branch, given the index of a commit of that branch. An expired entry counts while it is there.

    raises        RequestKeyReusedError when the key was used for another request
    """
    value = requests.get(request.index_key(realm_key, reference))
    if value is None:
        return None
    applied = AppliedRequest.from_value(value)
    if applied.digest != _hash16(request.digest):
        raise RequestKeyReusedError(
            f"key {request.uuid} was used for another request before: repeat that one as it was, or take a new key"
        )
    return applied


def note_request(tx: Transaction, request: RequestKey) -> None:
    """Note in a transaction that its commit applies a request."""
    applied = AppliedRequest(tx.time, _hash16(request.digest), request.status, tx.commit_id)
    tx.index(REQUESTS).put(request.index_key(tx.reader.key, tx.reference), applied.to_value())


def drop_expired(tx: Transaction, *, lifetime_seconds: float, limit: int = EXPIRED_LIMIT, is_thorough: bool = False) -> int:
    """Drop entries that are older than their lifetime, oldest UUIDs first, and return how many.

    limit         the most that are dropped
    is_thorough   look at all entries, and not only at as many as may be dropped
    """
    requests, before = tx.index(REQUESTS), tx.time - round(lifetime_seconds * 1_000_000)
    expired = list(islice(_expired_keys(requests, before, None if is_thorough else limit), limit))
    for key in expired:
        requests.remove(key)
    return len(expired)


def count_expired(requests: Index, *, before: Micros) -> int:
    """Count the entries of an index from before a time. Reads all of them."""
    return sum(1 for _ in _expired_keys(requests, before, None))


def _expired_keys(requests: Index, before: int, limit: int | None) -> Iterator[bytes]:
    for key, value in requests.range(limit=limit):
        # In front there may be entries of a client whose clock is behind: only their own times tell that they are young.
        if limit is not None and int.from_bytes(key[:6], "big") * 1000 >= before:
            return
        if int.from_bytes(value.data[:8], "big") < before:
            yield key


def entry_fault(key: bytes, value: IndexValue) -> str:
    """Say what is wrong with an entry of the index; an empty text if it is sound."""
    if len(key) != _KEY_BYTES or UUID(bytes=bytes(key[:16])).version != _UUID_VERSION:
        return f"its key {bytes(key).hex()} is no UUID of version {_UUID_VERSION} and a hash"
    if len(value.data) != _VALUE_BYTES or value.object_id is not None:
        return f"its value has {len(value.data)} bytes where {_VALUE_BYTES} would be right, or points to an object"
    return ""


def _hash16(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
