"""Writes the status of a resource, where it is not written already, without a quarrel with others who write there."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.clock import Clock
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.resource.resource_status import is_written
from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache, ResourceChange, ResourceKey

LONGEST_PAUSE_SECONDS = 300.0
FORGIVEN_SECONDS = 3600.0

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True)
class _Written:
    """What was written last, when, and how often in a row somebody else undid it."""

    digest: bytes
    at: float
    undone: int = 0


class StatusWriter:
    """Applies statuses as one field manager.

    A status that was written, and is not there any more, was changed by somebody else. It is put right, at once the first time, and then
    with growing pauses: two writers who both insist would keep the API server busy for ever.
    """

    def __init__(self, api: KubeApi, cache: ResourceCache, clock: Clock) -> None:
        self._api = api
        self._cache = cache
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[ResourceKey, _Written] = {}

    def write_status(self, resource: CachedResource, status: Mapping[str, Any]) -> ResourceChange:
        """Write it unless it is there. ``pause`` is to be asked before.

        returns       what else had changed in the meantime
        raises        NotFoundError when the resource is gone
        """
        if is_written(resource, status):
            return ResourceChange.NOTHING
        self._cache.expect(resource.key, status)
        path = resource_path(resource.kind, resource.namespace, resource.name, "status")
        metadata = {"name": resource.name, "namespace": resource.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "status": status}
        answer = self._api.patch_resource(path, body, kind="apply")
        self._note(resource.key, _digest(status))
        return self._cache.learn(answer)

    def pause(self, resource: CachedResource, status: Mapping[str, Any]) -> float:
        """Seconds to wait before this status may be written; 0 when it may be now, or is there already."""
        with self._lock:
            written = self._written.get(resource.key)
        if written is None or not written.undone or written.digest != _digest(status) or is_written(resource, status):
            return 0.0
        wait = min(2.0 ** (written.undone - 1), LONGEST_PAUSE_SECONDS)
        return max(written.at + wait - self._clock.monotonic(), 0.0)

    def forget_resource(self, key: ResourceKey) -> None:
        with self._lock:
            self._written.pop(key, None)

    def _note(self, key: ResourceKey, digest: bytes) -> None:
        now = self._clock.monotonic()
        with self._lock:
            former = self._written.get(key)
            is_repeated = former is not None and former.digest == digest and now - former.at < FORGIVEN_SECONDS
            self._written[key] = _Written(digest, now, former.undone + 1 if former is not None and is_repeated else 0)


def _digest(status: Mapping[str, Any]) -> bytes:
    return hashlib.blake2b(_encode(status), digest_size=16).digest()
