"""Commits: one writer against the floor, many on one reference against the plain loop, many apart, and what others offer.

The commit that is measured moves one table's pointer on a branch: an object is added, and one key of the branch's index is put.
Run it with ``make bench SUITE=commits``; ``--quick`` is small and shows that it works, ``--backends=memory,sqlite`` and
``--only=writer,crowds`` measure some only, ``--into=FOLDER`` keeps the figures there.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

from benchmarks.counting import counting_store
from benchmarks.disk import working_folder
from benchmarks.floor import Floor, object_values
from benchmarks.options import Options, others_are_there, read_options
from benchmarks.pictures import Curve, Series
from benchmarks.places import Place, open_places
from benchmarks.plain import plain_commit
from benchmarks.report import Row, at_least_of_floor, at_most, at_most_of_floor, say, show, write_results
from benchmarks.storms import Act, Crowd, Storm, background, storm, writers
from benchmarks.tables import CONTENT, Choice, Made, any_of, churn, commit_one, make, plant, point, table_keys
from benchmarks.timing import race, timed

from headwater.store import RealmId, RealmKey, RealmStore, Store, open_store

SUITE = "commits"
REALM, OTHER = RealmId("bench"), RealmId("other")
KEYS = {REALM: RealmKey(1002), OTHER: RealmKey(1003)}
PARTS = ("writer", "crowds", "apart", "independence", "contenders")
FLOOR = ("floor", "")
COMMIT_BYTES = 14_000
"""What a commit to a catalog of 1,000 tables writes, for the embedded part of its index goes with it."""
IN_TWO = ("floor", "rows and swap in two calls")
OF_ITS_SIZE = ("floor", f"{COMMIT_BYTES:,} bytes at once")
"""Beside the floor, to see how much of a commit's time is for the second call, and how much for its bytes."""
CONTROL = "another database"
SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999)


@dataclass(frozen=True)
class Scale:
    small: int
    """Tables of a small catalog, and of a large one."""
    large: int
    churned: int
    """Tables of the large catalog that are moved before anything is measured."""
    commits: int
    """Of a round of one writer: enough for a spill or two."""
    rounds: int
    threads: int
    processes: int
    turns: int
    seconds: float
    """Of one turn of a storm."""
    crowd_turns: int
    crowd_seconds: float
    """Of one turn of a crowd: no wait that is much longer can be seen, for the crowd is gone then."""


FULL = Scale(
    small=1000,
    large=1_000_000,
    churned=20_000,
    commits=100,
    rounds=15,
    threads=16,
    processes=8,
    turns=3,
    seconds=2,
    crowd_turns=2,
    crowd_seconds=7,
)
QUICK = Scale(
    small=200,
    large=2000,
    churned=256,
    commits=10,
    rounds=2,
    threads=4,
    processes=2,
    turns=1,
    seconds=0.2,
    crowd_turns=1,
    crowd_seconds=0.3,
)


@dataclass
class Bench:
    """A database with branches on it. All branches of one size hold the same tables."""

    place: Place
    scale: Scale
    store: Store
    small: Made
    large: Made
    curves: list[Curve] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def rows(self) -> RealmStore:
        return rows_of(self.store)

    def branch(self, name: str, rows: RealmStore | None = None) -> Act:
        """A new branch with a small catalog in its steady state; returns the commit to any table of it."""
        rows = rows or self.rows
        plant(rows, name, self.small)
        keys = self.small.keys
        churn(rows, name, keys, 2 * len(keys), at_once=128)
        return committing(rows, name, any_of(keys))


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    found: list[Row] = []
    curves: list[Curve] = []
    versions: dict[str, str] = {}
    say(f"an index of {scale.large:,} tables")
    small, large = (make(table_keys(size)) for size in (scale.small, scale.large))
    with working_folder() as folder, open_places(folder, options.backends) as places:
        for place in places:
            versions |= place.versions()
            with open_store(place.url("store")) as store:
                bench = Bench(place, scale, store, small, large, curves)
                found += measure(bench, options)
        if options.wants("contenders") and others_are_there():
            from benchmarks.others import Effort, commits_of_others, versions_of_others

            versions |= versions_of_others()
            found += commits_of_others(folder, places, Effort(scale.threads, 1, 2 * scale.seconds), small)
    print(show(found))
    settings = {"tables": scale.large, "rounds": scale.rounds, "seconds": scale.crowd_seconds, "load_before": options.load}
    kept = write_results(
        SUITE, found, settings=settings, is_quick=options.is_part, versions=versions, folder=options.into, curves=curves
    )
    print(f"\nwritten to {kept}")
    return 0


