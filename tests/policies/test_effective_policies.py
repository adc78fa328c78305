"""How policies meet each other and a table's own properties: by one rule, field by field."""

from __future__ import annotations

import msgspec
import pytest

from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.snapshot_expiry import ExpiryFacts, plan_expiry, read_expiry_facts
from headwater.policies import (
    FileRule,
    MetadataFileRule,
    SnapshotRule,
    effective_files,
    effective_metadata_files,
    effective_snapshots,
)
from headwater.policies.effective_policies import FOREVER, PolicySource

DAY, DAY_MS = 86_400.0, 86_400_000
AGE, NUMBER, REF_AGE = (
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "history.expire.max-ref-age-ms",
)
LOG = "write.metadata.previous-versions-max"


def of_table(*rules: SnapshotRule) -> PolicySource[tuple[SnapshotRule, ...]]:
    return PolicySource(rules, "policy of the table")


def of_catalog(*rules: SnapshotRule) -> PolicySource[tuple[SnapshotRule, ...]]:
    return PolicySource(rules, "policy of catalog lake")


def test_table_without_a_policy_keeps_everything() -> None:
    assert effective_snapshots([], "main", {AGE: "1"}) is None
    assert effective_snapshots([of_catalog(SnapshotRule(branches="dev", min_to_keep=1))], "main", {}) is None
    assert effective_metadata_files([], {LOG: "3"}) is None


@pytest.mark.parametrize(
    ("policy", "prop", "wanted", "source"),
    [
        (2 * DAY, None, 2 * DAY_MS, "policy of catalog lake, branches *"),
        (2 * DAY, str(3 * DAY_MS), 3 * DAY_MS, f"property {AGE}"),
        (4 * DAY, str(3 * DAY_MS), 4 * DAY_MS, "policy of catalog lake, branches *"),
        (None, str(3 * DAY_MS), 3 * DAY_MS, f"property {AGE}"),
        (None, None, 5 * DAY_MS, "default"),
    ],
)
def test_age_is_that_by_which_more_stays(policy: float | None, prop: str | None, wanted: int, source: str) -> None:
    rule = SnapshotRule(max_age_seconds=policy, min_to_keep=1)
    effective = effective_snapshots([of_catalog(rule)], "main", {} if prop is None else {AGE: prop})

    assert effective is not None
    assert effective.max_snapshot_age_ms == (wanted, source)


@pytest.mark.parametrize(
    ("policy", "prop", "wanted"), [(3, "2", 3), (3, "9", 9), (3, None, 3), (None, "9", 9), (None, None, 1)]
)
def test_number_is_that_by_which_more_stays(policy: int | None, prop: str | None, wanted: int) -> None:
    rule = SnapshotRule(max_age_seconds=DAY, min_to_keep=policy)
    effective = effective_snapshots([of_catalog(rule)], "main", {} if prop is None else {NUMBER: prop})

    assert effective is not None
    assert effective.min_snapshots_to_keep.value == wanted


def test_branches_and_tags_of_a_table_stay_where_nobody_says_otherwise() -> None:
    silent = effective_snapshots([of_catalog(SnapshotRule(max_age_seconds=DAY))], "main", {})
    by_property = effective_snapshots([of_catalog(SnapshotRule(max_age_seconds=DAY))], "main", {REF_AGE: "5"})

    assert silent is not None and by_property is not None
    assert silent.max_ref_age_ms == (None, "default")
    assert by_property.max_ref_age_ms == (5, f"property {REF_AGE}")


def test_policy_of_the_table_stands_first_field_by_field() -> None:
    policies = [of_table(SnapshotRule(min_to_keep=7)), of_catalog(SnapshotRule(max_age_seconds=DAY, min_to_keep=3))]
    effective = effective_snapshots(policies, "main", {})

    assert effective is not None
    assert effective.min_snapshots_to_keep == (7, "policy of the table, branches *")
    assert effective.max_snapshot_age_ms == (DAY_MS, "policy of catalog lake, branches *")


def test_first_rule_that_covers_the_branch_counts() -> None:
    rules = (
        SnapshotRule(branches="main", min_to_keep=5),
        SnapshotRule(branches="etl_*", min_to_keep=1),
        SnapshotRule(min_to_keep=2),
    )
    kept = {
        branch: effective.min_snapshots_to_keep.value
        for branch in ("main", "etl_7", "domain", "etl")
        if (effective := effective_snapshots([of_catalog(*rules)], branch, {})) is not None
    }

    assert kept == {"main": 5, "etl_7": 1, "domain": 2, "etl": 2}


