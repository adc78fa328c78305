"""Recorded requests, sent again in their order to another API server, with what differs from run to run put in."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from kubetest.recordings import Line

__all__ = ["Answer", "Replay", "headers_of", "told"]

STALE = "1"
_UUID = re.compile(r"00000000-0000-4000-8000-\d{12}")
_TAGS = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
_POINTERS = {"/metadata/resourceVersion": "resourceVersion", "/metadata/uid": "uid"}
Headers = dict[str, str]


@dataclass
class Answer:
    """``body`` is None for a watch, whose ``events`` come by and by."""

    status: int
    media: str | None
    warnings: list[str]
    body: Any = None
    events: list[Any] = field(default_factory=list)


@dataclass
class Replay:
    """One story on one server. It learns which uid, version and token there stands for which one here.

    headers     sent with each request, such as who one is
    uids, versions, tokens    what was recorded, to what is so here
    tags                      by path and media type, with what a client asks whether anything is new
    """

    url: str
    headers: Headers = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    tags: dict[tuple[str, str], Headers] = field(default_factory=dict)
    watches: list[tuple[Line, _Watch]] = field(default_factory=list)

    def play(self, line: Line) -> Answer:
        """Send it and learn from the answer. A watch goes on in the background until ``end``."""
        headers = headers_of(line)
        path = self._here(line.request["path"])
        body = self._sent(line)
        if line.is_watch:
            return self._watch(line, path, headers)
        tag_key = (line.resource_path, line.request["accept"])
        headers |= self.tags.get(tag_key, {}) if line.response["status"] == 304 else {}
        answer, received = self.send(line.request["method"], path, body, headers)
        if tags := {name: received[said] for name, said in _TAGS.items() if received.get(said)}:
            self.tags[tag_key] = tags
        self._learn(line.response.get("body"), answer.body)
        return answer

    def end(self) -> dict[str, Answer]:
        """What the watches brought, by line; the rest of them is not waited for."""
        return {line.id: watch.end() for line, watch in self.watches}

    def send(
        self, method: str, path: str, body: Any = None, headers: Headers | None = None
    ) -> tuple[Answer, http.client.HTTPMessage]:
        connection = self._connect()
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, raw, self.headers | (headers or {}))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        media = answer.headers["Content-Type"]
        return Answer(answer.status, media, answer.headers.get_all("Warning") or [], _value(text)), answer.headers

    def _watch(self, line: Line, path: str, headers: Headers) -> Answer:
        connection = self._connect()
        connection.request("GET", path, None, self.headers | headers)
        watch = _Watch(connection, len(told(line.response["events"])))
        self.watches.append((line, watch))
        return watch.answer

    def _connect(self) -> http.client.HTTPConnection:
        place = urllib.parse.urlsplit(self.url).netloc
        if self.tls is not None:
            return http.client.HTTPSConnection(place, timeout=30, context=self.tls)
        return http.client.HTTPConnection(place, timeout=30)

    def _here(self, path: str) -> str:
        """The path with the token and the version of here."""
        start, mark, query = path.partition("?")
        pairs = [pair.partition("=") for pair in query.split("&")]
        known = {"continue": self.tokens, "resourceVersion": self.versions}
        return start + mark + "&".join(name + sign + known.get(name, {}).get(value, value) for name, sign, value in pairs)

    def _sent(self, line: Line) -> Any:
        if isinstance(line.body, bytes) or line.body is None:
            return line.body
        if isinstance(line.body, list):
            return [self._operation(one, line) for one in line.body]
        return self._replaced(line.body, line)

    def _operation(self, operation: Any, line: Line) -> Any:
        name = _POINTERS.get(operation.get("path", "")) if isinstance(operation, dict) else None
        if name is None or operation.get("op") == "remove":
            return self._replaced(operation, line)
        return operation | {"value": self._replaced({name: operation["value"]}, line)[name]}

    def _replaced(self, value: Any, line: Line) -> Any:
        if isinstance(value, list):
            return [self._replaced(member, line) for member in value]
        if isinstance(value, dict):
            return {
                name: self._version(member, line)
                if name == "resourceVersion" and isinstance(member, str)
                else self._replaced(member, line)
                for name, member in value.items()
            }
        return _UUID.sub(lambda found: self.uids.get(found[0], found[0]), value) if isinstance(value, str) else value

    def _version(self, recorded: str, line: Line) -> str:
        """The version of here. One whose answer was not recorded is that of now, or a stale one where a conflict is wanted."""
        if recorded in ("", "0", "1") or recorded in self.versions:
            return self.versions.get(recorded, recorded)
        if line.response["status"] == 409:
            return STALE
        answer, _ = self.send("GET", line.resource_path.removesuffix("/status"), None, {"Accept": "application/json"})
        found = answer.body.get("metadata", {}).get("resourceVersion") if isinstance(answer.body, dict) else None
        return str(found or recorded)

    def _learn(self, there: Any, here: Any) -> None:
        known = {"uid": self.uids, "resourceVersion": self.versions, "continue": self.tokens}
        if isinstance(there, dict) and isinstance(here, dict):
            for name in there.keys() & here.keys():
                if name in known and isinstance(there[name], str) and isinstance(here[name], str):
                    known[name][there[name]] = here[name]
                else:
                    self._learn(there[name], here[name])
        elif isinstance(there, list) and isinstance(here, list):
            for one, other in zip(there, here, strict=False):
                self._learn(one, other)


def headers_of(line: Line) -> Headers:
    media = line.request.get("content-type")
    headers = {"Accept": line.request["accept"], "User-Agent": line.request["user-agent"]}
    return headers | ({"Content-Type": media} if media else {})


class _Watch:
    """A watch that is read in the background, until as much came as was recorded."""

    def __init__(self, connection: http.client.HTTPConnection, wanted: int) -> None:
        self._connection = connection
        self._wanted = wanted
        self._response = connection.getresponse()
        warnings = self._response.headers.get_all("Warning") or []
        self.answer = Answer(self._response.status, self._response.headers["Content-Type"], warnings)
        self._is_complete = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def end(self, seconds: float = 5.0) -> Answer:
        self._is_complete.wait(seconds)
        if self._connection.sock is not None:
            with contextlib.suppress(OSError):  # the server was first
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()
        return self.answer

    def _read(self) -> None:
        try:
            for event in map(json.loads, self._response):
                self.answer.events.append(event)
                if len(told(self.answer.events)) >= self._wanted:
                    self._is_complete.set()
        except (http.client.HTTPException, OSError, ValueError):  # hung up in the middle, by us
            return
        finally:
            self._is_complete.set()


def told(events: list[Any]) -> list[Any]:
    """Events that say something: bookmarks come by the clock, but for the one that ends the initial list."""
    return [event for event in events if event["type"] != "BOOKMARK" or event["object"]["metadata"].get("annotations")]


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
