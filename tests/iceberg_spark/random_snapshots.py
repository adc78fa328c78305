"""Tables of random snapshots, refs and limits, as metadata documents; all snapshots have one manifest list, so none of them loses files."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

HOUR = 3_600_000
Document = dict[str, Any]


def random_table(seed: str, base: Mapping[str, Any], *, location: str, now_ms: int) -> Document:
    """A table like another one, with other snapshots. All times and ages are half an hour away from meeting each other."""
    chance = random.Random(seed)
    version = chance.choice([1, 2, 2, 3])
    count = chance.randrange(1, 12)
    ids = chance.sample(range(1, 10**6), count)
    times = sorted(now_ms - HOUR * chance.randrange(1, 60) - HOUR // 2 for _ in ids)
    if chance.random() < 0.3:  # clocks differ
        chance.shuffle(times)
    like = base["snapshots"][0]
    snapshots = []
    for at, (number, time) in enumerate(zip(ids, times, strict=True)):
        parent = ids[at - 1] if at and chance.random() < 0.8 else chance.choice([None, *ids[:at]])
        made = {**like, "snapshot-id": number, "timestamp-ms": time}
        made = _of_version(made, version, sequence_number=at + 1)
        made.pop("parent-snapshot-id", None)
        snapshots.append(made | ({} if parent is None else {"parent-snapshot-id": parent}))
    current = ids[-1] if chance.random() < 0.7 else chance.choice(ids)
    refs = {"main": {"snapshot-id": current, "type": "branch"} | _limits(chance, 0.2, "branch")}
    for at in range(chance.choice([0, 0, 1, 3, 5])):
        kind = chance.choice(["branch", "tag"])
        refs[f"ref-{at}"] = {"snapshot-id": chance.choice(ids), "type": kind} | _limits(chance, 0.5, kind)
    log = [*chance.choices(ids, k=chance.randrange(4)), current]
    newest = max(times)
    named = chance.sample(ids, chance.randrange(count + 1))
    return {
        **_of_version(base, version, last_sequence_number=count, next_row_id=0),
        "format-version": version,
        **({"schema": base["schemas"][0], "partition-spec": []} if version == 1 else {}),
        "table-uuid": str(UUID(int=chance.getrandbits(128), version=4)),
        "location": location,
        "last-updated-ms": newest,
        "properties": _properties(chance),
        "current-snapshot-id": current,
        "snapshots": snapshots,
        "refs": refs,
        "snapshot-log": [
            {"snapshot-id": number, "timestamp-ms": newest - HOUR * (len(log) - at)} for at, number in enumerate(log)
        ],
        "statistics": [_statistics(number, location) for number in named],
        "metadata-log": [
            {"timestamp-ms": newest - HOUR * (9 - at), "metadata-file": f"{location}/metadata/old-{at}.metadata.json"}
            for at in range(chance.randrange(5))
        ],
    }


def _of_version(document: Mapping[str, Any], version: int, **fields: int) -> Document:
    """A document with the fields that its format version has, of those that not every version has."""
    since = {"sequence-number": 2, "last-sequence-number": 2, "next-row-id": 3}
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    kept = {name: value for name, value in document.items() if name not in since}
    return kept | {name: value for name, value in named.items() if version >= since[name]}


def _limits(chance: random.Random, share: float, kind: str) -> Document:
    limits = {"max-ref-age-ms": HOUR * chance.randrange(1, 70)}
    if kind == "branch":
        limits |= {"max-snapshot-age-ms": HOUR * chance.randrange(1, 50), "min-snapshots-to-keep": chance.randrange(1, 6)}
    return {name: value for name, value in limits.items() if chance.random() < share}


def _properties(chance: random.Random) -> dict[str, str]:
    properties = {
        "history.expire.max-snapshot-age-ms": HOUR * chance.randrange(1, 60),
        "history.expire.min-snapshots-to-keep": chance.randrange(1, 6),
        "history.expire.max-ref-age-ms": HOUR * chance.randrange(10, 90),
        "write.metadata.previous-versions-max": chance.randrange(1, 5),
    }
    return {name: str(value) for name, value in properties.items() if chance.random() < 0.5}


def _statistics(snapshot_id: int, location: str) -> Document:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"{location}/metadata/{snapshot_id}.stats",
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 5,
        "blob-metadata": [],
    }
