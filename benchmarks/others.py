"""What others offer, in the same run on the same machine: commits and lists of pyiceberg's SqlCatalog, and trees of ZODB."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from benchmarks.places import Place
from benchmarks.report import Row, say
from benchmarks.sql_catalogs import (
    NAMESPACE,
    HeadwaterChanges,
    HeadwaterPointers,
    files_in,
    insert_tables,
    new_table,
    open_sql_catalog,
    retried,
    setting_properties,
)
from benchmarks.storms import Act, Storm, storm, writers
from benchmarks.tables import CONTENT, VALUE_BYTES, Made, any_of, make, plant, table_keys
from benchmarks.timing import median, timed
from benchmarks.trees import new_tree, open_tree, pointer
from pyiceberg.catalog.sql import SqlCatalog

from headwater.commits import read_head
from headwater.store import RealmId, RealmKey, RealmStore, open_store

__all__ = ["Effort", "commits_of_others", "lists_and_trees", "versions_of_others"]

PACKAGES = ("pyiceberg", "ZODB", "BTrees")


@dataclass(frozen=True)
class Effort:
    threads: int
    turns: int
    seconds: float
    """Of one turn of one contender."""


def versions_of_others() -> dict[str, str]:
    return {package: version(package) for package in PACKAGES}


def commits_of_others(folder: Path, places: Sequence[Place], effort: Effort, made: Made) -> Iterator[Row]:
    for place in places:
        if place.name in ("sqlite", "postgresql"):
            say(f"{place.name}: pyiceberg")
            yield from property_commits(folder, place, effort, made)
    say("zodb: commits to one tree")
    yield from tree_commits(folder, effort, made.keys)


@dataclass
class Contender:
    """A catalog of pyiceberg, wherever its pointer lies, and what came of its storms."""

    label: str
    name: str
    catalog: SqlCatalog
    alone: Storm = field(default_factory=Storm)
    once: Storm = field(default_factory=Storm)
    again: Storm = field(default_factory=Storm)
    lost: list[int] = field(default_factory=list)

    def run(self, effort: Effort) -> None:
        act = setting_properties(self.catalog)
        self.alone.add(storm(writers(1, act), effort.seconds))
        if isinstance(self.catalog, HeadwaterChanges):  # there is nothing to retry
            self.again.add(storm(writers(effort.threads, act), effort.seconds))
            return
        self.once.add(storm(writers(effort.threads, act), effort.seconds))
        self.again.add(storm(writers(effort.threads, retried(act, self.lost)), effort.seconds))


def property_commits(folder: Path, place: Place, effort: Effort, made: Made) -> Iterator[Row]:
    """One writer, many without a retry, many with one: by turns on each side."""
    with open_store(place.url("pointers")) as store:
        rows = store.rows(RealmId("bench"), RealmKey(1002))
        names = [f"{what}-{place.name}" for what in ("pointers", "changes")]
        contenders = [
            Contender("pyiceberg, SqlCatalog", place.name, open_sql_catalog(place, folder, place.name)),
            Contender("pyiceberg, pointer in Headwater", names[0], HeadwaterPointers(rows, names[0], made, folder)),
            Contender("pyiceberg, as a change of Headwater", names[1], HeadwaterChanges(rows, names[1], made, folder)),
        ]
        for one in contenders:
            new_table(one.catalog)
        for _ in range(effort.turns):
            for one in contenders:
                one.run(effort)
    for one in contenders:
        yield from rows_of(one, contenders[0], place.name, effort, files_in(folder, one.name))
    contenders[0].catalog.close()


def rows_of(one: Contender, first: Contender, backend: str, effort: Effort, files: int) -> Iterator[Row]:
    """The floor of these rows is the SqlCatalog."""
    many = f"{one.label}: {effort.threads} writers, one table"
    made = sum(each.done for each in (one.alone, one.once, one.again))
    yield against(f"{one.label}: one writer", backend, one, first, lambda of: of.alone.rate)
    if one.once.waits:
        yield against(f"{many}, one attempt each", backend, one, first, lambda of: of.once.rate)
        yield Row(f"{many}, one attempt each: failures", backend, 100 * failed(one.once), "% of calls")
    yield against(f"{many}, until it is done", backend, one, first, lambda of: of.again.rate)
    yield against(
        f"{many}, until it is done: wait, p99", backend, one, first, lambda of: of.again.percentile(0.99) * 1000, "ms"
    )
    yield Row(f"{many}, until it is done: failures", backend, one.again.failures.total(), "failures")
    yield Row(f"{many}, until it is done: attempts lost", backend, len(one.lost) / max(1, one.again.done), "attempts/commit")
    yield Row(f"{one.label}: files of metadata written", backend, files / made, "files/commit")


def against(
    case: str, backend: str, one: Contender, first: Contender, of: Callable[[Contender], float], unit: str = "commits/s"
) -> Row:
    return Row(case, backend, of(one), unit, of(first) if one is not first else None)


def failed(of: Storm) -> float:
    return of.failures.total() / max(1, len(of.waits))


def tree_commits(folder: Path, effort: Effort, keys: list[bytes]) -> Iterator[Row]:
    """A tree of as many tables as the small catalog has; each commit moves one of them."""
    lost: list[int] = []
    with new_tree(folder / "small.fs", keys, pointer) as tree:
        alone, together = Storm(), Storm()

        def writer() -> Act:
            return tree.setting(any_of(keys), pointer, lost)

        before = tree.size_bytes
        for _ in range(effort.turns):
            alone.add(storm([writer], effort.seconds))
        grown = (tree.size_bytes - before) / max(1, alone.done)
        lost.clear()
        for _ in range(effort.turns):
            together.add(storm([writer] * effort.threads, effort.seconds))
    case = f"ZODB, BTree of {len(keys):,} tables"
    yield Row(f"{case}: one writer", "zodb", alone.rate, "commits/s")
    yield Row(f"{case}: growth of the file", "zodb", grown / 1024, "KiB/commit")
    yield Row(f"{case}: {effort.threads} writers, retried at once", "zodb", together.rate, "commits/s", alone.rate)
    yield Row(f"{case}: {effort.threads} writers: wait, p99", "zodb", together.percentile(0.99) * 1000, "ms")
    yield Row(f"{case}: {effort.threads} writers: failures", "zodb", together.failures.total(), "failures")
    yield Row(f"{case}: {effort.threads} writers: conflicts", "zodb", len(lost) / max(1, together.done), "conflicts/commit")


def lists_and_trees(folder: Path, places: Sequence[Place], listed: int, entries: int, commits: int) -> Iterator[Row]:
    """Listing of many tables by pyiceberg and by an index of ours; and a large tree of ZODB."""
    for place in places:
        if place.name in ("sqlite", "postgresql"):
            say(f"{place.name}: listing {listed:,} tables")
            yield from listings(folder, place, listed)
    say(f"zodb: a tree of {entries:,} entries")
    yield from large_tree(folder, entries, commits)


def listings(folder: Path, place: Place, count: int) -> Iterator[Row]:
    """All tables of one namespace, as tuples of names. The floor of our rows is the SqlCatalog."""
    keys = [f"{NAMESPACE}\0{key.decode().replace(chr(0), '_')}_{number}" for number, key in enumerate(table_keys(count))]
    catalog = open_sql_catalog(place, folder, f"{place.name}-listed")
    insert_tables(catalog, (key.partition("\0")[2] for key in keys))
    theirs = median(timed(lambda: counted(count, catalog.list_tables(NAMESPACE))) for _ in range(3))
    catalog.close()
    case = f"list {count:,} tables of one namespace"
    yield Row(f"pyiceberg, SqlCatalog: {case}", place.name, count / theirs, "tables/s")
    with open_store(place.url("listed")) as store:
        rows = store.rows(RealmId("bench"), RealmKey(1002))
        plant(rows, "listed", make(sorted(key.encode() for key in keys)))
        for what, prepare in (("cold", store.cache.clear), ("warm", lambda: None)):
            ours = median(prepared(prepare, lambda: counted(count, names_of(rows))) for _ in range(3))
            yield Row(f"index: {case}, {what}", place.name, count / ours, "tables/s", count / theirs)


def names_of(rows: RealmStore) -> list[tuple[str, ...]]:
    found = read_head(rows, "listed")
    assert found is not None
    return [tuple(key.decode().split("\0")) for key, _ in found.index(CONTENT).prefix(f"{NAMESPACE}\0".encode())]


def counted(expected: int, found: list[tuple[str, ...]]) -> None:
    assert len(found) == expected, f"{len(found)} tables, not {expected}"


def prepared(prepare: Callable[[], None], action: Callable[[], None]) -> float:
    prepare()
    return timed(action)


def large_tree(folder: Path, entries: int, commits: int) -> Iterator[Row]:
    """With the values that an index of ours has, so that sizes compare; and the pointers of tables in it, for commits."""
    keys, file = table_keys(entries), folder / "large.fs"
    case = f"ZODB, BTree of {entries:,} entries"
    started = time.perf_counter()
    with new_tree(file, keys, lambda chance: chance.randbytes(VALUE_BYTES)) as tree:
        built, size = time.perf_counter() - started, tree.size_bytes
        yield Row(f"{case}: build and pack", "zodb", built, "s")
        yield Row(f"{case}: beyond the value", "zodb", size / entries - VALUE_BYTES, "bytes/entry")
        yield Row(f"{case}: in all", "zodb", size / 1024**2, "MiB")
        act, chance = tree.setting(any_of(keys), lambda chance: chance.randbytes(VALUE_BYTES), []), random.Random(1)
        act(chance)
        before = tree.size_bytes
        seconds = timed(lambda: [act(chance) for _ in range(commits)])
        yield Row(f"{case}: commit of one key", "zodb", commits / seconds, "commits/s")
        yield Row(
            f"{case}: commit of one key: growth of the file", "zodb", (tree.size_bytes - before) / commits / 1024, "KiB/commit"
        )
    yield from opened_cold(file, keys, case)


def opened_cold(file: Path, keys: list[bytes], case: str) -> Iterator[Row]:
    """Opened with its index file beside it, as after an orderly end; and without it, as after a crash: then all of it is read."""
    key = keys[len(keys) // 3]
    for what in ("cold open and first read", "cold open and first read after a crash"):
        started = time.perf_counter()
        with open_tree(file) as tree:
            assert tree.read(key) is not None
            seconds = time.perf_counter() - started
        yield Row(f"{case}: {what}", "zodb", seconds * 1000, "ms")
        file.with_name(file.name + ".index").unlink()
