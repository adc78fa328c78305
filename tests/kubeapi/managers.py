"""Who manages which fields of an object: kept by every write, and the ground on which server-side apply refuses or takes over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kubeapi.failures import Failure
from kubeapi.fields import Path, changes, decode, encode, merged, owned, problems, shown, with_parents, without
from kubeapi.kinds import Kind

__all__ = ["LAST_APPLIED", "Writer", "after_apply", "after_update"]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, through which door (``""`` or a subresource), and when."""

    manager: str
    subresource: str
    now: str


@dataclass(frozen=True, slots=True)
class _Entry:
    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    paths: frozenset[Path]

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """One who applies stays the same in every version."""
        return (self.manager, self.operation, "" if self.operation == "Apply" else self.api_version, self.subresource)

    @property
    def rank(self) -> tuple[str, str, str, str, str]:
        return (self.operation, self.time, self.manager, self.api_version, self.subresource)

    def encoded(self) -> Body:
        entry = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        entry |= {"time": self.time} if self.time else {}
        entry |= {"fieldsType": "FieldsV1"}
        return entry | {"fieldsV1": encode(set(self.paths))} | ({"subresource": self.subresource} if self.subresource else {})

    def __str__(self) -> str:
        told = json.dumps(self.manager) + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return told if self.operation == "Apply" else f"{told} using {self.api_version}"


_Entries = dict[tuple[str, str, str, str], _Entry]


def after_update(live: Body, new: Body, kind: Kind, writer: Writer) -> list[Body]:
    """``managedFields`` after an object was written as a whole: who changed a field has it now, and nobody else."""
    entries = _of_update(live, new, writer)
    found = changes(live, new, kind.schema)
    touched = _within(found.added | found.modified, kind, writer)
    entries = _given_up(entries, touched | found.removed)
    if touched:
        mine = _Entry(writer.manager, "Update", kind.api_version, writer.subresource, writer.now, frozenset(touched))
        before = entries.get(mine.identity)
        entries[mine.identity] = replace(mine, paths=mine.paths | (before.paths if before else frozenset()))
    return _encoded(entries.values())


def after_apply(live: Body, applied: Body, kind: Kind, writer: Writer, *, force: bool) -> Body:
    """The object, and its ``managedFields``, after a manager applied all that it wants.

    What it applied before and leaves out now is gone, unless somebody else owns it too. A field of another manager that would
    change is a conflict; with ``force`` it is taken over.
    """
    if applied.get("metadata", {}).get("managedFields"):
        raise Failure.bad_request("metadata.managedFields must be nil")
    _refuse_what_cannot_be_typed(applied, kind)
    entries = _decoded(live.get("metadata", {}).get("managedFields") or ())
    wanted = frozenset(_within(owned(applied, kind.schema), kind, writer))
    mine = _Entry(writer.manager, "Apply", kind.api_version, writer.subresource, "", wanted)
    before = entries.get(mine.identity)
    entries[mine.identity] = replace(mine, time=before.time if before else "")
    config = _only(applied, kind, writer)
    new = merged(live, config, kind.schema)
    if before and before.paths:
        kept = with_parents(path for entry in entries.values() for path in entry.paths)
        gone = with_parents(before.paths) - kept - {("f:metadata",)}
        new = without(new, gone, kind.schema)
    found = changes(live, new, kind.schema)
    changed = found.added | found.modified
    force = force or _is_own_past(live, entries, changed, mine)
    if not force:
        _refuse_conflicts(entries, changed, mine)
    others = {identity: entry for identity, entry in entries.items() if identity != mine.identity}
    entries = _given_up(others, changed | found.removed) | {mine.identity: entries[mine.identity]}
    is_changed = bool(changed or found.removed)
    if is_changed or (before and before.paths != wanted):
        entries[mine.identity] = replace(mine, time=writer.now)
    new = new | {"metadata": new.get("metadata", {}) | {"managedFields": _encoded(entries.values())}}
    return _with_last_applied(new, applied, writer)


