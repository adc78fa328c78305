"""Every meeting of a base, a source and a target at one key; and what a look at a merge costs the database."""

from __future__ import annotations

from uuid import UUID

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    Catalogs,
    Content,
    ContentKey,
    ContentValue,
    IcebergTable,
    IcebergView,
    MergeMode,
    MergeOptions,
    Namespace,
    Put,
    content_digest,
    content_type_of,
)
from headwater.catalogs.history.content_diff import ContentChange
from headwater.catalogs.history.three_way import MergePlan, decide_keys, judge_merge
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, Store
from headwater.store.backends.memory import MemoryBackend

KEY = ContentKey.of("key")
WRITES = {
    "create_reference",
    "create_references",
    "swap_reference",
    "write_and_swap",
    "write_objects",
    "insert_object",
    "update_object",
}


def has(content: Content, number: int = 1) -> ContentValue:
    return ContentValue(content_type_of(content), UUID(int=number), content_digest(content), ObjectId(1))


NO = None
V1, V2, V3 = (has(IcebergTable(metadata_location=f"s3://b/v{number}.json")) for number in (1, 2, 3))
OTHER_V1, OTHER_V2 = (has(IcebergTable(metadata_location=f"s3://b/v{number}.json"), 2) for number in (1, 2))
VIEW = has(IcebergView(metadata_location="s3://b/view.json"), 3)
OURS, THEIRS = has(Namespace(properties={"of": "us"}), 4), has(Namespace(), 5)
Value = ContentValue | None

NORMAL: list[tuple[str, Value, Value, Value, str]] = [
    ("created by the source", NO, V1, NO, "PUT"),
    ("created on both sides, the same", NO, V1, V1, "SAME"),
    ("created on both sides, equal", NO, V1, OTHER_V1, "SAME"),
    ("created on both sides, not equal", NO, V1, OTHER_V2, "KEY_EXISTS"),
    ("created on both sides, as another type", NO, V1, VIEW, "KEY_EXISTS"),
    ("a namespace created on both sides", NO, THEIRS, OURS, "KEPT"),
    ("a namespace where a table was created", NO, THEIRS, V1, "KEY_EXISTS"),
    ("changed by the source", V1, V2, V1, "PUT"),
    ("changed on both sides, the same", V1, V2, V2, "SAME"),
    ("changed on both sides, not the same", V1, V2, V3, "VALUE_DIFFERS"),
    ("changed by the source, deleted by the target", V1, V2, NO, "KEY_DOES_NOT_EXIST"),
    ("changed by the source, replaced by the target", V1, V2, OTHER_V1, "CONTENT_ID_DIFFERS"),
    ("changed by the source, another type by now", V1, V2, VIEW, "PAYLOAD_DIFFERS"),
    ("replaced by the source", V1, OTHER_V1, V1, "PUT"),
    ("another type by the source", V1, VIEW, V1, "PUT"),
    ("deleted by the source", V1, NO, V1, "REMOVED"),
    ("deleted by the source, changed by the target", V1, NO, V2, "VALUE_DIFFERS"),
    ("deleted by the source, replaced by the target", V1, NO, OTHER_V1, "CONTENT_ID_DIFFERS"),
    ("deleted on both sides", V1, NO, NO, "SAME"),
]


def plan(before: Value, after: Value, now: Value, mode: MergeMode = MergeMode.NORMAL) -> MergePlan:
    head = {} if now is None else {KEY: now}
    return judge_merge(decide_keys([ContentChange(KEY, before, after)], head, MergeOptions(mode=mode), {}), head, {})


@pytest.mark.parametrize(("name", "base", "source", "target", "outcome"), NORMAL, ids=[row[0] for row in NORMAL])
def test_key_is_merged_by_its_three_states(name: str, base: Value, source: Value, target: Value, outcome: str) -> None:
    made = plan(base, source, target)

    assert [*(str(one.kind) for one in made.conflicts), *(str(one.outcome) for one in made.keys)][0] == outcome


@pytest.mark.parametrize(("name", "base", "source", "target", "outcome"), NORMAL, ids=[row[0] for row in NORMAL])
def test_forced_key_never_conflicts_by_itself(name: str, base: Value, source: Value, target: Value, outcome: str) -> None:
    made = plan(base, source, target, MergeMode.FORCE)
    left = {} if source == target else {KEY: source}

    assert made.conflicts == ()
    assert {**made.copies, **dict.fromkeys(made.removals)} == left


@pytest.mark.parametrize(("name", "base", "source", "target", "outcome"), NORMAL, ids=[row[0] for row in NORMAL])
def test_dropped_key_is_not_touched(name: str, base: Value, source: Value, target: Value, outcome: str) -> None:
    made = plan(base, source, target, MergeMode.DROP)

    assert (made.copies, made.removals, made.conflicts) == ({}, (), ())


def test_moved_content_is_no_twin_of_an_equal_one() -> None:
    old = ContentKey.of("old")
    changes = [ContentChange(old, V1, None), ContentChange(KEY, None, V1)]
    made = decide_keys(changes, {old: V1, KEY: OTHER_V1}, MergeOptions(), {})

    assert [(str(one.kind), one.key) for one in made.conflicts] == [("KEY_EXISTS", KEY)]


def test_look_at_a_merge_writes_nothing_not_even_a_lease(settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    with Store(backend, url="memory://", settings=settings, clock=clock) as store:
        realm = RealmKey(store.new_id())
        rows = store.rows(RealmId("acme"), realm)
        for name in (CATALOGS, CLAIMS):
            rows.ensure_reference(name)
        Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
        lake = Catalogs(rows).open_catalog("lake")
        lake.commit("main", [Put(KEY, Namespace())])
        lake.create_branch("dev")
        commit = lake.commit("dev", [Put(KEY.child("t"), IcebergTable(metadata_location="s3://lake/t"))]).commit_id
        assert commit is not None

        watched = FaultyBackend(backend)
        with Store(watched, url="memory://", settings=settings, clock=clock) as reader:
            seen = Catalogs(reader.rows(RealmId("acme"), realm)).open_catalog("lake")
            looks = [seen.merge("dev", options=MergeOptions(dry_run=True))]
            looks.append(seen.transplant("dev", [commit], options=MergeOptions(dry_run=True)))

        assert [len(one.merged_keys) for one in looks] == [1, 1]
        assert not WRITES.intersection(watched.calls)
