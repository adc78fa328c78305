"""What passes between the server and its handlers: a call, which is one request decoded and checked, and its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from headwater.store import Store
from headwater_server.caller import Caller

PartT = TypeVar("PartT")
QueryT = TypeVar("QueryT")
BodyT = TypeVar("BodyT")


class ServedStore:
    """What all calls of a process share: the store, which realms of it are served, and what handlers keep from call to call.

    realms        empty: all realms of the store
    """

    def __init__(self, store: Store, *, realms: frozenset[str] = frozenset()) -> None:
        self.store = store
        self.realms = realms
        self._parts: dict[object, Any] = {}
        self._lock = threading.RLock()  # a part may be made of others

    def serves(self, realm: str) -> bool:
        return not self.realms or realm in self.realms

    def part(self, kind: Callable[[ServedStore], PartT]) -> PartT:
        """The object of a kind that all calls share, such as a cache of open catalogs; the first call makes it, under a lock."""
        with self._lock:
            if kind not in self._parts:
                self._parts[kind] = kind(self)
            part: PartT = self._parts[kind]
        return part


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[QueryT, BodyT]):
    """One request. Everything in it was decoded once, and is valid as its route declares it.

    path          the parameters of the template, each a whole segment: ``a%2Fb`` is ``a/b``, ``%252F`` is ``%2F``, none is empty
    query         a value of the route's query type; None where the route has none
    body          a value of the route's body type; None where the route has none
    raw_body      the bytes of the body, without transfer and content encoding
    raw_path      the path as the client sent it, still encoded
    headers       by name in lower case; several of one name are joined with ", "
    request_id    what the access log and the answer's header ``X-Request-ID`` name this request
    client        the address that the request came from; a named proxy's word for it counts
    caller        who has proved to call; None where nobody has to, and everything is allowed
    """

    served: ServedStore
    method: str
    raw_path: str
    path: Mapping[str, str]
    query: QueryT
    body: BodyT
    raw_body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    request_id: str = ""
    client: str = ""
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers.

    status        what certainly did not succeed is no answer: raise a HeadwaterError
    body          None: no body; bytes: sent as they are; anything else: encoded by msgspec, where a ``msgspec.Raw`` in it is handed on
                  without being decoded or encoded again
    headers       such as ``ETag``; lengths, types of content and request ids are added by the server
    media_type    of a body
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


Handler = Callable[[Call[Any, Any]], Answer]
"""A synchronous function; it runs in the server's pool of threads, many at a time."""