def _of_update(live: Body, new: Body, writer: Writer) -> _Entries:
    """A writer of the whole object may hand in ``managedFields`` of its own; one empty entry wipes them."""
    given = new.get("metadata", {}).get("managedFields")
    if not writer.subresource and given == [{}]:
        return {}
    if given and not writer.subresource:
        return _decoded(given)
    return _decoded(live.get("metadata", {}).get("managedFields") or ())


def _decoded(encoded: Iterable[Mapping[str, Any]]) -> _Entries:
    entries = (
        _Entry(
            str(one.get("manager", "")),
            str(one.get("operation", "")),
            str(one.get("apiVersion", "")),
            str(one.get("subresource", "")),
            str(one.get("time") or ""),
            frozenset(decode(one.get("fieldsV1") or {})),
        )
        for one in encoded
    )
    return {entry.identity: entry for entry in entries}


def _encoded(entries: Iterable[_Entry]) -> list[Body]:
    return [entry.encoded() for entry in sorted(entries, key=lambda one: one.rank) if entry.paths]


def _given_up(entries: _Entries, paths: set[Path]) -> _Entries:
    return {identity: replace(entry, paths=entry.paths - paths) for identity, entry in entries.items()}


def _within(paths: set[Path], kind: Kind, writer: Writer) -> set[Path]:
    """What can be written through this door at all."""
    if writer.subresource == "status":
        return {path for path in paths if path[0] == "f:status"}
    return {path for path in paths if path[0] != "f:status"} if kind.has_status else paths


def _only(applied: Body, kind: Kind, writer: Writer) -> Body:
    if writer.subresource == "status":
        return {name: applied[name] for name in ("apiVersion", "kind", "status") if name in applied}
    return {name: value for name, value in applied.items() if name != "status" or not kind.has_status}


def _refuse_what_cannot_be_typed(applied: Body, kind: Kind) -> None:
    found = next(problems(applied, kind.schema), None)
    if found is not None:
        metadata = applied.get("metadata", {})
        subject = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind.api_version}, Kind={kind.kind}"
        raise Failure.internal(f"failed to create typed patch object ({subject}): {found}")


def _conflicts(entries: _Entries, changed: set[Path], mine: _Entry) -> list[tuple[_Entry, Path]]:
    others = sorted((entry for entry in entries.values() if entry.identity != mine.identity), key=str)
    return [(entry, path) for entry in others for path in sorted(entry.paths & changed)]


def _refuse_conflicts(entries: _Entries, changed: set[Path], mine: _Entry) -> None:
    found = _conflicts(entries, changed, mine)
    if not found:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {entry}", "field": shown(path)} for entry, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {shown(found[0][1])}"
    else:
        by_manager: dict[str, list[str]] = {}
        for entry, path in found:
            by_manager.setdefault(str(entry), []).append(f"- {shown(path)}")
        told = [line for name, paths in by_manager.items() for line in (f"conflicts with {name}:", *paths)]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(told)
    raise Failure(409, "Conflict", message, details={"causes": causes})


def _is_own_past(live: Body, entries: _Entries, changed: set[Path], mine: _Entry) -> bool:
    """kubectl may take over what it applied itself by its older way: what its annotation holds is no conflict."""
    last = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
    if mine.manager != "kubectl" or not last:
        return False
    mine_before = owned(json.loads(last), {})
    return all(path in mine_before or path[-1] == f"f:{LAST_APPLIED}" for _, path in _conflicts(entries, changed, mine))


def _with_last_applied(new: Body, applied: Body, writer: Writer) -> Body:
    """kubectl's annotation is kept true by the server once it is there, so that its older way can still be used."""
    annotations = new["metadata"].get("annotations", {})
    if writer.manager != "kubectl" or LAST_APPLIED not in annotations:
        return new
    text = json.dumps(applied, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return new | {"metadata": new["metadata"] | {"annotations": annotations | {LAST_APPLIED: text}}}
