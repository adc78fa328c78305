"""Indexes: what a commit of one key writes, how large a catalog lies, how fast it is read, and what others offer.

Run it with ``make bench SUITE=index``; ``--quick`` is small and shows that it works, ``--backends=memory,sqlite`` and
``--only=bytes,reads`` measure some only, ``--into=FOLDER`` keeps the figures there.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.counting import Counted, CountingBackend, counting_store
from benchmarks.disk import working_folder
from benchmarks.options import Options, others_are_there, read_options
from benchmarks.pictures import Curve, Series
from benchmarks.places import Place, open_places
from benchmarks.report import Row, Target, at_least, at_most, at_most_of_floor, say, show, write_results
from benchmarks.tables import (
    CONTENT,
    VALUE_BYTES,
    Choice,
    Made,
    any_of,
    churn,
    commit_one,
    hot,
    make,
    one_of_few,
    plant,
    table_keys,
    uuid_keys,
)
from benchmarks.timing import median, timed

from headwater.commits import read_head
from headwater.index import Index
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store, open_store

SUITE = "index"
ANY = "any"
"""The backend of what never reaches a database, or is the same on each."""
REALM, KEY = RealmId("bench"), RealmKey(1002)
BRANCH = "main"
PARTS = ("bytes", "curve", "size", "reads", "contenders")
DAYS = 90
"""Over which the tables of a catalog that was not imported were written last."""
KIB = 1024
TRIED_ROUNDS = 5


@dataclass(frozen=True)
class Scale:
    sizes: tuple[int, ...]
    """Entries of the indexes that commits are made to; between the first and the last, costs are compared."""
    commits: int
    rounds: int
    """In which these commits are made, by turns on all sizes."""
    tried: int
    """Entries of the index that limits are tried on, and commits to each."""
    tries: int
    embedded: tuple[int, ...]
    """Limits in KiB."""
    stripes: tuple[int, ...]
    cold: int
    """Cold point reads."""
    lookups: int
    at_once: int
    """Keys of one ``get_many``."""
    listed: int
    """Tables of the catalogs that others list."""

    @property
    def entries(self) -> int:
        return self.sizes[-1]


FULL = Scale(
    sizes=(1000, 10_000, 100_000, 1_000_000),
    commits=10_000,
    rounds=10,
    tried=100_000,
    tries=1500,
    embedded=(4, 8, 16, 32, 64),
    stripes=(4, 8, 16, 32, 64, 128),
    cold=200,
    lookups=200_000,
    at_once=1000,
    listed=100_000,
)
QUICK = Scale(
    sizes=(200, 2000),
    commits=40,
    rounds=2,
    tried=1000,
    tries=20,
    embedded=(4, 16),
    stripes=(4, 16),
    cold=5,
    lookups=2000,
    at_once=100,
    listed=500,
)


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    found: list[Row] = []
    curves: list[Curve] = []
    versions: dict[str, str] = {}
    for part, case in (("bytes", one_key_commits), ("curve", limits), ("size", sizes)):
        if options.wants(part):
            say(case.__name__.replace("_", " "))
            found += case(scale, curves)
    with working_folder() as folder, open_places(folder, options.backends) as places:
        if options.wants("reads"):
            made = make(table_keys(scale.entries))
            for place in places:
                say(f"{place.name}: reads of {scale.entries:,} entries")
                versions |= place.versions()
                found += reads(place, scale, made)
        if options.wants("contenders") and others_are_there():
            from benchmarks.others import lists_and_trees, versions_of_others

            versions |= versions_of_others()
            found += lists_and_trees(folder, places, scale.listed, scale.entries, scale.tries)
    print(show(found))
    kept = write_results(
        SUITE,
        found,
        settings=settings_of(scale, options),
        is_quick=options.is_part,
        versions=versions,
        folder=options.into,
        curves=curves,
    )
    print(f"\nwritten to {kept}")
    return 0


def settings_of(scale: Scale, options: Options) -> dict[str, object]:
    shipped = Settings()
    return {
        "entries": scale.entries,
        "commits": scale.commits,
        "index_embedded_bytes": shipped.index_embedded_bytes,
        "index_stripe_bytes": shipped.index_stripe_bytes,
        "load_before": options.load,
    }


def rows_of(store: Store) -> RealmStore:
    return store.rows(REALM, KEY)


def index_of(rows: RealmStore) -> Index:
    found = read_head(rows, BRANCH)
    assert found is not None
    return found.index(CONTENT)


# Commits of one key


class Branch:
    """A catalog in memory, in its steady state, whose commits are counted."""

    def __init__(self, made: Made, settings: Settings | None = None) -> None:
        whole = open_store("memory://", settings=settings)
        plant(rows_of(whole), BRANCH, made)
        store, self._backend = counting_store(whole)
        self._rows = rows_of(store)
        churn(self._rows, BRANCH, made.keys, steady(len(made.keys)))
        self._backend.take_written()
        self.written: list[Counted] = []
        self.seconds: list[float] = []
        """Of one commit, on average over each round."""

    def commit(self, choice: Choice, times: int, chance: random.Random) -> None:
        def run() -> None:
            for _ in range(times):
                commit_one(self._rows, BRANCH, choice(chance), chance)

        self.seconds.append(timed(run) / times)
        self.written += self._backend.take_written()

    def forget(self) -> None:
        """Everything but the figures: ten thousand commits take hundreds of MiB."""
        del self._rows, self._backend

    @property
    def mean_bytes(self) -> float:
        return sum(one.bytes for one in self.written) / len(self.written)

    @property
    def mean_rows(self) -> float:
        return sum(one.rows for one in self.written) / len(self.written)

    def bytes_at(self, share: float) -> int:
        ordered = sorted(one.bytes for one in self.written)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def micros(self) -> float:
        """The mean of the better half of the rounds: the others were disturbed by what else the machine did."""
        calm = sorted(self.seconds)[: (len(self.seconds) + 1) // 2]
        return sum(calm) / len(calm) * 1e6


def choices(keys: Sequence[bytes]) -> dict[str, Choice]:
    return {"any key": any_of(keys), "90% on 100 keys": hot(keys, 100), "all on 10 keys": one_of_few(keys, 10)}


def one_key_commits(scale: Scale, curves: list[Curve]) -> Iterator[Row]:
    """Indexes of all sizes by turns, in memory, at shipped limits."""
    made = {size: make(table_keys(size)) for size in scale.sizes}
    cost: dict[str, dict[int, Branch]] = {}
    for kind in choices(made[scale.sizes[0]].keys):
        branches = {size: Branch(one) for size, one in made.items()}
        picks = {size: choices(one.keys)[kind] for size, one in made.items()}
        chance = random.Random(3)
        for number in range(scale.rounds):
            for size in scale.sizes[:: 1 if number % 2 else -1]:
                branches[size].commit(picks[size], scale.commits // scale.rounds, chance)
        cost[kind] = branches
        say(f"{kind}: {scale.commits:,} commits to {', '.join(f'{size:,}' for size in scale.sizes)} entries")
        for size, branch in branches.items():
            yield from costs_of(branch, f"commit of one key, {kind}, {size:,} entries", is_largest=size == scale.entries)
            branch.forget()
        yield from growth_of_cost(branches, f"commit of one key, {kind}: {scale.entries:,} entries by {scale.sizes[0]:,}")
    curves += cost_curves(scale, cost)


def steady(size: int) -> int:
    """How many entries to change until an index looks as it will look ever after."""
    return min(4 * size, 20_000 + size // 20)


def costs_of(branch: Branch, case: str, *, is_largest: bool) -> Iterator[Row]:
    target = at_most(40) if is_largest else None
    yield Row(f"{case}: mean", ANY, branch.mean_bytes / KIB, "KiB/commit", target=target)
    yield Row(f"{case}: p99", ANY, branch.bytes_at(0.99) / KIB, "KiB/commit", target=at_most(300) if is_largest else None)
    yield Row(f"{case}: largest", ANY, branch.bytes_at(1) / KIB, "KiB/commit")
    yield Row(f"{case}: rows", ANY, branch.mean_rows, "rows/commit")
    yield Row(f"{case}: time, in memory", "memory", branch.micros, "µs/commit")


def growth_of_cost(branches: dict[int, Branch], case: str) -> Iterator[Row]:
    """The floor of these rows is the smallest index."""
    small, large = branches[min(branches)], branches[max(branches)]
    yield Row(f"{case}: bytes", ANY, large.mean_bytes / KIB, "KiB/commit", small.mean_bytes / KIB, at_most_of_floor(1.5))
    yield Row(f"{case}: time, in memory", "memory", large.micros, "µs/commit", small.micros, at_most_of_floor(1.5))


def cost_curves(scale: Scale, cost: dict[str, dict[int, Branch]]) -> list[Curve]:
    def series(of: Callable[[Branch], float]) -> list[Series]:
        return [Series(kind, [(size, of(branch)) for size, branch in found.items()]) for kind, found in cost.items()]

    def curve(name: str, title: str, y: str, of: Callable[[Branch], float]) -> Curve:
        return Curve(name, title, "entries of the index", y, series(of), x_scale="log", marks=list(scale.sizes))

    return [
        curve("index-bytes", "What a commit of one key writes", "KiB", lambda branch: branch.mean_bytes / KIB),
        curve("index-time", "What a commit of one key takes, in memory", "µs", lambda branch: branch.micros),
    ]


# Limits


def limits(scale: Scale, curves: list[Curve]) -> Iterator[Row]:
    """The same commits at other limits, to keys anywhere: bytes and time in memory; all embedded sizes by turns."""
    keys, chance = table_keys(scale.tried), random.Random(4)
    found: dict[tuple[int, int], Branch] = {}
    for stripe in scale.stripes:
        say(f"stripes of {stripe} KiB")
        branches = {embedded: Branch(make(keys, at), at) for embedded, at in settings_with(scale.embedded, stripe)}
        for _ in range(TRIED_ROUNDS):
            for branch in branches.values():
                branch.commit(any_of(keys), scale.tries // TRIED_ROUNDS, chance)
        for embedded, branch in branches.items():
            branch.forget()
            found[embedded, stripe] = branch
            case = f"commit of one key, {scale.tried:,} entries, embedded {embedded} KiB, stripes {stripe} KiB"
            yield Row(f"{case}: mean", ANY, branch.mean_bytes / KIB, "KiB/commit")
            yield Row(f"{case}: time, in memory", "memory", branch.micros, "µs/commit")
    curves += limit_curves(scale, found)


def settings_with(embedded: Sequence[int], stripe: int) -> list[tuple[int, Settings]]:
    return [(size, Settings(index_embedded_bytes=size * KIB, index_stripe_bytes=stripe * KIB)) for size in embedded]


def limit_curves(scale: Scale, found: dict[tuple[int, int], Branch]) -> list[Curve]:
    def series(of: Callable[[Branch], float]) -> list[Series]:
        return [
            Series(f"stripes of {stripe} KiB", [(embedded, of(found[embedded, stripe])) for embedded in scale.embedded])
            for stripe in scale.stripes
        ]

    def curve(name: str, title: str, y: str, of: Callable[[Branch], float]) -> Curve:
        title = f"{title} by the limit of the embedded part, {scale.tried:,} entries"
        return Curve(name, title, "KiB embedded", y, series(of), x_scale="log", marks=list(scale.embedded))

    return [
        curve("limits-bytes", "What a commit writes", "KiB", lambda branch: branch.mean_bytes / KIB),
        curve("limits-time", "What a commit takes in memory", "µs", lambda branch: branch.micros),
    ]


# Size


def sizes(scale: Scale, _: list[Curve]) -> Iterator[Row]:
    """Of an index that was built at once: all rows with their envelopes, the commit's included."""
    kinds: list[tuple[str, Callable[[int], list[bytes]], float, Target | None]] = [
        ("hierarchical keys", table_keys, 0, at_most(6)),
        (f"hierarchical keys, written over {DAYS} days", table_keys, DAYS, at_most(6)),
        ("random UUID keys", uuid_keys, 0, None),
    ]
    for what, keys_of, days, target in kinds:
        keys = keys_of(scale.entries)
        with open_store("memory://") as whole:
            store, backend = counting_store(whole)
            made = make(keys, days=days)
            plant(rows_of(store), BRANCH, made)
        case = f"index of {scale.entries:,} entries, {what}"
        own = backend.written.bytes - len(keys) * VALUE_BYTES
        yield Row(f"{case}: beyond the value", ANY, own / len(keys), "bytes/entry", sum(map(len, keys)) / len(keys), target)
        yield Row(f"{case}: in all", ANY, backend.written.bytes / KIB**2, "MiB")
        yield Row(f"{case}: objects", ANY, len(made.stored.objects), "objects")
        yield Row(f"{case}: put all", ANY, len(keys) / made.put_seconds, "entries/s")
        yield Row(f"{case}: make stripes of them", ANY, len(keys) / made.stored_seconds, "entries/s")
        yield Row(f"{case}: build", ANY, made.put_seconds + made.stored_seconds, "s")


