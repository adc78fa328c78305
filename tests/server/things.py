"""A small protocol for the server's tests: things that are read and changed, errors on demand, and work that waits for a word."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.errors import (
    CommitTimeoutError,
    ConflictError,
    CorruptionError,
    ExpiredError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownCommitError,
)
from headwater_server.call import Answer, Call
from headwater_server.route_table import ErrorMeaning, Route, RouteTable

RAW = b'{"kept":  [1.0, 2]}'
NOTHING = msgspec.Raw(b"null")
WAIT_SECONDS = 20.0


class NoSuchThingError(NotFoundError):
    """The protocol's own kind of a missing thing."""


ERRORS: Mapping[str, Callable[[], Exception]] = {
    "refused": lambda: RefusedError("the thing is refused"),
    "missing": lambda: NotFoundError("the thing is not there"),
    "expired": lambda: ExpiredError("the thing was collected"),
    "no-such-thing": lambda: NoSuchThingError("no such thing"),
    "conflict": lambda: ConflictError("the thing has changed"),
    "swap": lambda: SwapConflictError("the row has changed"),
    "unavailable": lambda: UnavailableError("postgresql://me:secret@db/lake does not answer"),
    "timeout": lambda: CommitTimeoutError("others were faster"),
    "unknown": lambda: UnknownCommitError("it may have happened"),
    "corrupt": lambda: CorruptionError("the row is damaged"),
    "bug": lambda: KeyError("password=hunter2"),
    "recursion": lambda: RecursionError("too deep"),
}


class ThingQuery(msgspec.Struct, rename="camel"):
    page_token: str | None = None
    page_size: int | None = None
    is_whole: bool = False


class ThingRequest(msgspec.Struct):
    name: str
    parts: list[dict[str, Any]] = []
    count: int = 0


class ThingAnswer(msgspec.Struct):
    thing: str
    document: msgspec.Raw
    query: dict[str, Any] = {}


@dataclass
class Things:
    """The handlers, and what they did.

    may_end       set: work that waits goes on
    """

    may_end: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    made: list[str] = field(default_factory=list)

    def table(self) -> RouteTable:
        one = "/v1/things/{thing}"
        return RouteTable(
            "/api",
            [
                _route("GET", "/v1/bytes/{count}", self.read_bytes, "readBytes", answers={200: bytes}),
                _route("GET", "/v1/things", self.read_all, "listThings", answers={200: ThingAnswer}),
                _route("GET", one, self.read, "readThing", query=ThingQuery, answers={200: ThingAnswer, 304: None}),
                _route("HEAD", one + "/mark", self.check, "checkThing", answers={204: None}),
                _route(
                    "POST", "/v1/things", self.make, "makeThing", writes=True, body=ThingRequest, answers={200: ThingAnswer}
                ),
                _route("POST", one + "/raw", self.take, "takeThing", body=bytes, answers={200: bytes}),
                _route("POST", one + "/errors/{error}", self.fail, "failThing", writes=True),
                _route("POST", one + "/wait", self.wait, "changeSlowly", writes=True, answers={204: None}),
                _route("GET", one + "/wait", self.wait, "readSlowly", answers={204: None}),
            ],
            meanings={NoSuchThingError: ErrorMeaning(404, "NoSuchThingException")},
        )

    def read_all(self, call: Call[None, None]) -> Answer:
        return Answer(body=ThingAnswer("all", msgspec.Raw(RAW)))

    def read(self, call: Call[ThingQuery, None]) -> Answer:
        if call.headers.get("if-none-match") == '"1"':
            return Answer(304, headers={"ETag": '"1"'})
        query = msgspec.to_builtins(call.query)
        return Answer(body=ThingAnswer(call.path["thing"], NOTHING, query), headers={"ETag": '"1"'})

    def read_bytes(self, call: Call[None, None]) -> Answer:
        return Answer(body=bytes(int(call.path["count"])), media_type="application/octet-stream")

    def check(self, call: Call[None, None]) -> Answer:
        return Answer(204)

    def make(self, call: Call[None, ThingRequest]) -> Answer:
        self.made.append(call.body.name)
        return Answer(body=ThingAnswer(call.body.name, NOTHING))

    def take(self, call: Call[None, bytes]) -> Answer:
        return Answer(body=call.body, media_type="application/octet-stream")

    def fail(self, call: Call[None, None]) -> Answer:
        raise ERRORS[call.path["error"]]()

    def wait(self, call: Call[None, None]) -> Answer:
        self.begun.release()
        assert self.may_end.wait(WAIT_SECONDS), "nobody said that the work may end"
        self.made.append(call.path["thing"])
        return Answer(204)


def _route(method: str, template: str, handler: Callable[..., Answer], name: str, **options: Any) -> Route:
    return Route(method=method, template=template, handler=handler, name=name, summary=f"{name}.", **options)
