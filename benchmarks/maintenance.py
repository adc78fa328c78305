"""Maintenance: what a sweep decides and deletes, what a purge deletes, what marking reads, the memory that it takes, and waiting tasks.

Run it with ``make bench SUITE=maintenance``; ``--quick`` is small and shows that it works, ``--backends=memory,sqlite`` and
``--only=sweep,pack`` measure some only, ``--into=FOLDER`` keeps the figures there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import task_queue
from benchmarks.disk import working_folder
from benchmarks.floor import Floor
from benchmarks.litter import CATALOG, REALM, Litter, ShiftedClock, littered
from benchmarks.options import Options, others_are_there, read_options
from benchmarks.peak import peak_of
from benchmarks.pictures import Curve, Series
from benchmarks.places import Place, open_places
from benchmarks.report import Row, at_least_of_floor, at_most, say, show, write_results
from benchmarks.timing import median, timed

from headwater.catalogs import Catalogs
from headwater.gc import CollectionResult, collect_realm, open_marker, open_scope
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectKey, Store, open_store

SUITE = "maintenance"
PARTS = ("sweep", "purge", "mark", "branches", "memory", "pack", "tasks")
DAY = 24 * 3600.0
MIB = 1024 * 1024
WHOLE = "whole collection"
FEW, MUCH = 0.05, 0.5
"""Of a realm's objects, how many are garbage."""


@dataclass(frozen=True)
class Scale:
    sizes: tuple[int, ...]
    """Objects of the realms that are collected with little garbage; growth is told over them."""
    littered: int
    """Objects of the realm of which half is garbage, of the one that is purged, and of those that others pack."""
    rounds: int
    branches: tuple[int, ...]
    """Branches of the realms that are collected after half of them were made since the last collection."""
    tasks: int = 10_000
    """Due tasks that wait at once."""

    @property
    def largest(self) -> int:
        return self.sizes[-1]


FULL = Scale(sizes=(10_000, 100_000, 1_000_000), littered=100_000, rounds=3, branches=(100, 1000, 4000))
QUICK = Scale(sizes=(200, 1000), littered=400, rounds=1, branches=(20, 60), tasks=300)


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    rows: list[Row] = []
    curves: list[Curve] = []
    versions: dict[str, str] = {}
    with working_folder() as folder, open_places(folder, options.backends) as places:
        for place in places:
            versions |= place.versions()
            rows += measure(place, scale, options, curves)
        if options.wants("pack") and others_are_there():
            rows += list(packs(folder, scale, rows))
        if options.wants("tasks"):
            rows += task_queue.messages(folder, 150 if options.is_quick else 1500)
    print(show(rows))
    settings = {
        "sizes": scale.sizes,
        "littered": scale.littered,
        "rounds": scale.rounds,
        "branches": scale.branches,
        "load_before": options.load,
    }
    kept = write_results(
        SUITE, rows, settings=settings, is_quick=options.is_part, versions=versions, folder=options.into, curves=curves
    )
    print(f"\nwritten to {kept}")
    return 0


def measure(place: Place, scale: Scale, options: Options, curves: list[Curve]) -> Iterator[Row]:
    """All that touches one database. In memory nothing can be opened twice: only what needs one store is measured there."""
    if options.wants("sweep") and place.is_shared:
        yield from growth(place, scale, curves)
        yield from sweeps(place, scale.littered, MUCH, scale.rounds)
    if options.wants("purge") and place.is_shared:
        yield from purges(place, scale)
    if options.wants("mark"):
        yield from marks(place, scale)
    if options.wants("branches") and place.is_shared:
        yield from branches(place, scale)
    if options.wants("tasks"):
        yield from task_queue.looks(place, scale.tasks, scale.rounds)
    if options.wants("memory") and place.is_shared:
        if not options.wants("sweep"):
            _made(place, _name(scale.largest, FEW), scale.largest, FEW)
        yield from memory(place, scale)


# The cases


def growth(place: Place, scale: Scale, curves: list[Curve]) -> Iterator[Row]:
    """The same over ten and a hundred times as many objects."""
    points = []
    for size in scale.sizes:
        rows = list(sweeps(place, size, FEW, scale.rounds))
        points.append((float(size), rows[-1].value))
        yield from rows
    first, last = points[0][1], points[-1][1]
    yield Row(f"{WHOLE}, time per object: {scale.largest:,} by {scale.sizes[0]:,}", place.name, last / first, "times", None)
    curves.append(
        Curve(
            name=f"collection-{place.name}",
            title=f"A collection of a realm with 5 % garbage, {place.name}",
            x="objects",
            y="µs an object, all phases",
            series=[Series("collection", points)],
            x_scale="log",
        )
    )


