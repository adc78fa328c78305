"""The client beside pyiceberg's own SqlCatalog, on the same databases: create, load, commit, list; one writer and many.

Both run pyiceberg's code and write a metadata.json for every version into a folder of the same disk, which neither waits for; both
databases wait for the disk. A SqlCatalog then moves one row from file to file. Headwater commits to a branch, with history, claims on the
table's place, and the metadata itself, from which it loads tables without reading the file.
Run it with ``make bench SUITE=client``; ``--quick`` is small, ``--backends=sqlite`` and ``--only=one,many`` measure some only.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from benchmarks.disk import working_folder
from benchmarks.options import Options, others_are_there, read_options
from benchmarks.places import Place, open_places
from benchmarks.report import Row, at_most, say, show, write_results
from benchmarks.sql_catalogs import NAMESPACE, SCHEMA, insert_tables, open_sql_catalog, warehouse_of
from benchmarks.storms import Act, Storm, storm
from benchmarks.timing import race, timed
from pyiceberg.catalog import Catalog as IcebergCatalog

from headwater.catalogs import Catalogs, ContentKey, IcebergTable, Namespace, Put
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.store import Store, open_store

SUITE = "client"
PARTS = ("one", "many")
DATABASES = ("sqlite", "postgresql")
OURS, THEIRS = "headwater", "SqlCatalog"
FULL_OF_TABLES = "listed"


@dataclass(frozen=True)
class Scale:
    listed: int
    """Tables of the namespace that is listed."""
    calls: int
    """Of a round of one writer."""
    rounds: int
    writers: int
    turns: int
    seconds: float
    """Of one turn of many writers."""


FULL = Scale(listed=10_000, calls=20, rounds=9, writers=16, turns=3, seconds=4)
QUICK = Scale(listed=200, calls=3, rounds=2, writers=4, turns=1, seconds=0.3)


@dataclass
class Contender:
    """A catalog, and names for what is made in it."""

    catalog: IcebergCatalog
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_name(self) -> str:
        return f"{NAMESPACE}.made{next(self.numbers)}"

    def create(self, _: random.Random) -> None:
        self.catalog.create_table(self.new_name(), SCHEMA)

    def load(self, chance: random.Random) -> None:
        self.catalog.load_table(f"{NAMESPACE}.own{chance.randrange(4)}")

    def list(self, _: random.Random) -> None:
        self.catalog.list_tables(FULL_OF_TABLES)

    def committing(self, name: str) -> Act:
        """Commits of a property to a table as its writer knows it, which loads it again when it was beaten."""
        table = self.catalog.load_table(name)

        def act(chance: random.Random) -> None:
            try:
                with table.transaction() as transaction:
                    transaction.set_properties(written_by=str(chance.random()))
            except Exception:
                table.refresh()
                raise

        return act


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    found: list[Row] = []
    versions: dict[str, str] = {}
    wanted = [name for name in DATABASES if name in options.backends]
    if not others_are_there():
        return 0
    with working_folder() as folder, open_places(folder, wanted) as places:
        for place in places:
            versions |= place.versions()
            found += measure(place, folder, scale, options)
    print(show(found))
    settings = {"tables": scale.listed, "rounds": scale.rounds, "seconds": scale.seconds, "load_before": options.load}
    is_part = options.is_quick or bool(options.only) or wanted != list(DATABASES)
    kept = write_results(SUITE, found, settings=settings, is_quick=is_part, versions=versions, folder=options.into)
    print(f"\nwritten to {kept}")
    return 0


def measure(place: Place, folder: Path, scale: Scale, options: Options) -> Iterator[Row]:
    """All that one database is asked."""
    with contenders(place, folder, scale) as each:
        for part, case in (("one", one_writer), ("many", many_writers)):
            if options.wants(part):
                say(f"{place.name}: {case.__name__.replace('_', ' ')}")
                yield from case(place, each, scale)


@contextmanager
def contenders(place: Place, folder: Path, scale: Scale) -> Iterator[dict[str, Contender]]:
    """Both, with the same namespaces and tables."""
    name = f"client-{place.name}"
    with open_store(place.url("client")) as store, closing(open_sql_catalog(place, folder, name)) as theirs:
        ours = made_by_us(store, warehouse_of(folder, f"headwater-{place.name}"), scale.listed)
        insert_tables(theirs, [f"t{number:05}" for number in range(scale.listed)], namespace=FULL_OF_TABLES)
        each = {OURS: Contender(ours), THEIRS: Contender(theirs)}
        for one in each.values():
            one.catalog.create_namespace_if_not_exists(NAMESPACE)
            for number in range(max(4, scale.writers)):
                one.catalog.create_table(f"{NAMESPACE}.own{number}", SCHEMA)
        yield each


def made_by_us(store: Store, warehouse: Path, listed: int) -> HeadwaterCatalog:
    """An active realm with a catalog in it, and a namespace full of tables."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("bench"), RealmState.INITIALIZING)
    realms.open_realm_for("bench", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("bench"), RealmState.ACTIVE)
    catalogs = Catalogs(realms.open_realm("bench"))
    catalogs.create_catalog("lake", base_location=warehouse.as_uri())
    keys = [ContentKey.of(FULL_OF_TABLES, f"t{number:05}") for number in range(listed)]
    tables = [Put(key, IcebergTable(metadata_location=f"s3://lake/{key}/{uuid4()}.metadata.json")) for key in keys]
    catalogs.open_catalog("lake").commit(None, [Put(ContentKey.of(FULL_OF_TABLES), Namespace()), *tables])
    return HeadwaterCatalog.on(store, realm="bench", catalog="lake")


