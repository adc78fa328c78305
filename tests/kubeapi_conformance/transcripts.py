"""What a real API server answered, asked again of ours: read, sent with what differs from run to run put in, and compared."""

from __future__ import annotations

import http.client
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["DATA", "Played", "Player", "Step", "differences", "read_steps", "served_here"]

DATA = Path(__file__).parent / "data"
CHANGING = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "continue",
    "hash",
}
"""Fields whose value is another one in each run."""

OF_THE_BUILD = {"gitCommit", "gitTreeState", "serverAddress"}

_AGE = re.compile(r"^(\d+[smhdy]){1,2}$")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOO_OLD = re.compile(r"(too old resource version: \d+) \(\d+\)")


@dataclass(frozen=True)
class Step:
    """One recorded request and its answer."""

    file: str
    number: int
    name: str
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.file}:{self.number:02} {self.name}"

    @property
    def is_watch(self) -> bool:
        return "events" in self.response


def read_steps(file: str) -> list[Step]:
    lines = (DATA / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Step(file, number, row["step"], row["request"], row["response"]) for number, row in enumerate(rows, 1)]


@dataclass
class Played:
    """What ours answered; for a watch, the events that came."""

    status: int
    media: str
    body: Any = None
    events: list[Any] = field(default_factory=list)


@dataclass
class Player:
    """A client that repeats recorded requests. It learns which version, uid and name here stands for which one there."""

    url: str
    known: dict[str, str] = field(default_factory=dict)

    def play(self, step: Step) -> Played:
        played = self.ask(
            step.request["method"],
            self._here(step.request["path"]),
            self._sent(step.request),
            accept=step.request["accept"],
            media=step.request.get("content-type"),
        )
        self._learn(step.response.get("body"), played.body)
        return played

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "application/json",
        media: str | None = None,
        agent: str = "Python",
    ) -> Played:
        connection = self._send(method, path, body, accept, media, agent)
        answer = connection.getresponse()
        raw = answer.read()
        connection.close()
        return Played(answer.status, answer.headers["Content-Type"], _value(raw))

    def watch(self, step: Step, *, most: int | None = None) -> WatchInPlay:
        """Begin to watch. It ends by itself, or after ``most`` events."""
        return WatchInPlay(
            self._send("GET", self._here(step.request["path"]), None, step.request["accept"], None, "Python"), most
        )

    def learn_from(self, step: Step, played: Played) -> None:
        for recorded, event in zip(step.response["events"], played.events, strict=False):
            self._learn(recorded, event)

    def _send(
        self, method: str, path: str, body: Any, accept: str, media: str | None, agent: str
    ) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=30)
        headers = {"Accept": accept, "User-Agent": f"{agent}/3"} | ({"Content-Type": media} if media else {})
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, raw, headers)
        return connection

    def _sent(self, request: dict[str, Any]) -> Any:
        body = request.get("body")
        if isinstance(body, str):
            return body.encode("latin-1")
        return _replaced(body, self.known)

    def _here(self, path: str) -> str:
        start, mark, query = path.partition("?")
        pairs = [pair.partition("=") for pair in query.split("&")]
        names = [self.known.get(part, part) for part in start.split("/")]
        return "/".join(names) + mark + "&".join(f"{name}{sign}{self.known.get(value, value)}" for name, sign, value in pairs)

    def _learn(self, there: Any, here: Any) -> None:
        if isinstance(there, dict) and isinstance(here, dict):
            for name in there.keys() & here.keys():
                if isinstance(there[name], str) and isinstance(here[name], str):
                    if name in ("uid", "resourceVersion", "continue") or (name == "name" and "generateName" in there):
                        self.known[there[name]] = here[name]
                else:
                    self._learn(there[name], here[name])
        elif isinstance(there, list) and isinstance(here, list):
            for one, other in zip(there, here, strict=False):
                self._learn(one, other)


