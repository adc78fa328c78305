"""A client for probes: plain requests, in a namespace of its own."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Client", "Reply", "Stream", "definition", "start", "stop"]

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
GROUP = "/apis/example.dev/v1alpha1"
_NUMBERS = itertools.count(1)


class Reply:
    """An answer: its status, headers, and body as plain values where it is JSON."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.raw = answer.read()

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def metadata(self) -> Any:
        return self.body["metadata"]

    @property
    def reason(self) -> Any:
        return self.body.get("reason")


class Stream:
    """An open watch."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._answer = connection.getresponse()
        self.status = self._answer.status
        self.media = self._answer.headers["Content-Type"]

    def __iter__(self) -> Iterator[Any]:
        for line in self._answer:
            yield json.loads(line)

    def take(self, count: int) -> list[Any]:
        return list(itertools.islice(self, count))

    def types(self, count: int) -> list[str]:
        return [event["type"] for event in self.take(count)]

    def close(self) -> None:
        self._connection.close()


class Client:
    """Requests to one server. ``widgets`` is the path of the widgets in its namespace, which is gone afterwards."""

    def __init__(self, url: str, *, agent: str = "probe/1") -> None:
        self._netloc = urllib.parse.urlsplit(url).netloc
        self._agent = agent
        self._streams: list[Stream] = []
        self._connection = http.client.HTTPConnection(self._netloc, timeout=30)
        self.namespace = f"probe-{os.getpid()}-{next(_NUMBERS)}"
        self.core = f"/api/v1/namespaces/{self.namespace}"
        self.widgets = f"{GROUP}/namespaces/{self.namespace}/widgets"

    def __enter__(self) -> Client:
        assert self.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}}).status == 201
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for stream in self._streams:
            stream.close()
        self.ask("DELETE", "/_control/faults")
        self.delete(f"/api/v1/namespaces/{self.namespace}")
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self._connection.request(method, path, raw, {"User-Agent": self._agent, **(headers or {})})
        return Reply(self._connection.getresponse())

    def get(self, path: str, *, accept: str = "application/json") -> Reply:
        return self.ask("GET", path, headers={"Accept": accept})

    def post(self, path: str, body: Any) -> Reply:
        return self.ask("POST", path, body, {"Content-Type": "application/json"})

    def put(self, path: str, body: Any) -> Reply:
        return self.ask("PUT", path, body, {"Content-Type": "application/json"})

    def patch(self, path: str, body: Any, media: str = MERGE) -> Reply:
        return self.ask("PATCH", path, body, {"Content-Type": media})

    def apply(self, path: str, body: Any, manager: str = "me", *, force: bool = False) -> Reply:
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return self.patch(path + query, {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", **body}, APPLY)

    def delete(self, path: str, options: Any = None) -> Reply:
        return self.ask("DELETE", path, options, {"Content-Type": "application/json"})

    def make(self, name: str = "a", *, path: str | None = None, status: int = 201, spec: Any = None, **metadata: Any) -> Reply:
        """A widget, if ``path`` asks for nothing else."""
        body = {"metadata": {"name": name, **metadata}, "spec": {"id": "abc", **(spec or {})}}
        made = self.post(path or self.widgets, {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", **body})
        assert made.status == status, made.body
        return made

    def watch(self, path: str, accept: str = "application/json", **query: Any) -> Stream:
        connection = http.client.HTTPConnection(self._netloc, timeout=30)
        asked = urllib.parse.urlencode({"watch": "true", "timeoutSeconds": 20, **query})
        connection.request("GET", f"{path}?{asked}", headers={"Accept": accept, "User-Agent": self._agent})
        self._streams.append(Stream(connection))
        return self._streams[-1]

    def fail(self, **fault: Any) -> None:
        added = self.post("/_control/faults", [{"namespace": self.namespace, **fault}])
        assert added.status == 200, added.body


def definition(plural: str, kind: str) -> dict[str, Any]:
    """A definition in the group probes.dev, with one field: spec.size."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": kind}
    spec = {"group": "probes.dev", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.probes.dev"}, "spec": spec}


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """A server of one's own, and its URL. Stop it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kubeapi", "--port", "0", *options],
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()
