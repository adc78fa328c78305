"""What an index holds, beside a dictionary of the same keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engines.model.promise import promised
from headwater.index import Index, IndexValue

INDEXES = "docs/concepts/indexes.md"


@promised("docs/concepts/index.md", "Index")
def keys_are_in_order(where: str, length: int, keys: Sequence[bytes]) -> list[str]:
    """An index tells its keys in order, each once, and how many there are.

    length        how many entries the index says that it has
    """
    faults = [] if list(keys) == sorted(set(keys)) else [f"{where}: its keys do not ascend"]
    return faults if length == len(keys) else [*faults, f"{where}: it says that it has {length} entries, and has {len(keys)}"]


@promised(INDEXES, "How an index lies in the store")
def index_has_just_its_keys(index: Index, expected: Mapping[bytes, IndexValue]) -> list[str]:
    """An index holds what was put and not removed, however it is read as a whole."""
    entries = sorted(expected.items())
    readings = {
        "forwards": (list(index.range()), entries),
        "backwards": (list(index.range(reverse=True)), entries[::-1]),
        "by the empty prefix": (list(index.prefix(b"")), entries),
        "key by key": (sorted(index.get_many(expected).items()), entries),
    }
    faults = keys_are_in_order("the index", len(index), list(index.keys()))
    return faults + [
        f"read {way} it has {told[:5]}..., not {wanted[:5]}..." for way, (told, wanted) in readings.items() if told != wanted
    ]