def measure(bench: Bench, options: Options) -> Iterator[Row]:
    """All that one database is asked."""
    for part, case in (("writer", one_writer), ("crowds", crowds), ("apart", many_references), ("independence", independence)):
        if options.wants(part):
            say(f"{bench.name}: {case.__name__.replace('_', ' ')}")
            yield from case(bench)


def rows_of(store: Store, realm: RealmId = REALM) -> RealmStore:
    return store.rows(realm, KEYS[realm])


def committing(rows: RealmStore, branch: str, choice: Choice) -> Act:
    return lambda chance: commit_one(rows, branch, choice(chance), chance)


def looping(rows: RealmStore, branch: str, choice: Choice) -> Act:
    """The same change by the plain loop."""

    def act(chance: random.Random) -> None:
        key = choice(chance)
        plain_commit(rows, branch, CONTENT, lambda index, add: point(index, add, key, chance))

    return act


class FloorWriter:
    """Commits as the bare driver does: two rows and a swap, in one transaction or statement where the database has it.

    in_two        the rows in one call and the swap in another, as a program does that does not think of it
    value         of the first row, in place of 300 bytes
    """

    def __init__(
        self, floor: Floor, number: int, *, is_mine: bool = False, in_two: bool = False, value: bytes | None = None
    ) -> None:
        self._floor, self._name, self._is_mine = floor, f"bench-{number}", is_mine
        self._in_two, self._value = in_two, value
        self._next, self._seen = (number + 1) << 40, (1, 1)
        floor.create_reference(1000, self._name, self._seen)

    def __call__(self, _: random.Random) -> None:
        self._next += 2
        new = (self._next, self._seen[1] + 1)
        rows = [object_values(1000, self._next, value=self._value), object_values(1000, self._next + 1)]
        if self._in_two:
            self._floor.write(rows)
            self._floor.swap(1000, self._name, self._seen, new)
        else:
            self._floor.commit(rows, 1000, self._name, self._seen, new)
        self._seen = new

    def close(self) -> None:
        if self._is_mine:
            self._floor.close()


# One writer


