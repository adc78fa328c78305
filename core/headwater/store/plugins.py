"""Entry points: what installed packages add to a store."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points


def entry_points_of(group: str) -> dict[str, list[EntryPoint]]:
    """The entry points of a group by their name; more than one where several packages claim a name."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def claim_of(point: EntryPoint) -> str:
    """An entry point and its package, for messages."""
    package = "an unknown package" if point.dist is None else f"package {point.dist.name!r}"
    return f"{point.value!r} of {package}"
