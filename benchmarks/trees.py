"""What a Python user has for an ordered map on disk without a database: ZODB with a BTree in a FileStorage, which fsyncs each commit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import transaction
import ZODB.FileStorage
from benchmarks.storms import Act
from benchmarks.tables import Choice
from BTrees.OOBTree import OOBTree
from ZODB.DB import DB
from ZODB.POSException import ConflictError

__all__ = ["Tree", "new_tree", "open_tree", "pointer"]

RETRY_SECONDS = 15.0
AT_ONCE = 50_000
CONNECTIONS = 50


@dataclass
class Tree:
    """A database of one tree under ``tables`` of its root."""

    file: Path
    database: DB

    @property
    def size_bytes(self) -> int:
        return self.file.stat().st_size

    def read(self, key: bytes) -> object:
        with self.database.transaction() as connection:
            return connection.root()["tables"].get(key)

    def setting(self, choice: Choice, value: Callable[[random.Random], object], lost: list[int]) -> Act:
        """One key put and committed, on a connection of its own; begun again when it conflicts, at once, as ZODB's own loop does."""
        manager = transaction.TransactionManager()
        tree = self.database.open(manager).root()["tables"]

        def act(chance: random.Random) -> None:
            key, end = choice(chance), time.monotonic() + RETRY_SECONDS
            while True:
                manager.begin()
                try:
                    tree[key] = value(chance)
                    manager.commit()
                    return
                except ConflictError:
                    manager.abort()
                    lost.append(1)
                    if time.monotonic() > end:
                        raise

        return act


@contextmanager
def open_tree(file: Path) -> Iterator[Tree]:
    database = DB(ZODB.FileStorage.FileStorage(str(file)), pool_size=CONNECTIONS)
    try:
        yield Tree(file, database)
    finally:
        database.close()


@contextmanager
def new_tree(file: Path, keys: Sequence[bytes], value: Callable[[random.Random], object]) -> Iterator[Tree]:
    """With these keys in it, packed: every page written once."""
    chance = random.Random(1)
    with open_tree(file) as tree:
        connection = tree.database.open()
        tables = connection.root()["tables"] = OOBTree()
        for start in range(0, len(keys), AT_ONCE):
            tables.update({key: value(chance) for key in keys[start : start + AT_ONCE]})
            transaction.commit()
        connection.close()
        tree.database.pack()
        yield tree


def pointer(chance: random.Random) -> tuple[str, int, int, int, int, str]:
    """What a table's pointer is to a tree: the same that an IcebergTable of ours says."""
    number = chance.getrandbits(16)
    location = f"s3://warehouse/sales/orders-{number:08x}/metadata/{number:05d}-{chance.getrandbits(122):032x}.metadata.json"
    return (location, chance.getrandbits(62), 0, 0, 0, "6f1d2a60-3f0e-4b57-9d8b-0a4c5c1de001")