BROKEN = ["", "-1", "five", "1e3", "1.5", " 1", "9" * 20, "٣"]
TIGHT = SnapshotRule(max_age_seconds=0.001, min_to_keep=1, max_ref_age_seconds=0.001)
OLD_REFS = {
    "main": {"snapshot-id": 3, "type": "branch", "max-snapshot-age-ms": 1},
    "dev": {"snapshot-id": 2, "type": "branch", "max-ref-age-ms": 1},
    "v1": {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 1},
}


def old_table(properties: dict[str, str]) -> ExpiryFacts:
    """A table with three snapshots, a branch and a tag, all of which are a day old, and a metadata log of two files."""
    snapshots = [
        {"snapshot-id": at, "timestamp-ms": at, **({"parent-snapshot-id": at - 1} if at > 1 else {})} for at in (1, 2, 3)
    ]
    log = [{"metadata-file": f"s3://lake/t/v{at}.json", "timestamp-ms": at} for at in (1, 2)]
    document = {
        "format-version": 2,
        "location": "s3://lake/t",
        "last-updated-ms": 3,
        "current-snapshot-id": 3,
        "snapshots": snapshots,
        "refs": OLD_REFS,
        "metadata-log": log,
        "properties": properties,
    }
    return read_expiry_facts(split_metadata(msgspec.json.encode(document)))


def going(properties: dict[str, str]) -> tuple[set[int], set[str], int]:
    """The snapshots, references and log entries that go by policies that keep as little as policies can."""
    facts = old_table(properties)
    snapshots = effective_snapshots([of_catalog(TIGHT)], "main", facts.properties)
    log = effective_metadata_files(
        [PolicySource(MetadataFileRule(keep=1, max_age_seconds=0.001), "policy of catalog lake")], facts.properties
    )
    assert snapshots is not None and log is not None
    plan = plan_expiry(facts, snapshots.limits(), DAY_MS, keep_log=log.limits())
    return set(plan.snapshots), set(plan.refs), plan.log_files


def test_table_keeps_only_its_head_by_the_tightest_policies() -> None:
    assert going({}) == ({1, 2}, {"dev", "v1"}, 1)


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("name", [AGE, NUMBER, REF_AGE])
def test_property_that_cannot_be_read_keeps_every_snapshot_and_reference(name: str, text: str) -> None:
    assert going({name: text}) == (set(), set(), 1)


@pytest.mark.parametrize("text", BROKEN)
def test_property_that_cannot_be_read_keeps_the_whole_log(text: str) -> None:
    assert going({LOG: text}) == ({1, 2}, {"dev", "v1"}, 0)


@pytest.mark.parametrize("name", [AGE, NUMBER, REF_AGE])
def test_property_that_cannot_be_read_is_told_of_each_value(name: str) -> None:
    effective = effective_snapshots([of_catalog(TIGHT)], "main", {name: "five"})
    told = f"property {name}, which is no number that can be read ('five'): everything is kept"

    assert effective is not None
    assert effective.max_snapshot_age_ms == effective.min_snapshots_to_keep == effective.max_ref_age_ms == (FOREVER, told)


def test_policies_alone_are_the_least_for_refs_of_a_table() -> None:
    rule = SnapshotRule(max_age_seconds=DAY, min_to_keep=3)
    effective = effective_snapshots([of_catalog(rule)], "main", {AGE: str(9 * DAY_MS), NUMBER: "9"})

    assert effective is not None
    assert (effective.least.max_snapshot_age_ms, effective.least.min_snapshots_to_keep) == (DAY_MS, 3)
    assert effective.limits().max_snapshot_age_ms == 9 * DAY_MS


def test_log_keeps_what_the_property_or_the_policy_asks_for() -> None:
    policy = PolicySource(MetadataFileRule(keep=20, max_age_seconds=DAY), "policy of catalog lake")
    kept = {prop: effective_metadata_files([policy], {LOG: prop} if prop else {}) for prop in ("", "5", "50")}

    assert [each.keep.value for each in kept.values() if each is not None] == [20, 20, 50]
    assert [each.max_age_ms.value for each in kept.values() if each is not None] == [DAY_MS] * 3


def test_files_wait_by_default_for_eight_days() -> None:
    effective = effective_files([])

    assert (effective.grace_seconds.value, effective.delay_seconds.value) == (7 * DAY, DAY)
    assert (effective.hold_seconds.value, effective.mode) == (7 * DAY, ("report", "default"))


def test_grace_is_never_less_than_a_day() -> None:
    old = PolicySource(FileRule(grace_seconds=60.0), "policy of catalog lake")

    assert effective_files([old]).grace_seconds == (DAY, "policy of catalog lake")
