"""Catalogs: pages of a large one, planning commits on it, comparing its states, and reading its history.

Run it with ``make bench SUITE=catalog``; ``--quick`` is small and shows that it works, ``--backends=memory,sqlite`` and
``--only=pages,plans`` measure some only, ``--into=FOLDER`` keeps the figures there.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from benchmarks.disk import working_folder
from benchmarks.options import Options, read_options
from benchmarks.places import Place, open_places
from benchmarks.report import Row, at_most, say, show, write_results
from benchmarks.tables import limits_of, table_keys
from benchmarks.timing import median, timed

from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    CONTENT,
    IDS,
    Catalog,
    Catalogs,
    ContentKey,
    ContentOperation,
    ContentType,
    ContentValue,
    Delete,
    IcebergTable,
    LogFilter,
    Namespace,
    Put,
    RefKind,
    content_digest,
    plan_commit,
)
from headwater.catalogs.content_operations import content_view
from headwater.catalogs.registry import content_reference
from headwater.clock import Micros
from headwater.commits import Commit
from headwater.index import Index, IndexContainer, IndexEditor, IndexValue
from headwater.store import RealmId, RealmKey, RealmStore, Store, StoredObject, open_store

SUITE = "catalog"
REALM, KEY = RealmId("bench"), RealmKey(1002)
PARTS = ("pages", "plans", "diffs", "history")
PAGE = 100
MILLIS = 1000
WRITTEN_AT_ONCE = 500


@dataclass(frozen=True)
class Scale:
    keys: int
    operations: int
    changed: int
    """Keys that differ between the states that are compared."""
    commits: int
    """Of the history that is searched."""
    rounds: int


FULL = Scale(keys=1_000_000, operations=1000, changed=100, commits=5000, rounds=25)
QUICK = Scale(keys=2000, operations=100, changed=10, commits=60, rounds=3)


@dataclass(frozen=True)
class Lake:
    """A catalog, and the keys of its tables in order."""

    place: Place
    scale: Scale
    catalog: Catalog
    tables: Sequence[ContentKey]

    @property
    def size(self) -> str:
        return f"{self.scale.keys:,} keys"

    def some(self, chance: random.Random, count: int) -> list[ContentKey]:
        return chance.sample(self.tables, count)

    def a_namespace(self, chance: random.Random) -> ContentKey:
        found = chance.choice(self.tables).parent
        assert found is not None
        return found


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    found: list[Row] = []
    versions: dict[str, str] = {}
    keys = [ContentKey.from_index(key) for key in table_keys(scale.keys)]
    with working_folder() as folder, open_places(folder, options.backends) as places:
        for place in places:
            versions |= place.versions()
            with open_store(place.url("catalog")) as store:
                say(f"{place.name}: a catalog of {scale.keys:,} tables")
                found += measure(Lake(place, scale, planted(store, keys), keys), options)
    print(show(found))
    settings = {"keys": scale.keys, "operations": scale.operations, "rounds": scale.rounds, "load_before": options.load}
    kept = write_results(SUITE, found, settings=settings, is_quick=options.is_part, versions=versions, folder=options.into)
    print(f"\nwritten to {kept}")
    return 0


def measure(lake: Lake, options: Options) -> Iterator[Row]:
    for part, case in (("pages", pages), ("plans", plans), ("diffs", diffs), ("history", history)):
        if options.wants(part):
            say(f"{lake.place.name}: {part}")
            yield from case(lake)


# The cases


def pages(lake: Lake) -> Iterator[Row]:
    """Warm: the store has read a page of that namespace before, as one does that serves a catalog."""
    chance = random.Random(1)
    catalog, name = lake.catalog, lake.place.name

    def page(reverse: bool) -> Callable[[], object]:
        space = lake.a_namespace(chance)
        catalog.entries(prefix=space, limit=PAGE, reverse=reverse)
        return lambda: catalog.entries(prefix=space, limit=PAGE, reverse=reverse)

    for how, reverse in (("", False), (", backwards", True)):
        millis = middle(lake, lambda backwards=reverse: page(backwards))
        yield Row(f"first page of {PAGE} by prefix{how}, {lake.size}", name, millis, "ms", None, at_most(20))
    yield Row(f"content of {PAGE} keys in one call", name, middle(lake, lambda: asking(lake, chance)), "ms")
    ids = [entry.content_id for entry in catalog.entries(start=lake.tables[len(lake.tables) // 2], limit=PAGE).entries]
    yield Row(
        f"keys of {PAGE} content ids in one call", name, middle(lake, lambda: lambda: catalog.find_by_id(None, ids)), "ms"
    )


def asking(lake: Lake, chance: random.Random) -> Callable[[], object]:
    keys = lake.some(chance, PAGE)
    return lambda: lake.catalog.get_contents(None, keys)


def plans(lake: Lake) -> Iterator[Row]:
    """Half of the operations move a table's pointer, a quarter create one, a quarter delete one; anywhere in the catalog."""
    chance, scale = random.Random(2), lake.scale
    name, many = lake.place.name, f"{scale.operations:,} operations, {lake.size}"

    def planned() -> Callable[[], object]:
        wanted = operations(lake, chance, "main")
        head = lake.catalog.resolve()
        assert head is not None
        keys = {key for one in wanted for key in (one.key, *one.key.ancestors())}
        content_view(head.index(CONTENT), keys)

        def plan() -> object:
            view = content_view(head.index(CONTENT), keys)
            return plan_commit(view, view, wanted)

        return plan

    target = at_most(100) if name == "memory" else None
    yield Row(f"plan_commit with its views, {many}", name, middle(lake, planned), "ms", None, target)

    def committed() -> Callable[[], object]:
        wanted = operations(lake, chance, "planned")
        return lambda: lake.catalog.commit("planned", wanted)

    lake.catalog.create_branch("planned")
    yield Row(f"whole commit, {many}", name, middle(lake, committed, rounds=3), "ms")


