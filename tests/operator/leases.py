"""A server that keeps one Lease as the Kubernetes API does: swaps by resourceVersion, and a history of all that was written."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from answer_server import Asked, answering, status

__all__ = ["LeaseServer", "lease_server"]


@dataclass
class LeaseServer:
    """
    history       who held it, one after the other; "" for nobody
    trouble       answers to give, one by one, before anything is done
    swallow       so many writes are done, and not answered
    """

    url: str = ""
    lease: dict[str, Any] | None = None
    history: list[str] = field(default_factory=list)
    trouble: list[tuple[Any, ...]] = field(default_factory=list)
    is_away: bool = False
    swallow: int = 0
    version: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def holder(self) -> str:
        return str((self.lease or {}).get("spec", {}).get("holderIdentity") or "")

    def write(self, **spec: Any) -> None:
        """Write it past everybody, as a person does who edits it."""
        with self.lock:
            body = copy.deepcopy(self.lease) or {"metadata": {"name": "l", "namespace": "n"}, "spec": {}}
            body["spec"] |= spec
            self._keep(body)

    def delete(self) -> None:
        with self.lock:
            self.lease = None

    def answer(self, asked: Asked) -> tuple[Any, ...] | None:
        with self.lock:
            if self.is_away:
                return None
            if self.trouble:
                return self.trouble.pop(0)
            answer = self._answered(asked)
            if asked.method != "GET" and self.swallow and answer[0] < 300:
                self.swallow -= 1
                return None
            return answer

    def _answered(self, asked: Asked) -> tuple[Any, ...]:
        if asked.method == "POST":
            return status(409, "AlreadyExists", "exists") if self.lease else (201, self._keep(asked.body))
        if self.lease is None:
            return status(404, "NotFound", "not found")
        if asked.method == "GET":
            return 200, self.lease
        if asked.body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified")
        return 200, self._keep(asked.body)

    def _keep(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if not self.history or self.history[-1] != self.holder:
            self.history.append(self.holder)
        return self.lease


@contextmanager
def lease_server() -> Iterator[LeaseServer]:
    with answering() as server:
        leases = LeaseServer(server.url)
        server.answer = leases.answer
        yield leases
