"""What two sides did to a table since their common ancestor, as a person reads it before deciding between them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sketched_branches import Branching, conflicted_or_done, key

from headwater.catalogs import IcebergTable, KeyAction, KeyComparison, MergeMode, MergeOptions, Namespace, Put
from headwater.catalogs.content import with_id
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.store import ObjectId

COLUMNS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
]


def snapshot(number: int, parent: int | None, rows: int) -> dict[str, Any]:
    summary = {"operation": "append", "added-records": str(rows), "added-data-files": "1", "total-records": str(100 + rows)}
    return {
        "snapshot-id": number,
        "timestamp-ms": 1_750_000_000_000 + number,
        "summary": summary,
        **({} if parent is None else {"parent-snapshot-id": parent}),
    }


def document(*snapshots: dict[str, Any], columns: list[dict[str, Any]] = COLUMNS, **more: Any) -> MetadataParts:
    body = {
        "format-version": 2,
        "current-schema-id": 0,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": columns}],
        "current-snapshot-id": snapshots[-1]["snapshot-id"],
        "snapshots": list(snapshots),
        **more,
    }
    return split_metadata(json.dumps(body).encode())


def put(lake: Branching, branch: str, text: str, metadata: MetadataParts) -> ObjectId:
    there = lake.catalog.get_content(branch, key(text))
    current = int(metadata.fields["current-snapshot-id"])
    content = IcebergTable(metadata_location=f"s3://lake/{branch}-{current}.json", snapshot_id=current)
    if there is not None and there.id is not None:
        content = with_id(content, there.id)
    return lake.commit(branch, [Put(key(text), content, metadata=metadata)], f"{text} on {branch}")


FIRST = snapshot(1, None, 100)


@pytest.fixture
def parted(empty: Branching) -> Branching:
    """``t`` on both branches; ``main`` has appended 5 rows to it, and ``dev`` 7 rows and then 8 rows with a new column."""
    put(empty, "main", "t", document(FIRST))
    empty.catalog.create_branch("dev")
    put(empty, "main", "t", document(FIRST, snapshot(2, 1, 5)))
    seven = snapshot(3, 1, 7)
    put(empty, "dev", "t", document(FIRST, seven))
    wider = [*COLUMNS, {"id": 3, "name": "note", "required": False, "type": "string"}]
    put(empty, "dev", "t", document(FIRST, seven, snapshot(4, 3, 8), columns=wider))
    return empty


def compared(lake: Branching, text: str = "t", **limits: int) -> KeyComparison:
    return lake.catalog.compare_keys("main", "dev", [key(text)], **limits)[0]


def test_each_side_has_its_commits_since_the_ancestor(parted: Branching) -> None:
    found = compared(parted)

    assert [commit.meta.message for commit in found.into.commits] == ["t on main"]
    assert [commit.action for commit in found.source.commits] == [KeyAction.CHANGED, KeyAction.CHANGED]
    assert (found.into.commit_count, found.source.commit_count) == (1, 2)


def test_each_commit_has_its_snapshots(parted: Branching) -> None:
    newest, before = compared(parted).source.commits

    assert [(one.snapshot_id, one.added_rows, one.added_files) for one in newest.snapshots] == [(4, 8, 1)]
    assert [one.snapshot_id for one in before.snapshots] == [3]


def test_commit_that_brings_several_snapshots_has_them_all(parted: Branching) -> None:
    chain = [snapshot(number, number - 1, 1) for number in range(5, 8)]
    put(parted, "dev", "t", document(FIRST, snapshot(3, 1, 7), snapshot(4, 3, 8), *chain))

    assert [one.snapshot_id for one in compared(parted).source.commits[0].snapshots] == [5, 6, 7]


def test_last_described_commit_has_no_snapshots_of_older_ones(parted: Branching) -> None:
    side = compared(parted, commits=1).source

    assert [[one.snapshot_id for one in commit.snapshots] for commit in side.commits] == [[4]]
    assert side.commit_count == 2


def test_side_tells_new_columns_and_totals(parted: Branching) -> None:
    facets = {(facet.kind, facet.before, facet.after) for facet in compared(parted).source.changes.facets}

    assert facets == {("column", None, "note string"), ("rows", "200", "108")}


def test_renamed_table_is_followed(parted: Branching) -> None:
    parted.rename("dev", "t", "u")
    side = compared(parted).source

    assert side.key == key("u")
    assert [commit.action for commit in side.commits] == [KeyAction.RENAMED, KeyAction.CHANGED, KeyAction.CHANGED]
    assert [one.snapshot_id for one in side.changes.snapshots] == [3, 4]


def test_new_key_of_a_rename_is_followed_back(parted: Branching) -> None:
    parted.rename("dev", "t", "u")

    assert compared(parted, "u").source.commit_count == 3


def test_deleted_table_stands_nowhere(parted: Branching) -> None:
    parted.delete("dev", "t")
    side = compared(parted).source

    assert (side.key, side.value, side.commits[0].action) == (None, None, KeyAction.DELETED)


def test_bounded_look_says_that_there_may_be_more(parted: Branching) -> None:
    assert not compared(parted, within=1).source.is_complete
    assert compared(parted).source.is_complete


def test_merged_commits_are_no_change_since(parted: Branching) -> None:
    parted.merge(mode=MergeMode.FORCE)
    parted.put("main", "other")
    put(parted, "dev", "t", document(FIRST, snapshot(3, 1, 7), snapshot(4, 3, 8), snapshot(9, 4, 1)))
    found = compared(parted)

    assert [commit.meta.message for commit in found.source.commits] == ["t on dev"]
    assert [commit.meta.message.split()[0] for commit in found.into.commits] == ["Merge", "t"]


def test_merge_that_conflicts_can_be_told(parted: Branching) -> None:
    result = conflicted_or_done(parted.merge)
    found = parted.catalog.compare_merge(result, [key("t")])[0]

    assert (found.into.commit_count, found.source.commit_count) == (1, 2)


def test_dropped_commits_of_a_forced_merge_can_be_told(parted: Branching) -> None:
    result = parted.catalog.merge("dev", "main", options=MergeOptions(mode=MergeMode.FORCE))
    dropped = parted.catalog.compare_merge(result, [key("t")])[0].into

    assert [one.snapshot_id for commit in dropped.commits for one in commit.snapshots] == [2]


def test_properties_of_a_namespace_are_compared(empty: Branching) -> None:
    empty.put("main", "s/")
    empty.catalog.create_branch("dev")
    there = empty.catalog.get_content("dev", key("s"))
    assert there is not None and there.id is not None
    changed = with_id(Namespace(properties={"owner": "ann", "api-token": "hush"}), there.id)
    empty.commit("dev", [Put(key("s"), changed)], "owner")
    facets = compared(empty, "s").source.changes.facets

    assert [facet.after for facet in facets] == ["api-token=***", "owner=ann"]


def test_table_without_stored_metadata_tells_its_file(empty: Branching) -> None:
    empty.put("main", "t")
    empty.catalog.create_branch("dev")
    empty.put("dev", "t=2")
    side = compared(empty).source

    assert not side.has_metadata
    assert [(facet.kind, facet.after) for facet in side.changes.facets] == [("metadata file", "s3://lake/v2.json")]


def test_branch_beside_itself_has_no_commits(parted: Branching) -> None:
    assert parted.catalog.compare_keys("main", "main", [key("t")])[0].into.commits == ()