def one_writer(place: Place, each: dict[str, Contender], scale: Scale) -> Iterator[Row]:
    """By turns. The floor of these rows is the SqlCatalog."""
    chance = random.Random(1)
    acts: dict[str, Callable[[Contender], Act]] = {
        "create": lambda one: one.create,
        "load": lambda one: one.load,
        "commit": lambda one: one.committing(f"{NAMESPACE}.own0"),
        f"list {scale.listed:,} tables": lambda one: one.list,
    }
    for case, act_of in acts.items():
        rounds = {name: rounds_of(act_of(one), scale.calls, chance) for name, one in each.items()}
        taken = race(rounds, scale.rounds)
        rates = {name: scale.calls / seconds for name, seconds in taken.items()}
        yield Row(f"one writer: {case}", place.name, rates[OURS], "calls/s", rates[THEIRS])


def rounds_of(act: Act, calls: int, chance: random.Random) -> Callable[[], float]:
    def run() -> None:
        for _ in range(calls):
            act(chance)

    return lambda: timed(run)


def many_writers(place: Place, each: dict[str, Contender], scale: Scale) -> Iterator[Row]:
    """Threads of one process: each on a table of its own, all on one table, each making tables. What fails is not tried again."""
    writers = range(scale.writers)
    cases: dict[str, Callable[[Contender], list[Callable[[], Act]]]] = {
        "a table each": lambda one: [lambda name=f"{NAMESPACE}.own{number}": one.committing(name) for number in writers],  # type: ignore[misc]
        "one table": lambda one: [lambda: one.committing(f"{NAMESPACE}.own0") for _ in writers],
        "new tables": lambda one: [lambda: one.create for _ in writers],
    }
    for case, writers_of in cases.items():
        found = {name: Storm() for name in each}
        for turn in range(scale.turns):
            for name, one in list(each.items())[:: 1 if turn % 2 else -1]:
                found[name].add(storm(writers_of(one), scale.seconds))
        yield from told(place, f"{scale.writers} writers, {case}", found[OURS], found[THEIRS])


def told(place: Place, case: str, ours: Storm, theirs: Storm) -> Iterator[Row]:
    yield Row(case, place.name, ours.rate, "calls/s", theirs.rate)
    for what, share in (("median", 0.5), ("p99", 0.99)):
        waits = (ours.percentile(share) * 1000, theirs.percentile(share) * 1000)
        yield Row(f"{case}: wait, {what}", place.name, waits[0], "ms", waits[1])
    shares = [100 * one.failures.total() / max(1, len(one.waits)) for one in (ours, theirs)]
    yield Row(f"{case}: calls that failed", place.name, shares[0], "%", shares[1], at_most(0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
