"""The header ``Idempotency-Key``: a request that is repeated under its key has no second effect.

What succeeded is noted in the catalog, in the commit that the request led to, so every replica knows it; its repeat is answered with
the present state. What was refused for good is told again from the memory of this process: it changed nothing, so another replica
may as well decide anew. What did not happen for the moment, or may have happened, is never remembered: there the repeat is meant.
"""

from __future__ import annotations

import copy
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from headwater.access import ForbiddenError
from headwater.catalogs import RequestKey, RequestKeyReusedError
from headwater.errors import HeadwaterError, NotFoundError, RefusedError
from headwater.iceberg.changes import RequirementFailedError
from headwater.iceberg_catalog import AlreadyExistsError, NamespaceNotEmptyError
from headwater.realms import RealmClosedError
from headwater_server.call import Answer, Call, ServedStore
from headwater_server.warehouse_address import WarehouseAddress

HEADER = "idempotency-key"
_FINAL = (RefusedError, NotFoundError, RequirementFailedError, AlreadyExistsError, NamespaceNotEmptyError)
"""What the same request would be told again."""
_REFUSALS_LIMIT = 10_000
_TEXT_LENGTH = 36


def answer_once(call: Call[Any, Any], change: Callable[[RequestKey | None], Answer], *, status: int = 200) -> Answer:
    """Answer a call that changes something, by its key if it has one.

    change        makes the change and notes the key with it, or finds it noted, and answers
    status        of its answer
    raises        RefusedError for a malformed key; RequestKeyReusedError for the key of another request; what ``change`` raises
    """
    request = read_key(call, status=status)
    if request is None:
        return change(None)
    refusals = call.served.part(RefusalMemory)
    refusals.check_again(request)
    try:
        return change(request)
    except (RequestKeyReusedError, RealmClosedError, ForbiddenError):
        raise  # none says anything of the request itself
    except _FINAL as fault:
        refusals.remember(request, fault)
        raise


def read_key(call: Call[Any, Any], *, status: int = 200) -> RequestKey | None:
    """The key of a call; None without one. Raises RefusedError for one that is no UUID of version 7."""
    text = call.headers.get(HEADER)
    if text is None:
        return None
    try:
        unique = UUID(text) if len(text) == _TEXT_LENGTH else None
    except ValueError:
        unique = None
    if unique is None:
        raise RefusedError(f"Idempotency-Key must be a UUID of version 7 with its hyphens, in {_TEXT_LENGTH} characters")
    realm = WarehouseAddress.from_prefix(call.path["prefix"]).realm
    # a repeat is its author's: what one caller did is neither told to another nor taken for its own
    scope = (realm,) if call.caller is None else (realm, call.caller.name)
    return RequestKey(unique, _digest(*map(str.encode, scope)), _request_digest(call), status)


def _request_digest(call: Call[Any, Any]) -> bytes:
    """What is asked for, in 32 bytes: method, path, query and body."""
    query = b"" if call.query is None else msgspec.json.encode(call.query)
    return _digest(call.method.encode(), call.raw_path.encode(), query, call.raw_body)


def _digest(*parts: bytes) -> bytes:
    state = hashlib.blake2b(digest_size=32)
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)  # lengths, so that no two lists of parts run together
    return state.digest()


@dataclass(frozen=True, slots=True)
class _Refusal:
    """``until``: by the store's monotonic clock."""

    digest: bytes
    fault: HeadwaterError
    until: float


class RefusalMemory:
    """The final refusals of this process by key, for as long as a client may repeat a request. Thread-safe."""

    def __init__(self, served: ServedStore, *, limit: int = _REFUSALS_LIMIT) -> None:
        self._clock = served.store.clock
        self._lifetime_seconds = served.store.settings.requests_kept_seconds
        self._limit = limit
        self._lock = threading.Lock()
        self._refusals: OrderedDict[tuple[UUID, bytes], _Refusal] = OrderedDict()

    def check_again(self, request: RequestKey) -> None:
        """Raise what was raised for a request; RequestKeyReusedError if its key was another request's."""
        with self._lock:
            refusal = self._refusals.get((request.uuid, request.scope))
        if refusal is None or refusal.until <= self._clock.monotonic():
            return
        if refusal.digest != request.digest:
            raise RequestKeyReusedError(
                f"key {request.uuid} was used for another request before: repeat that one as it was, or take a new key"
            )
        raise copy.copy(refusal.fault)  # each thread raises its own, and none grows the traceback of another

    def remember(self, request: RequestKey, fault: HeadwaterError) -> None:
        """Remember what a request was refused by; a copy, because the traceback would keep the request's body."""
        refusal = _Refusal(request.digest, copy.copy(fault), self._clock.monotonic() + self._lifetime_seconds)
        with self._lock:
            self._refusals[(request.uuid, request.scope)] = refusal
            self._refusals.move_to_end((request.uuid, request.scope))
            while len(self._refusals) > self._limit:
                self._refusals.popitem(last=False)
