"""What a cluster does by itself: kinds are served as they are defined, policies hold as they are bound, and what is deleted takes
along all that is in it or belongs to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from kubeapi.admission import Policies
from kubeapi.builtin import CRDS, NAMESPACES
from kubeapi.definitions import established, is_established, kinds_of
from kubeapi.failures import Failure
from kubeapi.kinds import Kind, Kinds
from kubeapi.managers import Writer, after_update
from kubeapi.requests import Asked
from kubeapi.store import Change, Key, Record, Shelf, Store
from kubeapi.times import stamp
from kubeapi.watches import Watches
from kubeapi.writes import Writing

__all__ = ["Caretaking"]

Body = dict[str, Any]
POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
SECONDS_BETWEEN_TRIES = 0.5


class Caretaking:
    """Told of every change. What it does itself it does a moment later, as the controllers of a cluster do.

    is_bare     do only what an API server does itself: serve definitions, and empty those that are deleted
    """

    def __init__(
        self,
        store: Store,
        kinds: Kinds,
        policies: Policies,
        writing: Writing,
        watches: Watches,
        clock: Callable[[], float],
        *,
        is_bare: bool = False,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._policies = policies
        self._writing = writing
        self._watches = watches
        self._clock = clock
        self._is_bare = is_bare
        self._ending: set[tuple[str, Key]] = set()
        self._belongings: dict[str, set[tuple[str, Key]]] = {}
        self._next: asyncio.TimerHandle | None = None
        store.listen(self.notice)

    def notice(self, shelf: Shelf, change: Change) -> None:
        record = change.after
        if shelf.name == CRDS.resource:
            self._define(change)
        elif shelf.name in (POLICIES, BINDINGS):
            self._bind(change)
        if shelf.name == CRDS.resource or (shelf.name == NAMESPACES.resource and not self._is_bare):
            ending = record is not None and "deletionTimestamp" in record.load()["metadata"]
            (self._ending.add if ending else self._ending.discard)((shelf.name, change.key))
        if not self._is_bare:
            self._notice_owners(shelf, change)
        if self._ending:
            self._end_in(0)

    def _notice_owners(self, shelf: Shelf, change: Change) -> None:
        record = change.after
        for owner in record.owners if record is not None else ():
            self._belongings.setdefault(owner, set()).add((shelf.name, change.key))
        if record is not None and b'"deletionTimestamp"' in record.raw and _dependents_finalizer(record.load()):
            asyncio.get_running_loop().call_soon(self._free, shelf, change.key)
        if record is None and change.before is not None and change.before.uid in self._belongings:
            asyncio.get_running_loop().call_soon(self._collect, change.before.uid)

    def _define(self, change: Change) -> None:
        record = change.after
        if record is None:
            before = change.before
            assert before is not None
            plural, _, group = change.key[1].partition(".")
            self._kinds.remove(group, plural)
            self._watches.cut(change.key[1])
            self._store.drop(change.key[1])
            return
        body = record.load()
        self._kinds.remove(body["spec"]["group"], body["spec"]["names"]["plural"])
        for kind in kinds_of(body):
            self._kinds.put(kind)
            if kind.compiled is not None and self._store.reread(kind.shelf, kind.compiled.read):
                self._watches.cut(change.key[1])
        if not is_established(body):
            asyncio.get_running_loop().call_soon(self._establish, change.key)

    def _establish(self, key: Key) -> None:
        shelf = self._store.shelf(CRDS.shelf)
        record = shelf.find(key)
        if record is None or is_established(record.load()):
            return
        body, now = record.load(), stamp(self._clock())
        live = record.load()
        body["status"] = established(body, now)
        given_at_once = {"acceptedNames": {}, "conditions": [], "storedVersions": body["status"]["storedVersions"]}
        live["status"] = given_at_once
        body["metadata"]["managedFields"] = after_update(live, body, CRDS, Writer("kube-apiserver", "status", now))
        self._store.put(shelf, key, body)

    def _bind(self, change: Change) -> None:
        record = change.after or change.before
        assert record is not None
        body = record.load()
        if change.after is None:
            self._policies.remove(body["kind"], change.key[1])
        else:
            self._policies.put(body)

    def _end(self) -> None:
        """Empty what is terminating; what is empty goes. What is held up is tried again."""
        self._next = None
        for name, key in sorted(self._ending):
            if name == CRDS.resource:
                self._end_definition(key)
            else:
                self._end_namespace(key)
        if self._ending and self._next is None:
            self._end_in(SECONDS_BETWEEN_TRIES)

    def _end_in(self, seconds: float) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = asyncio.get_running_loop().call_later(seconds, self._end)

    def _end_definition(self, key: Key) -> None:
        shelf = self._store.shelf(CRDS.shelf)
        record = shelf.find(key)
        if record is None:
            self._ending.discard((CRDS.resource, key))
            return
        kind = next((kind for kind in self._kinds if kind.shelf == key[1]), None)
        if kind is not None and self._delete_all(kind, list(self._store.shelf(kind.shelf).scan())):
            return
        body = record.load()
        body["metadata"]["finalizers"] = [one for one in body["metadata"].get("finalizers", ()) if one != CLEANUP]
        if not body["metadata"]["finalizers"]:
            self._store.remove(shelf, key)

    def _end_namespace(self, key: Key) -> None:
        shelf = self._store.shelf(NAMESPACES.shelf)
        record = shelf.find(key)
        if record is None:
            self._ending.discard((NAMESPACES.resource, key))
            return
        left = sum(self._delete_all(kind, records) for kind, records in self._inside(key[1]))
        body = record.load()
        if not left and not body["metadata"].get("finalizers") and set(body["spec"]["finalizers"]) <= {"kubernetes"}:
            self._store.remove(shelf, key)

    def _inside(self, namespace: str) -> Iterator[tuple[Kind, list[Record]]]:
        for shelf in self._store.shelves():
            kind = next((kind for kind in self._kinds if kind.shelf == shelf.name and kind.is_namespaced), None)
            if kind is not None:
                yield kind, list(shelf.scan(namespace))

    def _delete_all(self, kind: Kind, records: list[Record]) -> int:
        """Returns how many are left."""
        left = 0
        for record in records:
            asked = Asked(
                "delete", kind, record.key[0], record.key[1], "", {}, user="system:serviceaccount:kube-system:caretaker"
            )
            gone = False
            with contextlib.suppress(Failure):
                gone = self._writing.delete(asked, {}, record)[1]
            left += not gone
        return left

    def _free(self, shelf: Shelf, key: Key) -> None:
        """Take off the finalizer by which a deletion waits for what belongs to the object: it goes first, or is let go."""
        record = shelf.find(key)
        finalizer = _dependents_finalizer(record.load()) if record is not None else None
        if record is None or finalizer is None:
            return
        if finalizer == "foregroundDeletion":
            self._collect(record.uid)
        else:
            self._belongings.pop(record.uid, None)
        body = record.load()
        body["metadata"]["finalizers"] = [name for name in body["metadata"]["finalizers"] if name != finalizer]
        if body["metadata"]["finalizers"]:
            self._store.put(shelf, key, body)
        else:
            self._store.remove(shelf, key)

    def _collect(self, uid: str) -> None:
        """Delete what belonged to an object that is gone, and to nobody else."""
        for name, key in sorted(self._belongings.pop(uid, ())):
            record = self._store.shelf(name).find(key)
            kind = next((kind for kind in self._kinds if kind.shelf == name), None)
            if record is None or kind is None or uid not in record.owners or self._has_owner(record, but=uid):
                continue
            self._delete_all(kind, [record])

    def _has_owner(self, record: Record, *, but: str) -> bool:
        uids = {one.uid for shelf in self._store.shelves() for one in shelf.records.values()} - {but}
        return any(owner in uids for owner in record.owners)


def _dependents_finalizer(body: Body) -> str | None:
    metadata = body["metadata"]
    if not metadata.get("deletionTimestamp"):
        return None
    return next((name for name in metadata.get("finalizers") or () if name in ("foregroundDeletion", "orphan")), None)