def sweeps(place: Place, size: int, share: float, rounds: int) -> Iterator[Row]:
    """Half of the garbage is deleted by the bare driver, the other half by a collection of the same realm."""
    name, case = _name(size, share), f"{size:,} objects, {share:.0%} garbage"
    say(f"{place.name}: {case}")
    litter = _made(place, name, size, share)
    with open_store(place.url(name)) as store, closing(place.floor(name)) as floor, place.apart():
        floor.settle()
        scans, decisions = [], []
        for _ in range(rounds):
            scans.append(timed(floor.scan))
            seen = collect_realm(store, REALM, dry_run=True)
            decisions.append(seen.seconds["plan"] / seen.scanned)
        keys = floor.scan()
        yield Row(
            f"decisions of the sweep, {case}",
            place.name,
            1 / median(decisions),
            "rows/s",
            keys / median(scans),
            at_least_of_floor(0.5),
        )
        bare = timed(_delete_bare, floor, litter.garbage[0], store.settings.delete_batch)
        floor.settle()
        done = collect_realm(store, REALM)
        yield from deletions(place, case, litter, bare, done)


def deletions(place: Place, case: str, litter: Litter, bare: float, done: CollectionResult) -> Iterator[Row]:
    assert done.deleted == len(litter.garbage[1]), (done.deleted, len(litter.garbage[1]))
    rate = len(litter.garbage[0]) / bare
    seconds = done.seconds
    yield Row(
        f"deletions of the sweep, {case}",
        place.name,
        done.deleted / seconds["delete"],
        "rows/s",
        rate,
        at_least_of_floor(0.7),
    )
    whole = sum(seconds[phase] for phase in ("mark", "plan", "raise", "save", "sweep"))
    yield Row(f"{WHOLE}, {case}", place.name, whole * 1e6 / done.scanned, "µs/object")


def purges(place: Place, scale: Scale) -> Iterator[Row]:
    """The bare driver deletes one realm by bounded statements, and a purge one of the same size, each in a database of its own."""
    say(f"{place.name}: purge")
    mine, bare = _made(place, "purge", scale.littered, FEW), _made(place, "purge_bare", scale.littered, FEW)
    with (
        open_store(place.url("purge"), clock=ShiftedClock(DAY)) as early,
        open_store(place.url("purge"), clock=ShiftedClock(3 * DAY)) as store,
        closing(place.floor("purge_bare")) as floor,
        closing(place.floor("purge")) as beside,
        place.apart(),
    ):
        floor.settle()
        beside.settle()
        batch = store.settings.delete_batch
        floor_rows, floor_seconds = _delete_all(floor, bare.realm.key, batch)
        RealmRegistry(early).move_realm(mine.realm, RealmState.INACTIVE)
        realms = RealmRegistry(store)
        realms.move_realm(realms.read_realm(REALM), RealmState.PURGING)
        seconds = timed(purge_realm, store, REALM)
        rows = mine.live + mine.inner + sum(map(len, mine.garbage))
    yield Row(
        f"purge of a realm of {scale.littered:,} objects",
        place.name,
        rows / seconds,
        "rows/s",
        floor_rows / floor_seconds,
        at_least_of_floor(0.7),
    )


def marks(place: Place, scale: Scale) -> Iterator[Row]:
    """What marking reads: inner nodes (commits, lists, stripes), which point on, and the tables below them, which do not."""
    say(f"{place.name}: mark")
    whole = _marked(place, scale, has_leaves=True)
    bare = _marked(place, scale, has_leaves=False)
    for how in ("cold", "warm"):
        (litter, seconds), (nodes, less) = (whole[how], bare[how])
        yield Row(f"mark, {how}: inner nodes", place.name, nodes.inner / less, "objects/s")
        yield Row(f"mark, {how}: leaves", place.name, litter.live / max(seconds - less, 1e-9), "objects/s")
        yield Row(f"mark, {how}: all", place.name, (litter.inner + litter.live) / seconds, "objects/s")