def operations(lake: Lake, chance: random.Random, branch: str) -> list[ContentOperation]:
    count = lake.scale.operations
    there = [*lake.catalog.get_contents(branch, lake.some(chance, 3 * count // 4)).items()]
    moved = [Put(key, table(f"{key.name}/{chance.getrandbits(32)}", content.id)) for key, content in there[: count // 2]]
    deleted = [Delete(key) for key, _ in there[count // 2 :]]
    created = [Put(lake.a_namespace(chance).child(f"new_{chance.getrandbits(40):x}"), table("new")) for _ in range(count // 4)]
    return [*moved, *deleted, *created]


def diffs(lake: Lake) -> Iterator[Row]:
    """Of a state and one in which a few keys hold something else, all over the catalog."""
    chance, catalog, scale = random.Random(3), lake.catalog, lake.scale
    catalog.create_branch("other", "main")
    there = catalog.get_contents("main", lake.some(chance, scale.changed))
    catalog.commit("other", [Put(key, table(f"other/{key.name}", content.id)) for key, content in there.items()])
    case = f"difference of {scale.changed} among {lake.size}"
    yield Row(case, lake.place.name, middle(lake, lambda: lambda: catalog.diff("main", "other")), "ms")
    first = middle(lake, lambda: lambda: catalog.diff("main", "other", limit=10))
    yield Row(f"{case}, the first 10 of them", lake.place.name, first, "ms")


def history(lake: Lake) -> Iterator[Row]:
    """A branch whose commits move one table each: searched whole for what is not there, walked back, and followed by one key."""
    catalog, name, count = lake.catalog, lake.place.name, lake.scale.commits
    catalog.create_branch("long")
    key = lake.tables[0]
    for number in range(count):
        there = catalog.get_content("long", key)
        assert there is not None
        catalog.commit("long", [Put(key, table(f"{number}", there.id))], authors=["ann"])
    nobody = LogFilter(author="nobody")
    each = middle(lake, lambda: lambda: list(catalog.log("long", where=nobody))) * MILLIS / count
    yield Row(f"log searched by author, {count:,} commits", name, each, "µs/commit")
    each = middle(lake, lambda: lambda: list(catalog.history(key, "long")), rounds=3) * MILLIS / count
    yield Row(f"history of one key, {count:,} changes", name, each, "µs/commit")
    yield Row(f"long~{count - 1}", name, middle(lake, lambda: lambda: catalog.resolve(f"long~{count - 1}")), "ms")


def middle(lake: Lake, prepare: Callable[[], Callable[[], object]], *, rounds: int | None = None) -> float:
    """The median milliseconds of what is prepared anew for each round."""
    return median([timed(prepare()) for _ in range(rounds or lake.scale.rounds)]) * MILLIS


# The catalog


def table(place: str, content_id: UUID | None = None) -> IcebergTable:
    return IcebergTable(id=content_id, metadata_location=f"s3://warehouse/{place}.metadata.json", snapshot_id=1)


def planted(store: Store, tables: Sequence[ContentKey]) -> Catalog:
    """A catalog of a realm that nobody registered."""
    rows = store.rows(REALM, KEY)
    rows.ensure_references((CATALOGS, CLAIMS))
    return plant_catalog(rows, tables)


def plant_catalog(rows: RealmStore, tables: Sequence[ContentKey]) -> Catalog:
    """A catalog whose first commit holds all of them, each with its namespaces, written as commits write it."""
    Catalogs(rows).create_catalog("lake", base_location="s3://warehouse/")
    catalog = Catalogs(rows).open_catalog("lake")
    spaces = sorted({above for key in tables for above in key.ancestors()})
    shared: dict[ContentType, StoredObject] = {
        ContentType.NAMESPACE: Namespace(),
        ContentType.ICEBERG_TABLE: table("first"),
    }
    objects = {kind: rows.new_id() for kind in shared}
    rows.write_objects([(objects[kind], one) for kind, one in shared.items()])
    digests = {kind: content_digest(one) for kind, one in shared.items()}  # type: ignore[arg-type]
    content, ids = IndexEditor(Index()), IndexEditor(Index())
    chance = random.Random(4)
    kinds = [*((key, ContentType.NAMESPACE) for key in spaces), *((key, ContentType.ICEBERG_TABLE) for key in tables)]
    for key, kind in kinds:
        content_id = UUID(int=chance.getrandbits(128), version=4)
        value = ContentValue(kind, content_id, digests[kind], objects[kind])
        content.put(key.to_index(), value.to_value())
        ids.put(content_id.bytes, IndexValue(None, key.to_index()))
    indexes = {name: stored(rows, editor) for name, editor in ((CONTENT, content), (IDS, ids))}
    first = Commit(seq=1, time=Micros(rows.clock.now()), properties={"catalog": catalog.definition.id}, indexes=indexes)
    commit_id = rows.new_id()
    rows.write_objects([(commit_id, first)])
    main = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
    rows.advance_reference(rows.read_reference(main, fresh=True), commit_id)
    return catalog


def stored(rows: RealmStore, editor: IndexEditor) -> IndexContainer:
    made = editor.stored(rows.new_ids, limits_of(rows))
    for start in range(0, len(made.objects), WRITTEN_AT_ONCE):
        rows.write_objects(made.objects[start : start + WRITTEN_AT_ONCE])
    return made.container


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
