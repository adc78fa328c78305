"""The cache of resources as last seen: stored compactly, found by name, with the changes between two states.

Thousands of resources are held at once, so specs, statuses and annotations are kept as packed JSON, and unpacked into new values
at each access. Nothing here talks to Kubernetes.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import lru_cache
from typing import Any

import msgspec

from headwater.typed_values import json_decoder

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DELETED_EVENT = "DELETED"

_EMPTY = b"{}"
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = json_decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True, order=True)
class ResourceKey:
    """The key of a resource: `Realm default/acme`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ResourceChange(Flag):
    """The changes in a new state of a resource. False: nothing that deserves another pass."""

    NOTHING = 0
    NEW = auto()
    SPEC = auto()
    METADATA = auto()
    """Labels or annotations changed."""
    FINALIZERS = auto()
    DELETION = auto()
    """Its deletion was requested."""
    STATUS = auto()
    """Its status differs from the former one and from the one that this process wrote."""
    GONE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResource:
    """One resource as last seen, without what nobody reads (managed fields, kubectl's own annotation).

    resource_version  as the server gave it
    deleted           when its deletion was requested, or None
    realm             name of the Realm that a Catalog is in; empty for a Realm
    standing          type and status of each condition

    Spec, status, labels and annotations are unpacked at each access: changing such a value changes nothing here.
    """

    key: ResourceKey
    api_version: str
    uid: str
    generation: int
    resource_version: str
    created: str
    deleted: str | None
    finalizers: tuple[str, ...]
    realm: str
    standing: tuple[tuple[str, str], ...]
    packed_labels: bytes
    packed_annotations: bytes
    packed_spec: bytes
    packed_status: bytes

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> CachedResource:
        """Make the entry from a body as the API server sends it."""
        metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
        kind = sys.intern(str(body["kind"]))
        annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != LAST_APPLIED}
        return cls(
            key=ResourceKey(kind, sys.intern(str(metadata.get("namespace") or "")), str(metadata["name"])),
            api_version=sys.intern(str(body.get("apiVersion") or "")),
            uid=str(metadata.get("uid") or ""),
            generation=int(metadata.get("generation") or 0),
            resource_version=str(metadata.get("resourceVersion") or ""),
            created=str(metadata.get("creationTimestamp") or ""),
            deleted=metadata.get("deletionTimestamp") or None,
            finalizers=_shared(tuple(metadata.get("finalizers") or ())),
            realm=str(spec.get("realm") or "") if kind == "Catalog" else "",
            standing=_shared(_standing(status)),
            packed_labels=_packed(metadata.get("labels")),
            packed_annotations=_packed(annotations),
            packed_spec=_packed(spec),
            packed_status=_packed(status),
        )

    @property
    def kind(self) -> str:
        return self.key.kind

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def is_deleted(self) -> bool:
        """Whether its deletion was requested."""
        return self.deleted is not None

    @property
    def labels(self) -> dict[str, str]:
        return _decode(self.packed_labels)

    @property
    def annotations(self) -> dict[str, str]:
        return _decode(self.packed_annotations)

    @property
    def spec(self) -> dict[str, Any]:
        return _decode(self.packed_spec)

    @property
    def status(self) -> dict[str, Any]:
        return _decode(self.packed_status)

    def body(self) -> dict[str, Any]:
        """The body in the form of a manifest, with the time of its deletion."""
        metadata: dict[str, Any] = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": self.labels,
            "annotations": self.annotations,
        }
        if self.deleted is not None:
            metadata["deletionTimestamp"] = self.deleted
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": self.spec}

    def change_since(self, former: CachedResource | None) -> ResourceChange:
        """The changes since another state of this resource."""
        if former is None or former.uid != self.uid:
            return ResourceChange.NEW
        before = (former.packed_labels, former.packed_annotations)
        change = ResourceChange.NOTHING
        if former.generation != self.generation or former.packed_spec != self.packed_spec:
            change |= ResourceChange.SPEC
        if before != (self.packed_labels, self.packed_annotations):
            change |= ResourceChange.METADATA
        if former.finalizers != self.finalizers:
            change |= ResourceChange.FINALIZERS
        if former.deleted != self.deleted:
            change |= ResourceChange.DELETION
        if former.packed_status != self.packed_status:
            change |= ResourceChange.STATUS
        return change


