"""Who was not the first to take a name is told of a conflict, exit code 6: what was asked could have worked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest

from headwater.catalogs import (
    Catalog,
    Catalogs,
    ConflictKind,
    ContentKey,
    ContentOperation,
    Delete,
    IcebergTable,
    Namespace,
    Put,
)
from headwater.errors import ConflictError, HeadwaterError, RefusedError
from headwater.exits import exit_code
from headwater.store import ObjectId

ORDERS, MOVED, OTHER = ContentKey.of("orders"), ContentKey.of("moved"), ContentKey.of("other")
Made = Callable[[UUID], Sequence[ContentOperation]]


def table(version: int, content_id: UUID | None = None) -> IcebergTable:
    return IcebergTable(id=content_id, metadata_location=f"s3://lake/{version}.json")


RACES: list[tuple[str, Made, Made, ConflictKind]] = [
    ("create, create", lambda of: [Put(OTHER, table(2))], lambda of: [Put(OTHER, table(3))], ConflictKind.KEY_EXISTS),
    (
        "create, create another type",
        lambda of: [Put(OTHER, table(2))],
        lambda of: [Put(OTHER, Namespace())],
        ConflictKind.KEY_EXISTS,
    ),
    ("delete, change", lambda of: [Delete(ORDERS)], lambda of: [Put(ORDERS, table(3, of))], ConflictKind.KEY_DOES_NOT_EXIST),
    ("delete, delete", lambda of: [Delete(ORDERS)], lambda of: [Delete(ORDERS)], ConflictKind.KEY_DOES_NOT_EXIST),
    (
        "delete, rename",
        lambda of: [Delete(ORDERS)],
        lambda of: [Delete(ORDERS), Put(MOVED, table(1, of))],
        ConflictKind.KEY_DOES_NOT_EXIST,
    ),
    (
        "rename, rename",
        lambda of: [Delete(ORDERS), Put(OTHER, table(1, of))],
        lambda of: [Delete(ORDERS), Put(MOVED, table(1, of))],
        ConflictKind.KEY_DOES_NOT_EXIST,
    ),
    (
        "create, rename onto it",
        lambda of: [Put(MOVED, table(2))],
        lambda of: [Delete(ORDERS), Put(MOVED, table(1, of))],
        ConflictKind.KEY_EXISTS,
    ),
    (
        "replace, change",
        lambda of: [Delete(ORDERS), Put(ORDERS, table(2))],
        lambda of: [Put(ORDERS, table(3, of))],
        ConflictKind.CONTENT_ID_DIFFERS,
    ),
]


@pytest.fixture
def held(catalog: Catalog) -> UUID:
    """The content id of a table ``orders`` on main."""
    return catalog.commit("main", [Put(ORDERS, table(1))]).result[ORDERS]


@pytest.mark.parametrize(("first", "second", "kind"), [race[1:] for race in RACES], ids=[race[0] for race in RACES])
def test_loser_of_a_race_for_a_key_has_a_conflict(
    catalog: Catalog, held: UUID, first: Made, second: Made, kind: ConflictKind
) -> None:
    catalog.commit("main", first(held))
    with pytest.raises(ConflictError) as lost:
        catalog.commit("main", second(held))

    assert [conflict.kind for conflict in lost.value.details] == [kind]


def test_author_who_saw_the_key_taken_is_refused(catalog: Catalog, held: UUID) -> None:
    seen = catalog.branch("main").head
    with pytest.raises(RefusedError, match="exists and is put without an id"):
        catalog.commit("main", [Put(ORDERS, table(2))], expected=seen)


def test_request_that_no_state_makes_right_is_refused(catalog: Catalog, held: UUID) -> None:
    with pytest.raises(RefusedError, match="would turn ICEBERG_TABLE into NAMESPACE"):
        catalog.commit("main", [Put(ORDERS, Namespace(id=held))])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda lake: lake.create_branch("x"), lambda lake: lake.create_branch("x")),
        (lambda lake: lake.create_branch("x"), lambda lake: lake.create_tag("x")),
        (lambda lake: lake.create_tag("x"), lambda lake: lake.create_branch("x")),
        (lambda lake: lake.create_branch("gone"), lambda lake: lake.undelete_branch("gone")),
    ],
    ids=["branch, branch", "branch, tag", "tag, branch", "branch, undelete"],
)
def test_race_for_a_branch_or_tag_is_lost_by_conflict(
    catalog: Catalog, first: Callable[[Catalog], object], second: Callable[[Catalog], object]
) -> None:
    catalog.create_branch("gone")
    catalog.delete_branch("gone")
    first(catalog)
    with pytest.raises(HeadwaterError) as lost:
        second(catalog)

    assert exit_code(lost.value) == 6


def test_loser_of_a_race_for_a_catalog_has_a_conflict(catalogs: Catalogs) -> None:
    catalogs.create_catalog("lake", base_location="s3://lake/")
    with pytest.raises(HeadwaterError) as lost:
        catalogs.create_catalog("lake", base_location="s3://other/")

    assert exit_code(lost.value) == 6


def test_race_for_a_deleted_catalogs_name_is_lost_by_conflict(catalogs: Catalogs) -> None:
    catalogs.create_catalog("lake", base_location="s3://lake/")
    catalogs.delete_catalog("lake")
    catalogs.create_catalog("lake", base_location="s3://other/")
    with pytest.raises(HeadwaterError) as lost:
        catalogs.undelete_catalog("lake")

    assert exit_code(lost.value) == 6


def test_race_for_a_branchs_head_is_lost_by_conflict(catalog: Catalog, first: ObjectId) -> None:
    catalog.commit("main", [Put(OTHER, table(2))])
    with pytest.raises(HeadwaterError) as lost:
        catalog.assign_branch("main", first, expected=first)

    assert exit_code(lost.value) == 6
