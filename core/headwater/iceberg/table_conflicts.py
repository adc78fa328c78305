"""Conflicts between tables of one survey. No evidence shows which of them is right, so all of them are quarantined.

``find_conflicts`` works over the identities of a whole survey, or over those of the tables that ``exclusive_keys`` finds to
contradict another: the verdicts are the same. Where two tables contradict each other in several ways, the first of these
counts: same uuid, same key, one directory within the other; and then, among tables that have none of these, a key that is the
namespace of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from headwater.iceberg.survey_outcomes import QuarantineCode, QuarantinedTable, TableIdentity

_NAMED = 5
"""How many of the directories that share something a verdict names; it always has their number."""


def find_conflicts(sketches: Iterable[TableIdentity]) -> dict[str, QuarantinedTable]:
    """The verdicts, by directory, on tables that conflict with others.

    sketches      one per directory
    """
    ordered = sorted(sketches)
    verdicts: dict[str, QuarantinedTable] = {}
    for trait, verdict in ((_uuid, _same_uuid), (_key, _same_key)):
        for sharing in _shared(ordered, trait):
            directories = [sketch.directory for sketch in sharing[:_NAMED]]
            for sketch in sharing:
                verdicts.setdefault(sketch.directory, verdict(sketch, directories, len(sharing)))
    for sketch, other in _nestings(ordered):
        verdicts.setdefault(sketch.directory, _nested(sketch, other))
    clear = [sketch for sketch in ordered if sketch.directory not in verdicts]
    keys = {sketch.key for sketch in clear}
    for sketch in clear:
        above = next((key for key in _keys_above(sketch.key) if key in keys), None)
        if above is not None:
            verdicts[sketch.directory] = _under_a_table(sketch, above)
    return verdicts


def exclusive_keys(sketch: TableIdentity, locations: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns (exclusive, occupied): keys that no other table may have at all, and keys that no other table may have as exclusive.

    Two tables conflict if an exclusive key of one is on either list of the other.

    locations     the survey's, of which one holds the table: no other can lie above it
    """
    alone = [f"directory {sketch.directory}", f"key {_text(sketch.key)}"]
    if sketch.uuid is not None:
        alone.append(f"uuid {sketch.uuid}")
    here = f"{sketch.directory}/"
    least = max((len(location) for location in locations if here.startswith(f"{location}/")), default=0)
    around = [f"directory {directory}" for directory in _directories_above(sketch.directory) if len(directory) >= least]
    return alone, around + [f"key {_text(key)}" for key in _keys_above(sketch.key)]


def _text(key: Sequence[str]) -> str:
    return "\0".join(key)


def _same_uuid(sketch: TableIdentity, directories: Sequence[str], total: int) -> QuarantinedTable:
    """directories: the first of those that share the uuid, up to ``_NAMED``, sorted; total: how many do, at least two"""
    return _verdict(
        sketch, QuarantineCode.DUPLICATE_UUID, f"{_listed(directories, total)} have the same uuid: one is a copy, remove it"
    )


def _same_key(sketch: TableIdentity, directories: Sequence[str], total: int) -> QuarantinedTable:
    """directories: the first of those that have the key, up to ``_NAMED``, sorted; total: how many have, at least two"""
    fault = f"{_listed(directories, total)} would get the same key: import them into two catalogs"
    return _verdict(sketch, QuarantineCode.DUPLICATE_KEY, fault)


def _nested(sketch: TableIdentity, other: str) -> QuarantinedTable:
    """other: the nearest directory of a table around this one, or if there is none the first, by name, of those within it"""
    pair = sorted([sketch.directory, other], key=len)
    return _verdict(sketch, QuarantineCode.NESTED, f"{_listed(pair, 2)} lie one within the other: move one of them")


def _under_a_table(sketch: TableIdentity, above: Sequence[str]) -> QuarantinedTable:
    """above: the shortest key of a table that this key would need as a namespace"""
    fault = f"{sketch.directory}: {'.'.join(sketch.key)} needs the namespace {'.'.join(above)}, which is a table in this import"
    return _verdict(sketch, QuarantineCode.KEY_TAKEN, fault)


def _directories_above(directory: str) -> list[str]:
    """The directories above a directory, the nearest first."""
    segments = directory.split("/")
    return ["/".join(segments[:length]) for length in range(len(segments) - 1, 0, -1)]


def _keys_above(key: Sequence[str]) -> list[tuple[str, ...]]:
    """The keys of the namespaces above a key, the shortest first."""
    return [tuple(key[:length]) for length in range(1, len(key))]


def _nestings(sketches: Sequence[TableIdentity]) -> list[tuple[TableIdentity, str]]:
    """Tables within others, with the nearest around them; then tables around others, with the first within them."""
    by_directory = {sketch.directory: sketch for sketch in sketches}
    inner: list[tuple[TableIdentity, str]] = []
    outer: list[tuple[TableIdentity, str]] = []
    for sketch in sketches:
        around = [directory for directory in _directories_above(sketch.directory) if directory in by_directory]
        inner.extend((sketch, directory) for directory in around[:1])
        outer.extend((by_directory[directory], sketch.directory) for directory in around)
    return [*inner, *outer]


def _shared(sketches: Sequence[TableIdentity], trait: Callable[[TableIdentity], Any]) -> Iterator[list[TableIdentity]]:
    """The entries that share a value, in their order. Found by sorting, which needs less memory than a table of all."""
    told = sorted((sketch for sketch in sketches if trait(sketch) is not None), key=trait)
    for _, group in groupby(told, key=trait):
        sharing = list(group)
        if len(sharing) > 1:
            yield sharing


def _uuid(sketch: TableIdentity) -> object:
    return sketch.uuid


def _key(sketch: TableIdentity) -> object:
    return sketch.key


def _verdict(sketch: TableIdentity, code: QuarantineCode, message: str) -> QuarantinedTable:
    return QuarantinedTable(directory=sketch.directory, key=sketch.key, code=code, message=message)


def _listed(directories: Sequence[str], total: int) -> str:
    return " and ".join(directories) + (f" and {total - len(directories)} more" if total > len(directories) else "")
