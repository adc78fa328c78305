"""Iceberg metadata comes along with what is merged, and shares what the target's version has."""

from __future__ import annotations

import json

import pytest
from sketched_branches import Branching, key, table

from headwater.catalogs import Delete, KeyMerge, Put
from headwater.catalogs.content import with_id
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.store import ObjectId, RealmStore


def document(version: int) -> MetadataParts:
    return split_metadata(
        json.dumps({"format-version": 2, "snapshots": [{"id": n, "s": "x" * 3000} for n in range(version)]}).encode()
    )


def put(lake: Branching, branch: str, text: str, version: int) -> ObjectId:
    there = lake.catalog.get_content(branch, key(text))
    content = table(str(version))
    if there is not None and there.id is not None:
        content = with_id(content, there.id)
    return lake.commit(branch, [Put(key(text), content, metadata=document(version))], f"{text} {version}")


def snapshots(lake: Branching, branch: str, text: str) -> int:
    stored = lake.catalog.metadata(branch, key(text))
    return -1 if stored is None else len(json.loads(stored)["snapshots"])


@pytest.fixture
def parted(empty: Branching) -> Branching:
    """``t`` with forty snapshots on both branches, and one more on ``dev``."""
    put(empty, "main", "t", 40)
    empty.catalog.create_branch("dev")
    put(empty, "dev", "t", 41)
    return empty


def test_merge_brings_the_metadata(parted: Branching) -> None:
    parted.merge()

    assert snapshots(parted, "main", "t") == 41


def test_transplant_brings_the_metadata(parted: Branching) -> None:
    other = put(parted, "dev", "t", 42)
    before = next(iter(parted.catalog.log("dev"))).parent
    assert before is not None
    parted.catalog.transplant("dev", [before, other], "main")

    assert snapshots(parted, "main", "t") == 42


def test_moved_table_brings_its_metadata(parted: Branching) -> None:
    parted.rename("dev", "t", "u")
    parted.merge()

    assert (snapshots(parted, "main", "u"), snapshots(parted, "main", "t")) == (41, -1)
    parted.check("main")


def test_metadata_is_written_only_where_the_target_lacks_it(parted: Branching, rows: RealmStore) -> None:
    def stored_rows() -> int:
        return sum(map(len, rows.scan_objects()))

    before = stored_rows()
    parted.merge()

    assert stored_rows() - before < 10  # not forty snapshots


def test_resolved_content_brings_the_metadata_that_is_given(parted: Branching) -> None:
    put(parted, "main", "t", 50)
    one = KeyMerge(expected=table("50"), resolved=table("60"), metadata=document(60))
    parted.merge(keys={"t": one})

    assert snapshots(parted, "main", "t") == 60


def test_resolved_content_without_metadata_has_none(parted: Branching) -> None:
    put(parted, "main", "t", 50)
    parted.merge(keys={"t": KeyMerge(expected=table("50"), resolved=table("60"))})

    assert snapshots(parted, "main", "t") == -1
    parted.check("main")


def test_tables_with_equal_contents_bring_each_its_own_metadata(parted: Branching) -> None:
    put(parted, "dev", "a", 7)
    equal = [Delete(key("a")), Put(key("b"), table("7"), metadata=document(8)), Put(key("c"), table("7"))]
    parted.commit("dev", equal, "twice")
    parted.merge()

    assert (snapshots(parted, "main", "b"), snapshots(parted, "main", "c")) == (8, -1)