# Reads


def reads(place: Place, scale: Scale, made: Made) -> Iterator[Row]:
    keys = made.keys
    with open_store(place.url("index")) as store:
        plant(rows_of(store), BRANCH, made)
        churn(rows_of(store), BRANCH, keys, steady(scale.entries))
        yield from cold_reads(place, store, keys, scale)
        if place.name == "memory":
            yield from warm_reads(store, keys, scale)


def cold_reads(place: Place, store: Store, keys: list[bytes], scale: Scale) -> Iterator[Row]:
    """One key by a process that remembers nothing: from the reference to the value."""
    other, backend = counting_store(store)
    chance, read, seconds = random.Random(6), [], []
    with other:
        rows = rows_of(other)
        for key in chance.sample(keys, scale.cold):
            other.cache.clear()
            backend.read = Counted()
            seconds.append(timed(lambda key=key: looked_up(rows, key)))
            read.append(backend.read)
        listing, listed = list_cold(other, backend, rows, keys)
    case = f"cold read of one key of {scale.entries:,}"
    yield Row(f"{case}: rows, most", place.name, max(one.rows for one in read), "rows", target=at_most(3))
    yield Row(f"{case}: bytes, most", place.name, max(one.bytes for one in read) / KIB, "KiB", target=at_most(300))
    yield Row(f"{case}: bytes, mean", place.name, sum(one.bytes for one in read) / len(read) / KIB, "KiB")
    yield Row(f"{case}: time, median", place.name, median(seconds) * 1e6, "µs")
    yield Row(f"cold list of {scale.entries:,} keys", place.name, len(keys) / listing, "keys/s")
    yield Row(f"cold list of {scale.entries:,} keys: read", place.name, listed.bytes / KIB**2, "MiB")