def one_writer(bench: Bench) -> Iterator[Row]:
    """Floor, a small and a large catalog by turns; any table of the catalog each time, or always the same one."""
    scale, chance = bench.scale, random.Random(1)
    made = {"small": bench.small, "large": bench.large}
    sizes = {name: one.keys for name, one in made.items()}
    for name, keys in sizes.items():
        plant(bench.rows, name, made[name])
        churn(bench.rows, name, keys, scale.churned if name == "large" else 4 * len(keys))
        say(f"{bench.name}: {len(keys):,} tables are there")
    acts = {
        (name, which): committing(bench.rows, name, choice)
        for name, keys in sizes.items()
        for which, choice in (("any table", any_of(keys)), ("one table", any_of(keys[len(keys) // 2 :][:1])))
    }
    cpu = dict.fromkeys(acts, 0.0)

    def round_of(which: tuple[str, str]) -> float:
        started = time.process_time()
        seconds = timed(repeated, acts[which], scale.commits, chance)
        cpu[which] += time.process_time() - started
        return seconds

    with closing(bench.place.floor("floor")) as floor, bench.place.apart():
        bare = {
            FLOOR: FloorWriter(floor, 0),
            IN_TWO: FloorWriter(floor, 1, in_two=True),
            OF_ITS_SIZE: FloorWriter(floor, 2, value=os.urandom(COMMIT_BYTES)),
        }
        contenders: dict[tuple[str, str], Callable[[], float]] = {
            which: partial(timed, repeated, writer, scale.commits, chance) for which, writer in bare.items()
        }
        contenders |= {which: partial(round_of, which) for which in acts}
        taken = race(contenders, scale.rounds)
    for which in (IN_TWO, OF_ITS_SIZE):
        case = f"one writer, the bare driver, {which[1]}"
        yield Row(case, bench.name, scale.commits / taken[which], "commits/s", scale.commits / taken[FLOOR])
    for which in acts:
        case = f"one writer, {len(sizes[which[0]]):,} tables, {which[1]}"
        yield from paces(bench, case, taken[which] / scale.commits, taken[FLOOR] / scale.commits)
        yield Row(
            f"{case}: CPU of this process", bench.name, cpu[which] / (scale.rounds + 1) / scale.commits * 1000, "ms/commit"
        )
    for kind in ("any table", "one table"):
        case = f"one writer, {kind}: cost at {scale.large:,} tables by that at {scale.small:,}"
        micros = [taken[size, kind] / scale.commits * 1e6 for size in ("large", "small")]
        yield Row(case, bench.name, micros[0], "µs/commit", micros[1], at_most_of_floor(1.5))
    yield from bytes_written(bench)


def paces(bench: Bench, case: str, seconds: float, floor: float) -> Iterator[Row]:
    if bench.name == "memory":
        yield Row(case, bench.name, seconds * 1e6, "µs/commit", floor * 1e6, at_most(300))
    else:
        yield Row(case, bench.name, 1 / seconds, "commits/s", 1 / floor, at_least_of_floor(0.5))


def repeated(act: Act, times: int, chance: random.Random) -> None:
    for _ in range(times):
        act(chance)


def bytes_written(bench: Bench) -> Iterator[Row]:
    """In a run of its own, which nobody times."""
    store, backend = counting_store(bench.store)
    chance = random.Random(2)
    with store:
        for name, keys in (("small", bench.small.keys), ("large", bench.large.keys)):
            act = committing(rows_of(store), name, any_of(keys))
            act(chance)
            backend.take_written()
            times = bench.scale.commits * 5
            repeated(act, times, chance)
            written = backend.take_written()
            case = f"one writer, {len(keys):,} tables, any table: values written"
            yield Row(f"{case}, in KiB", bench.name, sum(one.bytes for one in written) / times / 1024, "KiB/commit")
            yield Row(f"{case}, in rows", bench.name, sum(one.rows for one in written) / times, "rows/commit")


# Many on one reference


def crowds(bench: Bench) -> Iterator[Row]:
    """Threads of one process, then processes: commits of ours and the plain loop by turns, each on a branch of its own."""
    scale = bench.scale
    ours = bench.branch("crowded")
    bench.branch("looped")
    plain = looping(bench.rows, "looped", any_of(bench.small.keys))
    alone, together, loop = Storm(), Storm(), Storm()
    for turn in range(scale.crowd_turns):
        alone.add(storm(writers(1, ours), scale.crowd_seconds / 2))
        for whose, act in ((together, ours), (loop, plain))[:: 1 if turn % 2 else -1]:
            whose.add(storm(writers(scale.threads, act), scale.crowd_seconds))
    case = f"{scale.threads} threads, one reference"
    target = at_least_of_floor(3) if bench.name == "postgresql" else None
    yield Row(f"{case}, against one writer alone", bench.name, together.rate, "commits/s", alone.rate, target)
    yield from against_the_loop(bench, case, together, loop)
    if bench.place.is_shared:
        yield from processes(bench)


def processes(bench: Bench) -> Iterator[Row]:
    scale = bench.scale
    url = bench.place.url("store")
    together, loop = Storm(), Storm()
    with Crowd(scale.processes, acts_of_a_process, url, scale.small) as crowd:
        for turn in range(scale.crowd_turns):
            for whose, act in ((together, "ours"), (loop, "plain"))[:: 1 if turn % 2 else -1]:
                whose.add(crowd.storm(act, scale.crowd_seconds))
    yield from against_the_loop(bench, f"{scale.processes} processes, one reference", together, loop)


def acts_of_a_process(url: str, tables: int) -> dict[str, Act]:
    """Runs in a process of its own, which keeps the store open and has read both heads before it begins."""
    rows, keys, chance = rows_of(open_store(url)), table_keys(tables), random.Random()
    acts = {
        "ours": committing(rows, "crowded", any_of(keys)),
        "plain": looping(rows, "looped", any_of(keys)),
    }
    for act in acts.values():
        act(chance)
    return acts


def against_the_loop(bench: Bench, case: str, ours: Storm, plain: Storm) -> Iterator[Row]:
    """The floor of these rows is the plain loop."""
    name = bench.name
    yield Row(f"{case}, against the plain loop", name, ours.rate, "commits/s", plain.rate, at_least_of_floor(1))
    for what, share, target in (("median", 0.5, None), ("p99", 0.99, at_most_of_floor(1)), ("longest", 1, at_most_of_floor(1))):
        waits = (ours.percentile(share) * 1000, plain.percentile(share) * 1000)
        yield Row(f"{case}: wait, {what}", name, waits[0], "ms", waits[1], target)
    yield Row(f"{case}: the unluckiest of them", name, ours.least_rate, "commits/s", plain.least_rate)
    yield Row(f"{case}: failures", name, ours.failures.total(), "failures", plain.failures.total(), at_most(0))
    bench.curves.append(
        Curve(
            name=f"waits-{name}-{'threads' if 'threads' in case else 'processes'}",
            title=f"How long commits wait: {case}, {name}",
            x="share of commits that wait at most so long",
            y="ms",
            x_scale="share",
            y_scale="log",
            series=[wait_series("combined commits", ours), wait_series("plain loop", plain)],
        )
    )


def wait_series(label: str, of: Storm) -> Series:
    """Percentiles, as far as there are commits for them, and the longest wait at the share that one commit is."""
    known = [share for share in SHARES if (1 - share) * len(of.waits) >= 1]
    points = [(share, of.percentile(share) * 1000) for share in known]
    return Series(label, [*points, (1 - 1 / len(of.waits), max(of.waits) * 1000)])


# Many apart


def many_references(bench: Bench) -> Iterator[Row]:
    """A thread for each reference, against as many threads of the bare driver with a connection and a reference each."""
    scale = bench.scale
    acts = [bench.branch(f"own-{number}") for number in range(scale.threads)]
    ours, bare = Storm(), Storm()
    with closing(bench.place.floor("many")) as shared:  # makes the tables
        for turn in range(scale.turns):
            ours.add(storm([lambda act=act: act for act in acts], scale.seconds))  # type: ignore[misc]
            first = turn * scale.threads
            each = [partial(floor_writer, bench.place, shared, first + number) for number in range(scale.threads)]
            bare.add(storm(each, scale.seconds))
    case = f"{scale.threads} threads, {scale.threads} references"
    yield Row(case, bench.name, ours.rate, "commits/s", bare.rate)
    yield Row(f"{case}: wait, p99", bench.name, ours.percentile(0.99) * 1000, "ms", bare.percentile(0.99) * 1000)
    yield Row(f"{case}: failures", bench.name, ours.failures.total(), "failures", bare.failures.total(), at_most(0))


def floor_writer(place: Place, shared: Floor, number: int) -> Act:
    """On the thread that will use it, for SQLite's connections stay on theirs."""
    return FloorWriter(place.floor("many") if place.is_shared else shared, number, is_mine=place.is_shared)


# Independence


@contextmanager
def control_stores(bench: Bench) -> Iterator[dict[str, Store]]:
    """What takes the same share of the processor and of the disk, and shares no queue and no lock of ours."""
    with ExitStack() as stack:
        found = {CONTROL: stack.enter_context(open_store(bench.place.url("control")))}
        if bench.place.is_shared:
            found["the same database by a store of its own"] = stack.enter_context(open_store(bench.place.url("store")))
        yield found


def independence(bench: Bench) -> Iterator[Row]:
    """How long a commit to one reference takes while many write to another one, and while they write to another store."""
    scale = bench.scale
    probe = bench.branch("probed")
    storms = {"none": None, "the same realm": bench.branch("stormy")}
    storms["another realm"] = bench.branch("stormy", rows_of(bench.store, OTHER))
    with control_stores(bench) as controls:
        for what, store in controls.items():
            storms[what] = bench.branch("controlled", rows_of(store, OTHER))
        probed = {what: Storm() for what in storms}
        rates = dict.fromkeys(storms, 0.0)
        for _ in range(scale.turns):
            for what, act in storms.items():
                with background(writers(scale.threads, act) if act else []) as done:
                    time.sleep(scale.seconds / 10)
                    before = sum(done)
                    probed[what].add(storm(writers(1, probe), scale.seconds / 2))
                    rates[what] += (sum(done) - before) / (scale.seconds / 2) / scale.turns
    yield from told_apart(bench, probed, rates)


def told_apart(bench: Bench, probed: dict[str, Storm], rates: dict[str, float]) -> Iterator[Row]:
    name, case = bench.name, "commit to a reference of its own"
    control = probed[CONTROL]
    for what, of in probed.items():
        shown = f"{case}, no storm" if what == "none" else f"{case}, storm on {what}"
        is_storm = "realm" in what
        for share, said in ((0.5, "median"), (0.99, "p99")):
            floor = control.percentile(share) * 1000 if is_storm else None
            target = at_most_of_floor(1.5) if is_storm and share == 0.5 else None
            yield Row(f"{shown}: {said}", name, of.percentile(share) * 1000, "ms", floor, target)
        if what != "none":
            yield Row(f"{shown}: that storm meanwhile", name, rates[what], "commits/s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