class WatchInPlay:
    """A watch that is read in the background."""

    def __init__(self, connection: http.client.HTTPConnection, most: int | None) -> None:
        self._connection = connection
        self._most = most
        answer = connection.getresponse()
        self._answer = answer
        self._played = Played(answer.status, answer.headers["Content-Type"])
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def end(self) -> Played:
        self._thread.join()
        return self._played

    def _read(self) -> None:
        for line in self._answer:
            self._played.events.append(json.loads(line))
            if self._most is not None and len(self._played.events) >= self._most:
                break
        self._connection.close()


def differences(there: Any, here: Any, path: str = "") -> Iterator[str]:
    """Where our answer differs from the recorded one, beyond what differs in every run."""
    name = path.rpartition(".")[2]
    if isinstance(there, dict) and isinstance(here, dict):
        yield from (f"{path}.{key} is missing" for key in sorted(there.keys() - here.keys()))
        yield from (f"{path}.{key} should not be there" for key in sorted(here.keys() - there.keys()))
        for key in sorted(there.keys() & here.keys()):
            is_generated = key == "name" and "generateName" in there
            if not is_generated:
                yield from differences(there[key], here[key], f"{path}.{key}")
    elif isinstance(there, list) and isinstance(here, list):
        if name in _UNORDERED:
            there, here = (sorted(listed, key=_UNORDERED[name]) for listed in (there, here))
        if len(there) != len(here):
            yield f"{path}: {len(there)} members there, {len(here)} here"
        for number, (one, other) in enumerate(zip(there, here, strict=False)):
            yield from differences(one, other, f"{path}.{number}")
    elif name in CHANGING:
        if type(there) is not type(here) or bool(there) != bool(here):
            yield f"{path}: {there!r} there, {here!r} here"
    elif name not in OF_THE_BUILD and _plain(there) != _plain(here):
        yield f"{path}: {there!r} there, {here!r} here"


def served_here(there: Any, here: Any) -> Any:
    """The recorded answer to the question of what is served, cut down to what is served here: not all kinds are."""
    if not isinstance(there, dict) or not isinstance(here, dict):
        return there
    if "serverRelativeURL" in str(there.get("paths", "")):
        return {"paths": {name: {"serverRelativeURL": url} for name, url in _urls(there, here)}}
    return (
        _cut_down(there, here) if there.get("kind") in ("APIGroupList", "APIResourceList", "APIGroupDiscoveryList") else there
    )


def _cut_down(there: Any, here: Any) -> Any:
    if isinstance(there, dict) and isinstance(here, dict):
        known = {name: value for name, value in there.items() if name != "subresources" or name in here}
        return {name: _cut_down(value, here.get(name)) for name, value in known.items()}
    if isinstance(there, list) and isinstance(here, list):
        known = {_served_name(one): one for one in here}
        return [_cut_down(one, known[_served_name(one)]) for one in there if _served_name(one) in known]
    return there


def _served_name(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    names = (one.get(name) for name in ("name", "resource", "subresource", "version"))
    return one.get("metadata", {}).get("name") or next(filter(None, names), "core")


def _urls(there: dict[str, Any], here: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The address of a document ends in a digest of it."""
    for name in here["paths"]:
        if name in there["paths"]:
            recorded = there["paths"][name]["serverRelativeURL"].partition("hash=")
            ours = here["paths"][name]["serverRelativeURL"].partition("hash=")
            yield name, recorded[0] + recorded[1] + (ours[2] if len(ours[2]) == len(recorded[2]) else "another length")


def _manager(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["manager"], entry["operation"], entry.get("subresource", "")


_UNORDERED = {
    "managedFields": _manager,  # by time, and times differ
    "causes": lambda cause: (cause.get("field", ""), cause["message"]),  # a real server finds them in the order of a Go map
}


def _plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if _AGE.match(value):
        return "<age>"
    if " is invalid: [" in value:
        return sorted(re.split(r"[\[\], ]+", value))
    value = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", value)
    value = re.sub(r"\bgen-\w{5}\b", "gen-<generated>", value)
    return _TOO_OLD.sub(r"\1 (<version>)", _UUID.sub("<uid>", value))


def _replaced(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(member, known) for name, member in value.items()}
    if isinstance(value, list):
        return [_replaced(member, known) for member in value]
    return known.get(value, value) if isinstance(value, str) else value


def _value(raw: bytes) -> Any:
    text = raw.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text
