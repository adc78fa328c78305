"""What a Python user has for throwing away what nothing points to: the pack of ZODB, over as many objects and as much garbage."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import transaction
from benchmarks.tables import SEED, table_keys
from benchmarks.trees import Tree, open_tree, pointer
from BTrees.OOBTree import OOBTree
from persistent import Persistent

__all__ = ["littered_tree"]

AT_ONCE = 10_000


class Table(Persistent):
    """A table as an object of its own, as ours are."""

    def __init__(self, said: tuple[object, ...]) -> None:
        self.said = said


@contextmanager
def littered_tree(file: Path, objects: int, garbage_share: float) -> Iterator[Tree]:
    """A tree of tables of which some were taken out again: their objects are garbage in the file."""
    chance = random.Random(SEED)
    keys = table_keys(objects)
    with open_tree(file) as tree:
        connection = tree.database.open()
        tables = connection.root()["tables"] = OOBTree()
        for start in range(0, objects, AT_ONCE):
            tables.update({key: Table(pointer(chance)) for key in keys[start : start + AT_ONCE]})
            transaction.commit()
            connection.cacheMinimize()
        thrown = chance.sample(keys, round(objects * garbage_share))
        for start in range(0, len(thrown), AT_ONCE):
            for key in thrown[start : start + AT_ONCE]:
                del tables[key]
            transaction.commit()
            connection.cacheMinimize()
        connection.close()
        yield tree
