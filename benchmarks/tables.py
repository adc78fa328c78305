"""Catalogs to measure: keys as people name tables, what an index holds for each, and the commit that moves one table's pointer."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headwater.catalogs.content import IcebergTable
from headwater.clock import Micros
from headwater.commits import Commit, Transaction, commit_change
from headwater.index import Index, IndexEditor, IndexLimits, IndexValue, StoredIndex
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Store, StoredObject, open_store

__all__ = [
    "CONTENT",
    "VALUE_BYTES",
    "Choice",
    "Made",
    "any_of",
    "churn",
    "commit_one",
    "hot",
    "limits_of",
    "make",
    "moved_table",
    "one_of_few",
    "plant",
    "point",
    "table_keys",
    "uuid_keys",
    "value_of",
]

CONTENT = "content"
"""The index of a branch that holds its tables."""
DATA_BYTES = 33
"""Type, content id and digest, as an index holds them for each table."""
VALUE_BYTES = 8 + DATA_BYTES
"""With the id of the object."""
REGIONS = ("emea", "apac", "amer", "latam", "nordics", "benelux", "dach", "iberia")
YEARS = range(2016, 2027)
SEED = 5
BELOW_TIME = 22
"""Bits of an id below its milliseconds."""
WRITTEN_AT_ONCE = 500
HOT_SHARE = 0.9

Choice = Callable[[random.Random], bytes]
"""Which table the next commit is about."""


def table_keys(count: int) -> list[bytes]:
    """Sorted index keys of ``count`` tables, such as ``sales 0 emea 0 customer_orders_2024``; the same ones each time."""
    chance, words = random.Random(SEED), _words()
    namespaces = [(domain, region) for domain in chance.sample(words, len(words)) for region in REGIONS]
    used = max(1, round(count**0.5 / 2.5))
    names = len(words) ** 2 * len(YEARS)
    keys = []
    for number in range(used):
        size = count * (number + 1) // used - count * number // used
        domain, region = namespaces[number]
        keys += [f"{domain}\0{region}\0{_name(words, one)}".encode() for one in chance.sample(range(names), size)]
    return sorted(keys)


def uuid_keys(count: int) -> list[bytes]:
    """Keys that share nothing: random UUIDs in their usual text, sorted."""
    chance = random.Random(SEED)
    return sorted(str(uuid.UUID(int=chance.getrandbits(128), version=4)).encode() for _ in range(count))


def _words() -> list[str]:
    """English as the documentation of Python has it, which every Python carries along."""
    from pydoc_data import topics

    return sorted({word for text in topics.topics.values() for word in re.findall(r"\b[a-z]{4,12}\b", text)})


def _name(words: Sequence[str], number: int) -> str:
    number, year = divmod(number, len(YEARS))
    first, second = divmod(number, len(words))
    return f"{words[first]}_{words[second]}_{YEARS[year]}"


def value_of(object_id: ObjectId, chance: random.Random) -> IndexValue:
    """A table's: random content id and digest, so it does not compress."""
    return IndexValue(object_id, b"\1" + chance.randbytes(DATA_BYTES - 1))


@dataclass(frozen=True)
class Made:
    """The index of a catalog, which can be planted in any store, and what making it took."""

    keys: list[bytes]
    stored: StoredIndex
    put_seconds: float
    stored_seconds: float


def make(keys: list[bytes], settings: Settings | None = None, *, days: float = 0) -> Made:
    """An index that holds all these tables. The objects with their content are not made: nothing here reads them.

    days          over which they were written, each by itself; 0: all at once and in key order, as an import does
    """
    chance = random.Random(SEED)
    with open_store("memory://", settings=settings) as store:
        numbers = store.new_ids(len(keys))
        if days:
            span = round(days * 24 * 3600 * 1000)
            last = numbers[-1] >> BELOW_TIME
            # one node, and the first or second id of its millisecond
            numbers = [ObjectId((last - chance.randrange(span)) << BELOW_TIME | chance.randrange(2)) for _ in numbers]
        started = time.perf_counter()
        editor = IndexEditor(Index())
        for key, number in zip(keys, numbers, strict=True):
            editor.put(key, value_of(number, chance))
        put = time.perf_counter()
        stored = editor.stored(store.new_ids, limits_of(store))
        return Made(keys, stored, put - started, time.perf_counter() - put)


def plant(rows: RealmStore, reference: str, made: Made) -> None:
    """A new branch whose first commit holds this index."""
    commit_id, objects = rows.new_id(), made.stored.objects
    for start in range(0, len(objects), WRITTEN_AT_ONCE):
        rows.write_objects(objects[start : start + WRITTEN_AT_ONCE])
    first = Commit(seq=1, time=Micros(rows.clock.now()), indexes={CONTENT: made.stored.container})
    rows.write_objects([(commit_id, first)])
    rows.create_reference(reference, commit_id)


def churn(rows: RealmStore, reference: str, keys: Sequence[bytes], updates: int, *, at_once: int = 256) -> None:
    """Bring a branch to its steady state: many tables moved, in commits of many and at last one by one."""
    chance = random.Random(SEED + 1)
    for _ in range(updates // at_once):
        chosen = chance.sample(keys, min(at_once, len(keys)))

        def move(tx: Transaction, chosen: Sequence[bytes] = chosen) -> None:
            table = tx.add_object(moved_table(0))
            for key in chosen:
                tx.index(CONTENT).put(key, value_of(table, chance))

        commit_change(rows, reference, move)
    for _ in range(min(at_once, len(keys))):
        commit_one(rows, reference, chance.choice(keys), chance)


def limits_of(rows: RealmStore | Store) -> IndexLimits:
    return IndexLimits(embedded_bytes=rows.settings.index_embedded_bytes, stripe_bytes=rows.settings.index_stripe_bytes)


def moved_table(number: int) -> IcebergTable:
    """A table after a commit of an engine: a new file of metadata, a new snapshot."""
    return IcebergTable(
        metadata_location=f"s3://warehouse/sales/orders-{number:08x}/metadata/{number:05d}-{uuid.uuid4()}.metadata.json",
        snapshot_id=random.getrandbits(62),
        table_uuid="6f1d2a60-3f0e-4b57-9d8b-0a4c5c1de001",
    )


def point(index: IndexEditor, add: Callable[[StoredObject], ObjectId], key: bytes, chance: random.Random) -> None:
    """The change that is measured: a table's new pointer as an object of its own, and its key put."""
    index.put(key, value_of(add(moved_table(chance.getrandbits(16))), chance))


def commit_one(rows: RealmStore, reference: str, key: bytes, chance: random.Random) -> None:
    """That change by itself, as a commit of ours."""
    commit_change(rows, reference, lambda tx: point(tx.index(CONTENT), tx.add_object, key, chance))


def any_of(keys: Sequence[bytes]) -> Choice:
    return lambda chance: keys[int(chance.random() * len(keys))]


def hot(keys: Sequence[bytes], few: int) -> Choice:
    """Nine commits in ten are about a few tables, which lie anywhere in the catalog."""
    chosen = random.Random(SEED + 2).sample(keys, min(few, len(keys)))
    one_of_them, one_of_all = any_of(chosen), any_of(keys)
    return lambda chance: one_of_them(chance) if chance.random() < HOT_SHARE else one_of_all(chance)


def one_of_few(keys: Sequence[bytes], few: int) -> Choice:
    """All commits are about a few tables."""
    return any_of(random.Random(SEED + 3).sample(keys, min(few, len(keys))))
