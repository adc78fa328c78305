"""What tests may ask of the server beside the API: who asked for what, and that it fails in a given way."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kubeapi.failures import Failure

__all__ = ["Audit", "Fault", "Faults"]

ACTIONS = ("429", "500", "503", "504", "410", "409", "403", "drop", "delay")


@dataclass(slots=True)
class Fault:
    """An error to come.

    verb, resource, subresource, namespace, name, user_agent    which requests it befalls; None for any. Of a user agent the start
    times       how often; -1 for ever
    skip        so many matching requests pass before
    action      a status code, or ``drop`` (the connection is closed without an answer), or ``delay``; with ``-after``, the
                request takes effect first. ``drop-before`` and ``drop`` are the same
    """

    action: str
    verb: str | None = None
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None
    user_agent: str | None = None
    times: int = 1
    skip: int = 0
    seconds: float = 0.0
    retry_after: int = 1
    hits: int = 0

    def __post_init__(self) -> None:
        base = self.action.removesuffix("-before").removesuffix("-after")
        if base not in ACTIONS:
            raise ValueError(f"no such action: {self.action}; there are {', '.join(ACTIONS)}")

    @property
    def is_after(self) -> bool:
        return self.action.endswith("-after")

    @property
    def deed(self) -> str:
        return self.action.removesuffix("-before").removesuffix("-after")

    def befalls(self, request: Mapping[str, Any]) -> bool:
        wanted = {name: getattr(self, name) for name in ("verb", "resource", "subresource", "namespace", "name")}
        if any(value is not None and request.get(name, "") != value for name, value in wanted.items()):
            return False
        return self.user_agent is None or str(request.get("user_agent", "")).startswith(self.user_agent)

    def failure(self) -> Failure:
        """What is answered instead, where a status code is wanted."""
        code = int(self.deed)
        if code == 429:
            return Failure.too_many(self.retry_after)
        reasons = {
            500: "InternalError",
            503: "ServiceUnavailable",
            504: "Timeout",
            410: "Expired",
            409: "Conflict",
            403: "Forbidden",
        }
        messages = {
            500: "Internal error occurred: injected by a test",
            410: "The provided resource version is too old: injected by a test",
            409: "Operation cannot be fulfilled: the object has been modified: injected by a test",
            403: "forbidden: injected by a test",
        }
        message = messages.get(code, "the server is currently unable to handle the request: injected by a test")
        return Failure(code, reasons[code], message, details={})


class Faults:
    """Errors to come, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, wanted: Any) -> None:
        """Takes one fault or a list of them, as plain values. raises ValueError or TypeError for what is none"""
        for one in wanted if isinstance(wanted, list) else [wanted]:
            self._faults.append(Fault(**{**one, "action": str(one.get("action", ""))}))

    def clear(self) -> None:
        self._faults.clear()

    def take(self, request: Mapping[str, Any]) -> Fault | None:
        """The first fault that befalls this request; one time less is left of it."""
        for fault in self._faults:
            if fault.times == 0 or not fault.befalls(request):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            fault.times -= 1 if fault.times > 0 else 0
            fault.hits += 1
            return fault
        return None

    def described(self) -> list[dict[str, Any]]:
        return [asdict(fault) for fault in self._faults]


@dataclass(slots=True)
class Audit:
    """The latest requests, counts of all, and an example of each shape of request of each program; shapes are never forgotten."""

    most: int = 20_000
    total: int = 0
    requests: deque[dict[str, Any]] = field(default_factory=deque)
    shapes: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    def add(self, request: dict[str, Any]) -> None:
        self.total += 1
        request["number"] = self.total
        self.requests.append(request)
        if len(self.requests) > self.most:
            self.requests.popleft()
        what = "/".join(filter(None, (request.get("resource", ""), request.get("subresource", "")))) or request["path"]
        self.counts[f"{request['verb']} {what}"] += 1
        if request.get("wrote"):
            self.writes[f"{request['verb']} {what}"] += 1

    def notice_shape(self, shape: str, user_agent: str, path: str) -> None:
        self.shapes.setdefault((shape, user_agent), path)

    def described_shapes(self) -> list[dict[str, str]]:
        return [{"shape": shape, "user_agent": agent, "path": path} for (shape, agent), path in self.shapes.items()]

    def clear(self) -> None:
        self.requests.clear()
        self.counts.clear()
        self.writes.clear()

    def select(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """``since`` a number; ``user_agent`` and ``path`` by their start, all else as it is."""
        wanted = {name: value for name, value in query.items() if name not in ("since", "user_agent", "path")}
        since = int(query.get("since", 0))
        return [
            one
            for one in self.requests
            if one["number"] > since
            and all(str(one.get(name, "")) == value for name, value in wanted.items())
            and all(str(one.get(name, "")).startswith(query.get(name, "")) for name in ("user_agent", "path"))
        ]
