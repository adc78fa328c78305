"""A realm to tidy up: one catalog whose tables are kept, and objects that nothing points to, older than every grace."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.tables import CONTENT, SEED, limits_of, moved_table, table_keys, value_of

from headwater.catalogs import Catalogs
from headwater.clock import Micros, SystemClock
from headwater.commits import Commit
from headwater.index import Index, IndexEditor, IndexValue
from headwater.realms import Realm, RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import ObjectId, ObjectKey, RealmStore, Store

__all__ = ["REALM", "Litter", "ShiftedClock", "littered"]

REALM = "bench"
CATALOG = "lake"
WRITTEN_AT_ONCE = 1000
T = TypeVar("T")


class ShiftedClock(SystemClock):
    """The machine's clock so many seconds ahead, or behind: what is written by it is old for everybody else."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._shift = round(seconds * 1_000_000)

    def now(self) -> Micros:
        return Micros(super().now() + self._shift)

    def wall(self) -> Micros:
        return Micros(super().wall() + self._shift)


@dataclass(frozen=True)
class Litter:
    """What was made.

    live          objects of tables that the branch points to
    inner         the commit, lists and stripes above them
    garbage       rows that nothing points to, in two halves of which each lies anywhere among the ids
    """

    realm: Realm
    live: int
    inner: int
    garbage: tuple[Sequence[ObjectKey], Sequence[ObjectKey]]


def littered(store: Store, objects: int, garbage_share: float, *, has_leaves: bool = True) -> Litter:
    """Fill an empty store; opened with a clock that is behind, so that what is written is old.

    objects       of tables, kept and not
    garbage_share of them
    has_leaves    False: the tables in the index have no objects, so that nothing but its inner nodes is there
    """
    realms, chance = RealmRegistry(store), random.Random(SEED)
    realms.create_realm(REALM)
    realm = bootstrap(realms, REALM, hash_credentials(new_credentials()))
    rows = realms.open_realm(REALM)
    definition = Catalogs(rows).create_catalog(CATALOG, base_location="s3://lake/")
    numbers = store.new_ids(objects)
    garbage = set(chance.sample(range(objects), round(objects * garbage_share)))
    live = [number for place, number in enumerate(numbers) if place not in garbage]
    thrown = [number for place, number in enumerate(numbers) if place in garbage]
    for some in _blocks(live if has_leaves else []):
        rows.write_objects((number, moved_table(0)) for number in some)
    halves = _write_garbage(rows, thrown[::2]), _write_garbage(rows, thrown[1::2])
    inner = _point_to(rows, f"cat/{definition.id}/heads/main", definition.id, live, has_leaves)
    return Litter(realm, len(live) if has_leaves else 0, inner, halves)


def _write_garbage(rows: RealmStore, numbers: Sequence[ObjectId]) -> list[ObjectKey]:
    return [key for some in _blocks(numbers) for key in rows.write_objects((number, moved_table(0)) for number in some)]


def _point_to(rows: RealmStore, branch: str, catalog_id: str, numbers: Sequence[ObjectId], has_leaves: bool) -> int:
    """One commit whose index holds all of them, as an import makes them. Returns how many objects lie above the tables."""
    chance, editor = random.Random(SEED), IndexEditor(Index())
    for key, number in zip(table_keys(len(numbers)), numbers, strict=True):
        value = value_of(number, chance)
        editor.put(key, value if has_leaves else IndexValue(None, value.data))
    stored = editor.stored(rows.new_ids, limits_of(rows))
    for some in _blocks(stored.objects):
        rows.write_objects(some)
    commit_id = rows.new_id()
    first = Commit(
        seq=1, time=rows.clock.now(), indexes={CONTENT: stored.container}, properties={"catalog": catalog_id}, message="import"
    )
    rows.write_objects([(commit_id, first)])
    rows.advance_reference(rows.read_reference(branch, fresh=True), commit_id)
    return len(stored.objects) + 1


def _blocks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), WRITTEN_AT_ONCE):
        yield items[start : start + WRITTEN_AT_ONCE]