def looked_up(rows: RealmStore, key: bytes) -> None:
    assert index_of(rows).get(key) is not None


def list_cold(store: Store, backend: CountingBackend, rows: RealmStore, keys: list[bytes]) -> tuple[float, Counted]:
    store.cache.clear()
    backend.read = Counted()
    seconds = timed(lambda: deque(index_of(rows).range(), maxlen=0))
    assert sum(1 for _ in index_of(rows).range()) == len(keys)
    return seconds, backend.read


def warm_reads(store: Store, keys: list[bytes], scale: Scale) -> Iterator[Row]:
    """Everything that is asked for was read before."""
    chance = random.Random(7)
    index = index_of(rows_of(store))
    asked = chance.choices(keys, k=scale.lookups)
    several = [chance.sample(keys, scale.at_once) for _ in range(max(1, scale.lookups // scale.at_once // 4))]

    def look_up() -> None:
        get = index.get
        for key in asked:
            get(key)

    look_up()
    case = f"warm, {scale.entries:,} entries"
    rate = best(look_up)
    yield Row(f"{case}: look keys up one by one", ANY, len(asked) / rate, "lookups/s", target=at_least(100_000))
    rate = best(lambda: [index.get_many(some) for some in several])
    yield Row(f"{case}: get_many of {scale.at_once:,} keys", ANY, len(several) * scale.at_once / rate, "lookups/s")
    rate = best(lambda: deque(index.range(), maxlen=0))
    yield Row(f"{case}: list all", ANY, len(keys) / rate, "keys/s", target=at_least(1_000_000))
    rate = best(lambda: deque(index.range(reverse=True), maxlen=0))
    yield Row(f"{case}: list all backwards", ANY, len(keys) / rate, "keys/s")
    prefixes = [key[: key.rindex(b"\0") + 1] for key in chance.sample(keys, min(len(keys), 200))]
    listed: list[int] = []
    rate = best(lambda: listed.append(sum(sum(1 for _ in index.prefix(one)) for one in prefixes)))
    yield Row(f"{case}: list by namespace", ANY, listed[-1] / rate, "keys/s")


def best(action: Callable[[], object]) -> float:
    """The middle one of three."""
    return median(timed(action) for _ in range(3))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