class ResourceCache:
    """All resources by key, and catalogs by their Realm. Thread-safe: each call is atomic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resources: dict[ResourceKey, CachedResource] = {}
        self._catalogs: dict[tuple[str, str], set[ResourceKey]] = {}
        self._written: dict[ResourceKey, bytes] = {}

    def update_resource(self, event: str | None, body: Mapping[str, Any]) -> ResourceChange:
        """Store an event of a watch.

        event         ADDED, MODIFIED or DELETED; None for a resource that existed when the watch began, which is always stored, while
                      a later event that is older than the stored state is ignored
        returns       the changes
        """
        resource = CachedResource.from_body(body)
        with self._lock:
            former = self._resources.get(resource.key)
            if event == DELETED_EVENT:
                return self._leave(resource, former)
            if event is not None and _is_older(resource, former):
                return ResourceChange.NOTHING
            self._put(resource)
            return self._without_own(resource, resource.change_since(former))

    def learn(self, body: Mapping[str, Any]) -> ResourceChange:
        """Store the answer to an own write. Returns the changes of others that came with it, except for the status."""
        resource = CachedResource.from_body(body)
        with self._lock:
            former = self._resources.get(resource.key)
            if former is None or former.uid != resource.uid or _is_older(resource, former):
                return ResourceChange.NOTHING  # it was deleted or recreated while the answer was under way
            self._put(resource)
            self._written[resource.key] = _digest(resource.packed_status)
            return resource.change_since(former) & ~ResourceChange.STATUS

    def expect(self, key: ResourceKey, status: Mapping[str, Any]) -> None:
        """Announce a status that is about to be written: its return by the watch is no change."""
        with self._lock:
            if key in self._resources:
                self._written[key] = _digest(_packed(status))

    def replace_all(self, kind: str, bodies: Iterable[Mapping[str, Any]]) -> dict[ResourceKey, ResourceChange]:
        """Store a list of all resources of a kind: what is missing in it was deleted. Returns the changes, where there are any."""
        listed = {resource.key: resource for resource in map(CachedResource.from_body, bodies)}
        with self._lock:
            gone = [held for key, held in self._resources.items() if key.kind == kind and key not in listed]
            changes = {held.key: self._leave(held, held) for held in gone}
            for key, resource in listed.items():
                former = self._resources.get(key)
                self._put(resource)
                changes[key] = self._without_own(resource, resource.change_since(former))
        return {key: change for key, change in changes.items() if change}

    def remove_resource(self, key: ResourceKey, *, uid: str | None = None) -> None:
        """Remove a resource that turned out to be deleted; with ``uid`` only this very one, and not its successor."""
        with self._lock:
            held = self._resources.get(key)
            if held is not None and uid in (None, held.uid):
                self._leave(held, held)

    def find_resource(self, key: ResourceKey) -> CachedResource | None:
        with self._lock:
            return self._resources.get(key)

    def keys(self, kind: str | None = None) -> list[ResourceKey]:
        """The sorted keys of one kind, or of all."""
        with self._lock:
            return sorted(key for key in self._resources if kind in (None, key.kind))

    def catalogs_of(self, namespace: str, realm: str) -> list[ResourceKey]:
        """The sorted Catalogs that name a Realm, whether that exists or not."""
        with self._lock:
            return sorted(self._catalogs.get((namespace, realm), ()))

    def realm_of(self, catalog: CachedResource) -> CachedResource | None:
        """The Realm that a Catalog names."""
        return self.find_resource(ResourceKey("Realm", catalog.namespace, catalog.realm))

    def counts(self) -> dict[str, int]:
        """The number of resources of each kind."""
        with self._lock:
            return dict(Counter(key.kind for key in self._resources))

    def standings(self) -> dict[tuple[str, str, str], int]:
        """The number of resources by kind, condition and its status."""
        with self._lock:
            held = list(self._resources.values())
        return dict(Counter((resource.kind, *pair) for resource in held for pair in resource.standing))

    def _put(self, resource: CachedResource) -> None:
        former = self._resources.get(resource.key)
        if former is not None and former.realm != resource.realm:
            self._unlink(former)
        if former is not None and former.uid != resource.uid:
            self._written.pop(resource.key, None)
        kept = resource if former is None else _sharing(resource, former)
        self._resources[kept.key] = kept
        if kept.realm:
            self._catalogs.setdefault((kept.namespace, kept.realm), set()).add(kept.key)

    def _leave(self, resource: CachedResource, former: CachedResource | None) -> ResourceChange:
        if former is None or former.uid != resource.uid:
            # it was deleted before, or the event about an earlier resource of this name came late
            return ResourceChange.NOTHING
        del self._resources[former.key]
        self._written.pop(former.key, None)
        self._unlink(former)
        return ResourceChange.GONE

    def _unlink(self, catalog: CachedResource) -> None:
        place = (catalog.namespace, catalog.realm)
        if siblings := self._catalogs.get(place):
            siblings.discard(catalog.key)
            if not siblings:
                del self._catalogs[place]

    def _without_own(self, resource: CachedResource, change: ResourceChange) -> ResourceChange:
        is_own = self._written.get(resource.key) == _digest(resource.packed_status)
        return change & ~ResourceChange.STATUS if is_own else change


def _is_older(resource: CachedResource, held: CachedResource | None) -> bool:
    """Whether a state is older. Versions are compared as numbers, as Kubernetes permits; without numbers nothing is older."""
    if held is None or held.uid != resource.uid:
        return False
    versions = (resource.resource_version, held.resource_version)
    return all(version.isdecimal() for version in versions) and int(versions[0]) < int(versions[1])


def _sharing(resource: CachedResource, former: CachedResource) -> CachedResource:
    """Share the former entry's values where they are equal: most events change only the status."""
    same = {
        name: getattr(former, name)
        for name in ("key", "uid", "created", "packed_labels", "packed_annotations", "packed_spec", "packed_status")
        if getattr(former, name) == getattr(resource, name)
    }
    return replace(resource, **same)


def _standing(status: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    conditions = status.get("conditions") or ()
    return tuple(
        (str(condition.get("type")), str(condition.get("status"))) for condition in conditions if isinstance(condition, dict)
    )


def _packed(value: Mapping[str, Any] | None) -> bytes:
    return _encode(value) if value else _EMPTY


def _digest(packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=16).digest()


@lru_cache(maxsize=512)
def _shared(value: Any) -> Any:
    """Return one shared object for equal tuples, of which there are few."""
    return value
