from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headwater.errors import CorruptionError
from headwater.iceberg.changes import change_table
from headwater.iceberg.metadata_json import join_metadata, split_metadata
from headwater.iceberg.snapshot_expiry import (
    ExpiredDocument,
    ExpiryFacts,
    ExpiryPlan,
    ExpiryRefusal,
    MetadataLogLimits,
    RefLimits,
    SnapshotLimits,
    log_limits,
    plan_expiry,
    read_expiry_facts,
    without_expired,
)
from metadata_fixtures import changed, snapshot, table

NOW = 1_750_100_000_000
FILE = "s3://lake/sales/orders/metadata/00007-before.metadata.json"
LAST = SnapshotLimits(max_snapshot_age_ms=0, min_snapshots_to_keep=1)


def line(count: int, version: int = 2, **more: Any) -> dict[str, Any]:
    """A table with snapshots 1 to count, each a second after the one before, the last one current a second ago."""
    numbers = range(1, count + 1)
    snapshots = [
        snapshot(
            number,
            None if version == 1 else number,
            **{"timestamp-ms": NOW - 1000 * (count + 1 - number)},
            **({"parent-snapshot-id": number - 1} if number > 1 else {}),
        )
        for number in numbers
    ]
    made = {
        "current-snapshot-id": count,
        "snapshots": snapshots,
        "snapshot-log": [{"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]} for each in snapshots],
        "last-updated-ms": snapshots[-1]["timestamp-ms"],
        "last-sequence-number": count,
        "metadata-log": [],
    }
    made |= {} if version == 1 else {"refs": {"main": branch(count)}}
    return changed(table(version), made | more)


def facts_of(document: dict[str, Any]) -> ExpiryFacts:
    return read_expiry_facts(split_metadata(json.dumps(document).encode()))


def plan(document: dict[str, Any], limits: SnapshotLimits | None = LAST, **more: Any) -> ExpiryPlan:
    return plan_expiry(facts_of(document), limits, NOW, **more)


def expired(document: dict[str, Any], limits: SnapshotLimits | None = LAST, **more: Any) -> ExpiredDocument:
    parts = split_metadata(json.dumps(document).encode())
    facts = read_expiry_facts(parts)
    return without_expired(parts, facts, plan_expiry(facts, limits, NOW, **more), previous_file=FILE, now_ms=NOW)


def branch(number: int, **limits: int) -> dict[str, Any]:
    return {"snapshot-id": number, "type": "branch"} | {name.replace("_", "-"): limit for name, limit in limits.items()}


def tag(number: int, **limits: int) -> dict[str, Any]:
    return branch(number, **limits) | {"type": "tag"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_ancestors_stay_by_age_or_number(version: int) -> None:
    document = line(6, version)

    assert plan(document).snapshots == {1, 2, 3, 4, 5}
    assert plan(document, SnapshotLimits(max_snapshot_age_ms=0, min_snapshots_to_keep=3)).snapshots == {1, 2, 3}
    assert plan(document, SnapshotLimits(max_snapshot_age_ms=5000, min_snapshots_to_keep=2)).snapshots == {1}
    assert plan(document, None).leaves_all


def test_tags_and_branches_keep_what_is_theirs() -> None:
    refs = {"main": branch(6), "v1": tag(2), "audit": branch(4, min_snapshots_to_keep=2)}

    assert plan(line(6, refs=refs)).snapshots == {1, 5}


def test_ref_goes_when_it_is_too_old_and_main_never() -> None:
    refs = {"main": branch(6, max_ref_age_ms=1), "old": tag(2, max_ref_age_ms=4999), "fits": tag(2, max_ref_age_ms=5000)}
    limits = SnapshotLimits(max_snapshot_age_ms=0, min_snapshots_to_keep=1, max_ref_age_ms=3000)

    assert plan(line(6, refs=refs)).refs == {"old"}
    assert plan(line(6, refs={"main": branch(6), "a": tag(4), "b": tag(3)}), limits).refs == {"b"}


def test_ref_of_a_missing_snapshot_goes() -> None:
    assert plan(line(3, refs={"main": branch(3), "lost": tag(77)})).refs == {"lost"}


def test_unreached_snapshot_stays_while_it_is_young() -> None:
    document = line(4, **{"current-snapshot-id": 2, "refs": {"main": branch(2)}})

    assert plan(document, SnapshotLimits(max_snapshot_age_ms=1500, min_snapshots_to_keep=1)).snapshots == {1, 3}


def test_old_ancestor_ends_the_walk_before_younger_ones() -> None:
    document = line(4)
    document["snapshots"][1]["timestamp-ms"] = NOW + 5

    assert plan(document, SnapshotLimits(max_snapshot_age_ms=1500, min_snapshots_to_keep=1)).snapshots == {1, 2, 3}


def test_own_limits_of_a_ref_never_undercut_the_least() -> None:
    refs = {"main": branch(6, max_snapshot_age_ms=0), "old": tag(1, max_ref_age_ms=1)}
    least = RefLimits(max_snapshot_age_ms=2500, min_snapshots_to_keep=3, max_ref_age_ms=60_000)
    own = SnapshotLimits(max_snapshot_age_ms=2500, min_snapshots_to_keep=1, least=least)

    assert plan(line(6, refs=refs), own) == plan(line(6, refs={"main": branch(6), "old": tag(1)}), own)
    assert plan(line(6, refs=refs), own).snapshots == {2, 3, 4}


def test_snapshots_in_a_circle_are_each_visited_once() -> None:
    document = line(3)
    document["snapshots"][0]["parent-snapshot-id"] = 3

    assert plan(document).snapshots == {1, 2}


def test_plan_says_when_more_could_go() -> None:
    refs = {"main": branch(4), "v1": tag(4, max_ref_age_ms=9000)}
    limits = SnapshotLimits(max_snapshot_age_ms=3500, min_snapshots_to_keep=1)
    document = line(4, refs=refs)

    assert plan(document, limits).due_ms == NOW - 3000 + 3500 + 1
    assert plan(document).due_ms == NOW - 1000 + 9000 + 1
    assert plan(line(4)).due_ms is None
    assert plan_expiry(facts_of(document), limits, NOW + 500).snapshots == {1}
    assert plan_expiry(facts_of(document), limits, NOW + 501).snapshots == {1, 2}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_document_is_what_the_same_updates_make(version: int, seed: int) -> None:
    chance = random.Random(f"{version} {seed}")
    count = chance.randrange(2, 9)
    refs = {f"ref-{at}": tag(chance.randrange(1, count + 1), max_ref_age_ms=chance.randrange(9000)) for at in range(40)}
    statistics = [{"snapshot-id": number, "statistics-path": f"p{number}"} for number in range(1, count + 1)]
    more = {"refs": {"main": branch(count)} | refs, "statistics": statistics, "partition-statistics": statistics[:2]}
    more["metadata-log"] = [{"timestamp-ms": NOW - 9000, "metadata-file": f"f{number}"} for number in range(4)]
    more["properties"] = {"write.metadata.previous-versions-max": str(chance.randrange(7))}
    document = line(count, version, **more)
    limits = SnapshotLimits(max_snapshot_age_ms=chance.randrange(9000), min_snapshots_to_keep=chance.randrange(1, 5))
    wanted = plan(document, limits)
    updates = [{"action": "remove-snapshot-ref", "ref-name": name} for name in sorted(wanted.refs)]
    updates.append({"action": "remove-snapshots", "snapshot-ids": sorted(wanted.snapshots)})

    made = json.loads(join_metadata(expired(document, limits).parts))

    other = change_table(document, updates, now_ms=NOW, previous_file=FILE)
    assert made == {name: other[name] for name in made} and set(document) <= set(made)


def test_pieces_that_stay_keep_their_text() -> None:
    text = json.dumps(line(3, **{"a-name": [1.50]})).replace("[1.5]", "[1.50, 123456789012345678901234567890]")
    text = text.replace('"snapshot-id": 3, ', '"snapshot-id": 3, "odd": 1E3, ')
    parts = split_metadata(text.encode())
    facts = read_expiry_facts(parts)

    made = without_expired(parts, facts, plan_expiry(facts, LAST, NOW), previous_file=FILE, now_ms=NOW).parts

    assert b'"odd":1E3' in made.lists["snapshots"][0] and made.lists["a-name"] == parts.lists["a-name"]
    assert {name for name in parts.fields if parts.fields[name] != made.fields.get(name)} <= {"last-updated-ms", "metadata-log"}


def test_log_of_snapshots_has_no_gap() -> None:
    document = line(4, refs={"main": branch(4), "v1": tag(1)})

    done = expired(document, SnapshotLimits(max_snapshot_age_ms=0, min_snapshots_to_keep=2))

    assert [json.loads(piece)["snapshot-id"] for piece in done.parts.lists["snapshot-log"]] == [3, 4]
    assert done.log_entries == 2


def test_metadata_log_keeps_what_its_policy_says() -> None:
    log = [{"timestamp-ms": NOW - 1000 * age, "metadata-file": f"f{age}"} for age in (9, 8, 3)]
    document = line(2, **{"metadata-log": log})

    done = expired(document, None, keep_log=MetadataLogLimits(keep=50, max_age_ms=8000))

    named = [json.loads(piece)["metadata-file"] for piece in done.parts.lists["metadata-log"]]
    assert named == ["f8", "f3", FILE]
    assert plan(document, None, keep_log=MetadataLogLimits(keep=2)).log_files == 1
    assert plan(document, None, keep_log=MetadataLogLimits(keep=3)).leaves_all
    assert plan(document, None).leaves_all


def test_last_file_of_a_metadata_log_makes_no_version() -> None:
    keep_log = MetadataLogLimits(keep=9, max_age_ms=1)
    document = line(2, **{"metadata-log": [{"timestamp-ms": 1, "metadata-file": "f"}]})

    assert plan(document, None, keep_log=keep_log).leaves_all
    assert plan(document, None, keep_log=keep_log).due_ms is None
    assert plan(document, LAST, keep_log=keep_log).due_ms is None


def test_log_length_follows_the_property() -> None:
    properties = [{}, {"write.metadata.previous-versions-max": "0"}, {"write.metadata.previous-versions-max": "x"}]

    assert [log_limits(each).keep for each in properties] == [100, 1, 100]


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({}, None),
        ({"properties": {"gc.enabled": "TRUE"}}, None),
        ({"properties": {"gc.enabled": "no"}}, ExpiryRefusal.GC_DISABLED),
        ({"properties": {"encryption.key-id": "k"}}, ExpiryRefusal.ENCRYPTED),
        ({"encryption-keys": [{"key-id": "k"}]}, ExpiryRefusal.ENCRYPTED),
        ({"format-version": 4, "snapshots": "new"}, ExpiryRefusal.TOO_NEW),
    ],
)
def test_facts_refuse_what_is_left_alone(more: dict[str, Any], refusal: ExpiryRefusal | None) -> None:
    assert facts_of(line(2, 3, **more)).refusal is refusal


@pytest.mark.parametrize(
    "more",
    [{"snapshots": [{"snapshot-id": 1}]}, {"current-snapshot-id": 77}, {"refs": {"main": branch(1)}}, {"refs": {"a": 5}}],
)
def test_document_that_cannot_be_read_is_an_error(more: dict[str, Any]) -> None:
    with pytest.raises(CorruptionError):
        facts_of(line(2, **more))
