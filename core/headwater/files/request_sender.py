"""Requests that are applied later: what a queue of them promises to whoever sends, and the wait for their outcomes.

A queue is not FIFO, delivers at least once, and serves file tables in turn. The outcome that is written in a request's own
transaction, under the request's id, makes repetitions harmless, so a sender that is in doubt sends again.
"""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from headwater.clock import Clock, SystemClock
from headwater.errors import UnavailableError
from headwater.files.file_errors import RequestIdReusedError
from headwater.files.file_references import FileRequest, RequestOutcome, RequestState
from headwater.files.reference_store import FileReferenceStore, FileScope
from headwater.settings import Settings

POLL_SECONDS, POLL_LIMIT_SECONDS = 0.010, 1.0
"""First and longest wait between two looks for outcomes; doubles."""
RESEND_SECONDS = 30.0
"""A request without an outcome is sent again after this time, doubling: a broker may lose messages."""

R = TypeVar("R", bound=FileRequest)


class RequestSender(Protocol):
    """The sending end of the queue of a store."""

    def send_requests(self, scope: FileScope, requests: Sequence[FileRequest]) -> list[FileRequest]:
        """Hand requests for one file table to the queue; they are applied later, in any order.

        returns       the requests as they were sent, each with an id
        raises        RefusedError for a request that is too large for the queue, before any is sent; UnavailableError when the broker
                      does not answer: some may have been sent, and all may be sent again
        """

    def find_set_aside(self, scope: FileScope, requests: Sequence[str]) -> dict[str, str]:
        """Which of these requests, by id, could not be applied and wait for a person, each with the reason."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SentOutcomes:
    """What is known of requests that were sent.

    set_aside     reasons of requests that wait for a person, by id
    open          ids of requests of which nothing is known: they may be applied later
    """

    outcomes: Mapping[str, RequestOutcome] = field(default_factory=dict)
    set_aside: Mapping[str, str] = field(default_factory=dict)
    open: tuple[str, ...] = ()


def kind_of(request: FileRequest) -> str:
    """The kind of a request as its outcome and the setting ``files_asynchronous`` name it: add, split, assign, commit or forget."""
    return str(type(request).__struct_config__.tag)


def request_digest(request: FileRequest) -> str:
    """32 hex digits of a request: equal for equal requests, in every process."""
    return hashlib.blake2b(msgspec.msgpack.encode(request), digest_size=16).hexdigest()


def identify_request(request: R) -> R:
    """The request with an id: its own, or a new one where it has none. Without an id a repetition could not be told the outcome."""
    if request.request:
        return request
    return msgspec.structs.replace(request, request=uuid.uuid4().hex)


def told_outcome(request: FileRequest, outcome: RequestOutcome) -> RequestOutcome:
    """What the outcome under a request's id says to its sender: where it is of another request with that id, this one was refused.

    Two executions of a compaction job send commits with one id and different outputs: only the first is applied.
    """
    if outcome.digest == request_digest(request):
        return outcome
    fault = RequestIdReusedError(request=request.request)
    return msgspec.structs.replace(
        outcome,
        kind=kind_of(request),
        state=RequestState.REFUSED,
        digest=request_digest(request),
        reason=str(fault),
        error=type(fault).__name__,
    )


def is_asynchronous(settings: Settings, kind: str) -> bool:
    """Whether requests of a kind are sent to the queue by default, as the setting ``files_asynchronous`` says.

    ``auto`` sends commits where the broker is a server. Commits come in bursts of hundreds and nobody waits for a single one; who adds,
    splits or assigns works on with the result at once. The embedded broker has readers only while somebody runs a worker beside it.
    """
    names = settings.asynchronous_requests
    return kind == "commit" and settings.broker != "embedded" if names == ("auto",) else kind in names


def apply_or_send(
    references: FileReferenceStore,
    scope: FileScope,
    requests: Sequence[FileRequest],
    *,
    settings: Settings,
    sender: RequestSender,
) -> SentOutcomes:
    """Send those requests whose kind the setting ``files_asynchronous`` names, and apply the others at once, in the given order.

    requests      with ids, as ``identify_request`` gives them: ``wait_for_outcomes`` asks for the open ones among them
    returns       the outcomes of those that were applied; those that were sent are open
    """
    sent = [request for request in requests if is_asynchronous(settings, kind_of(request))]
    applied = [request for request in requests if not is_asynchronous(settings, kind_of(request))]
    outcomes = references.apply_requests(applied)
    if sent:
        sender.send_requests(scope, sent)
    return SentOutcomes({outcome.request: outcome for outcome in outcomes}, open=tuple(request.request for request in sent))


def wait_for_outcomes(
    references: FileReferenceStore,
    scope: FileScope,
    requests: Sequence[FileRequest],
    *,
    sender: RequestSender,
    timeout_seconds: float,
    clock: Clock | None = None,
    chance: Callable[[], float] = random.random,
) -> SentOutcomes:
    """Wait until each request has an outcome or was set aside, at most until the time-out; what stays open is sent again meanwhile.

    requests      as ``send_requests`` returned them
    """
    clock = clock or SystemClock()
    pending = {request.request: request for request in requests}
    outcomes: dict[str, RequestOutcome] = {}
    set_aside: dict[str, str] = {}
    poll, resend = POLL_SECONDS, RESEND_SECONDS
    end = clock.monotonic() + timeout_seconds
    again = clock.monotonic() + resend
    while True:
        try:
            known = references.find_outcomes(list(pending))
            outcomes |= {name: told_outcome(pending[name], outcome) for name, outcome in known.items()}
            pending = {name: request for name, request in pending.items() if name not in outcomes}
            if pending and poll == POLL_LIMIT_SECONDS:
                set_aside |= sender.find_set_aside(scope, list(pending))
                pending = {name: request for name, request in pending.items() if name not in set_aside}
            if pending and clock.monotonic() >= again:
                sender.send_requests(scope, list(pending.values()))
                resend *= 2
                again = clock.monotonic() + resend
        except UnavailableError:
            pass  # the database or the broker is away: what is open stays open, and is told as such at the end
        left = end - clock.monotonic()
        if not pending or left <= 0:
            return SentOutcomes(outcomes, set_aside, tuple(pending))
        clock.sleep(min(left, poll * (0.5 + chance() / 2)))
        poll = min(poll * 2, POLL_LIMIT_SECONDS)
