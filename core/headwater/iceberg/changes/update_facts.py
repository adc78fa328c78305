"""What updates say about themselves, for callers that decide before or after the change: snapshots, refs, files and places.

The updates may not have been checked: what is not of its shape is passed over, and refused when it is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headwater.iceberg.changes.document_entries import stripped_location


class NamedPath(NamedTuple):
    """A file or a place that an update names. ``where`` is that update's field: ``updates[0].snapshot.manifest-list``."""

    where: str
    location: str


def added_snapshots(updates: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The snapshots that updates add, as they were sent, in their order."""
    snapshots = (update.get("snapshot") for update in _of_action(updates, "add-snapshot"))
    return [snapshot for snapshot in snapshots if isinstance(snapshot, Mapping)]


def moved_refs(updates: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """The branches and tags that updates set, with the snapshot that each is on in the end; None for one that is removed."""
    refs: dict[str, int | None] = {}
    for update in updates:
        if not isinstance(update, Mapping) or not isinstance(update.get("ref-name"), str):
            continue
        if update.get("action") == "set-snapshot-ref" and isinstance(update.get("snapshot-id"), int):
            refs[update["ref-name"]] = update["snapshot-id"]
        elif update.get("action") == "remove-snapshot-ref":
            refs[update["ref-name"]] = None
    return refs


def added_files(updates: Sequence[Mapping[str, Any]], *, where: str = "updates") -> list[NamedPath]:
    """The files that updates add to a table: manifest lists, manifests of version 1, statistics. They must lie in the table's places."""
    return [named for at, update in enumerate(updates) for named in _files_in(update, f"{where}[{at}]")]


def _files_in(update: Any, where: str) -> Iterator[NamedPath]:
    action = update.get("action") if isinstance(update, Mapping) else None
    if action == "add-snapshot" and isinstance(update.get("snapshot"), Mapping):
        yield from _named(update["snapshot"], "manifest-list", f"{where}.snapshot")
        inline = update["snapshot"].get("manifests")
        for at, path in enumerate(inline if isinstance(inline, list) else ()):
            if isinstance(path, str):
                yield NamedPath(f"{where}.snapshot.manifests[{at}]", path)
    for name in ("statistics", "partition-statistics"):
        if action == f"set-{name}" and isinstance(update.get(name), Mapping):
            yield from _named(update[name], "statistics-path", f"{where}.{name}")


def claimed_places(updates: Sequence[Mapping[str, Any]], names: Sequence[str], *, where: str = "updates") -> list[NamedPath]:
    """The places that updates claim for a table's or view's files: its location, and the properties of these names."""
    places: list[NamedPath] = []
    for at, update in enumerate(updates):
        action = update.get("action") if isinstance(update, Mapping) else None
        if action == "set-location":
            places += [NamedPath(path, stripped_location(text)) for path, text in _named(update, "location", f"{where}[{at}]")]
        elif action == "set-properties" and isinstance(update.get("updates"), Mapping):
            properties = update["updates"]
            places += [
                NamedPath(f"{where}[{at}].updates[{name!r}]", properties[name])
                for name in names
                if isinstance(properties.get(name), str) and properties[name]
            ]
    return places


def _named(holder: Mapping[str, Any], name: str, where: str) -> Iterator[NamedPath]:
    if isinstance(holder.get(name), str):
        yield NamedPath(f"{where}.{name}", holder[name])


def _of_action(updates: Sequence[Mapping[str, Any]], action: str) -> Iterator[Mapping[str, Any]]:
    return (update for update in updates if isinstance(update, Mapping) and update.get("action") == action)