def _marked(place: Place, scale: Scale, *, has_leaves: bool) -> dict[str, tuple[Litter, float]]:
    """By a store that was just opened, and once more by the same; in memory there is no other store."""
    name = "mark" if has_leaves else "mark_inner"
    with open_store(place.url(name), clock=ShiftedClock(-2 * DAY)) as behind:
        litter = littered(behind, scale.littered, 0.0, has_leaves=has_leaves)
        if not place.is_shared:
            behind.cache.clear()
            return {how: (litter, _mark(behind)) for how in ("cold", "warm")}
    with open_store(place.url(name)) as store, place.apart():
        return {how: (litter, _mark(store)) for how in ("cold", "warm")}


def _mark(store: Store) -> float:
    scope = open_scope(store, REALM)
    found = scope.find_references()
    return timed(open_marker(scope).mark, found)


def branches(place: Place, scale: Scale) -> Iterator[Row]:
    """What one branch costs a collection, where half of them were made since the last one."""
    costs = []
    for count in scale.branches:
        say(f"{place.name}: {count:,} branches")
        name = f"branches_{count}"
        with open_store(place.url(name), clock=ShiftedClock(-4 * DAY)) as first:
            littered(first, 100, 0.0)
            _branch(first, count // 2, "a")
        with open_store(place.url(name), clock=ShiftedClock(-2 * DAY)) as second:
            collect_realm(second, REALM)
            _branch(second, count // 2, "b")
        with open_store(place.url(name)) as store, place.apart():
            costs.append(timed(collect_realm, store, REALM) / count)
        yield Row(f"a branch in a collection, of {count:,}", place.name, costs[-1] * 1000, "ms", None)
    yield Row(
        f"a branch in a collection: {scale.branches[-1]:,} by {scale.branches[0]:,}",
        place.name,
        costs[-1] / costs[0],
        "times",
        None,
        at_most(1.3),
    )


def _branch(store: Store, count: int, prefix: str) -> None:
    lake = Catalogs(RealmRegistry(store).open_realm(REALM)).open_catalog(CATALOG)
    for number in range(count):
        lake.create_branch(f"{prefix}{number}")


def memory(place: Place, scale: Scale) -> Iterator[Row]:
    """Over the realm of the growth's last size, which is there."""
    name = _name(scale.largest, FEW)
    say(f"{place.name}: memory of a collection over {scale.largest:,} objects")
    idle, peak = peak_of(place.url(name), REALM)
    yield Row(
        f"peak memory of a collection over {scale.largest:,} objects, above idle",
        place.name,
        (peak - idle) / MIB,
        "MiB",
        None,
        at_most(60),
    )
    yield Row("memory of an idle worker", place.name, idle / MIB, "MiB")


def packs(folder: Path, scale: Scale, ours: Sequence[Row]) -> Iterator[Row]:
    """ZODB's pack of as many objects with as much garbage, and beside it what collections of the same run took."""
    from benchmarks.packs import littered_tree

    for share in (FEW, MUCH):
        case = f"{scale.littered:,} objects, {share:.0%} garbage"
        say(f"zodb: pack, {case}")
        with littered_tree(folder / f"pack-{share}.fs", scale.littered, share) as tree:
            before = tree.size_bytes
            pack = timed(tree.database.pack) * 1e6 / scale.littered
            freed = before - tree.size_bytes
        yield Row(f"ZODB, pack, {case}", "zodb", pack, "µs/object")
        yield Row(f"ZODB, pack, {case}: freed", "zodb", freed / MIB, "MiB")
        for row in ours:
            if row.case == f"{WHOLE}, {case}":
                yield Row(f"{WHOLE} against that pack, {case}", row.backend, row.value, row.unit, pack)


def _name(size: int, share: float) -> str:
    return f"sweep_{size}_{round(100 * share)}"


def _made(place: Place, name: str, size: int, share: float) -> Litter:
    with open_store(place.url(name), clock=ShiftedClock(-2 * DAY)) as store:
        return littered(store, size, share)


def _delete_bare(floor: Floor, keys: list[ObjectKey], batch: int) -> None:
    for start in range(0, len(keys), batch):
        some = [(key.realm, key.id, key.part, key.created, key.token) for key in keys[start : start + batch]]
        assert floor.delete(some) == len(some)


def _delete_all(floor: Floor, realm: int, batch: int) -> tuple[int, float]:
    """How many rows went, and the seconds it took."""
    gone: list[int] = []
    seconds = timed(lambda: gone.extend(iter(lambda: floor.delete_some(realm, batch), 0)))
    return sum(gone), seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
