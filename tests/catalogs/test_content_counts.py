"""Content counted by type, whole or from an earlier count."""

from __future__ import annotations

import random

import pytest

from headwater.catalogs import (
    Catalog,
    ContentKey,
    ContentType,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    count_types,
    recount_types,
)
from headwater.commits import Head
from headwater.store import ObjectId

KINDS = (
    IcebergTable(metadata_location="s3://lake/t"),
    IcebergView(metadata_location="s3://lake/v"),
    Namespace(),
    DeltaLakeTable(metadata_location_history=("s3://lake/d",)),
)


def now(catalog: Catalog) -> Head:
    found = catalog.resolve()
    assert found is not None
    return found


def commit_some(catalog: Catalog, chance: random.Random) -> None:
    """Put, change or delete one of a few keys, some of them as another type than before."""
    key = ContentKey.of(chance.choice("abcdef"))
    if catalog.get_content(None, key) is not None:
        catalog.commit(None, [Delete(key)])
    else:
        catalog.commit(None, [Put(key, chance.choice(KINDS))])


@pytest.mark.parametrize("seed", range(5))
def test_counting_on_from_any_commit_gives_what_counting_all_does(catalog: Catalog, seed: int) -> None:
    chance = random.Random(seed)
    counted = []
    for _ in range(12):
        commit_some(catalog, chance)
        counted.append((now(catalog).id, count_types(now(catalog))))

    for commit_id, counts in counted:
        assert recount_types(now(catalog), before=commit_id, counts=counts) == counted[-1][1] == catalog.counts()


def test_counting_on_looks_only_at_what_changed(catalog: Catalog, first: ObjectId) -> None:
    catalog.commit(None, [Put(ContentKey.of("more"), KINDS[0]), Delete(ContentKey.of("sales", "orders"))])
    found = recount_types(now(catalog), before=first, counts={ContentType.ICEBERG_TABLE: 1000, ContentType.NAMESPACE: 7})

    assert found == {ContentType.ICEBERG_TABLE: 1000, ContentType.NAMESPACE: 7}


@pytest.mark.parametrize("before", ["collected", "on another branch"])
def test_counting_on_from_what_is_no_ancestor_counts_all(catalog: Catalog, first: ObjectId, before: str) -> None:
    catalog.create_branch("dev")
    catalog.commit("dev", [Put(ContentKey.of("more"), KINDS[0])])
    other = catalog.branch("dev").head if before == "on another branch" else ObjectId(5)
    assert other is not None
    catalog.commit(None, [Put(ContentKey.of("view"), KINDS[1])])
    found = recount_types(now(catalog), before=other, counts={ContentType.UDF: 1})

    assert found == {ContentType.ICEBERG_TABLE: 1, ContentType.ICEBERG_VIEW: 1, ContentType.NAMESPACE: 1}


def test_empty_branch_has_no_counts(catalog: Catalog) -> None:
    assert catalog.counts() == {}
