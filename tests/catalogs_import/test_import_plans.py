from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import msgspec
import pytest

from headwater.catalogs import ContentKey, ContentType, DeltaLakeTable, IcebergTable, Namespace
from headwater.catalogs.importer.import_plan import ImportPlan, check_import_keys, missing_namespaces, plan_import
from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable

MakeFound = Callable[..., AcceptedTable]
ORDERS = ContentKey.of("sales", "orders")
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.fixture
def plan(make_found: MakeFound) -> Callable[..., ImportPlan]:
    """Plans sales.orders, by default at version 2, against what is there."""

    def make(present: dict[ContentKey, Any], *, is_sync: bool = False, **table: Any) -> ImportPlan:
        wanted, refused = check_import_keys([make_found("sales.orders", **{"version": 2, **table})])
        assert not refused
        return plan_import(wanted, present, is_sync=is_sync)

    return make


@pytest.fixture
def make_there(make_found: MakeFound) -> Callable[..., IcebergTable]:
    """What the catalog has after sales.orders was imported."""

    def make(**table: Any) -> IcebergTable:
        (wanted,), _ = check_import_keys([make_found("sales.orders", **table)])
        return msgspec.structs.replace(cast(IcebergTable, wanted.as_content()), id=uuid4())

    return make


@pytest.fixture
def make_view(make_found: MakeFound) -> MakeFound:
    """sales.orders as a view that knows its versions up to the one in force."""

    def make(*, version: int, **table: Any) -> AcceptedTable:
        found = make_found("sales.orders", version=version, **table)
        return msgspec.structs.replace(found, kind="view", version_id=version, versions=tuple(range(1, version + 1)), log=())

    return make


MakeThere = Callable[..., IcebergTable]
Plan = Callable[..., ImportPlan]


def code_of(plan: ImportPlan) -> QuarantineCode:
    assert not (plan.new or plan.forward or plan.unchanged)
    (row,) = plan.quarantined
    return row.code


def test_absent_table_is_new(plan: Plan) -> None:
    (wanted,) = plan({}).new

    assert wanted.key == ORDERS
    assert wanted.as_content().snapshot_id == 2


def test_table_without_snapshots_has_minus_one(make_found: MakeFound) -> None:
    (wanted,), _ = check_import_keys([msgspec.structs.replace(make_found("t"), snapshot_id=None)])

    assert wanted.as_content().snapshot_id == -1


def test_table_with_the_same_metadata_is_unchanged(plan: Plan, make_there: MakeThere) -> None:
    assert len(plan({ORDERS: make_there(version=2)}).unchanged) == 1


def test_another_spelling_of_the_same_place_is_unchanged(plan: Plan, make_there: MakeThere) -> None:
    there = make_there(version=2, place="s3a://lake/wh", uuid=UUID)

    assert len(plan({ORDERS: there}, uuid=UUID).unchanged) == 1


def test_another_spelling_of_the_same_uuid_is_unchanged(plan: Plan, make_there: MakeThere) -> None:
    there = make_there(version=2, uuid=UUID.upper())

    assert len(plan({ORDERS: there}, uuid=UUID).unchanged) == 1


@pytest.mark.parametrize(("is_sync", "code"), [(False, QuarantineCode.DIFFERS), (True, QuarantineCode.NOT_FORWARD)])
def test_table_created_again_under_the_same_name_is_reported(
    plan: Plan, make_there: MakeThere, is_sync: bool, code: QuarantineCode
) -> None:
    found = plan({ORDERS: make_there(version=2, uuid=UUID)}, is_sync=is_sync)

    assert code_of(found) is code
    assert f"is another table in the catalog (uuid {UUID}" in found.quarantined[0].message


@pytest.mark.parametrize(("is_sync", "code"), [(False, QuarantineCode.DIFFERS), (True, QuarantineCode.NOT_FORWARD)])
@pytest.mark.parametrize("field", ["snapshot_id", "schema_id", "spec_id", "sort_order_id"])
def test_metadata_written_anew_under_its_name_is_reported(
    plan: Plan, make_there: MakeThere, field: str, is_sync: bool, code: QuarantineCode
) -> None:
    there = msgspec.structs.replace(make_there(version=2), **{field: 7})

    found = plan({ORDERS: there}, is_sync=is_sync)

    assert code_of(found) is code
    assert "which was written anew since" in found.quarantined[0].message


def test_table_that_someone_put_with_its_location_alone_is_unchanged(plan: Plan, make_there: MakeThere) -> None:
    there = IcebergTable(id=uuid4(), metadata_location=make_there(version=2).metadata_location)

    assert len(plan({ORDERS: there}, is_sync=True).unchanged) == 1


def test_view_written_anew_under_its_name_is_reported(make_view: MakeFound) -> None:
    (wanted,), _ = check_import_keys([make_view(version=2)])
    there = msgspec.structs.replace(wanted.as_content(), id=uuid4(), version_id=1)

    assert code_of(plan_import([wanted], {wanted.key: there}, is_sync=True)) is QuarantineCode.NOT_FORWARD


def test_import_done_once_only_reports_a_difference(plan: Plan, make_there: MakeThere) -> None:
    assert code_of(plan({ORDERS: make_there(version=1)})) is QuarantineCode.DIFFERS


def test_import_done_once_names_a_sync_that_moves_tables(plan: Plan, make_there: MakeThere) -> None:
    (row,) = plan({ORDERS: make_there(version=1)}).quarantined

    assert "an import with mode sync moves it" in row.message


@pytest.mark.parametrize("there", [{"version": 3}, {"version": 1, "uuid": UUID}, {"version": 1, "place": "s3://lake/old"}])
def test_import_done_once_says_why_a_sync_would_move_nothing(plan: Plan, make_there: MakeThere, there: dict[str, Any]) -> None:
    present = {ORDERS: make_there(**there)}

    (row,), (refused,) = plan(present).quarantined, plan(present, is_sync=True).quarantined

    assert (row.code, row.message) == (QuarantineCode.DIFFERS, refused.message)


@pytest.mark.parametrize(("there", "here", "moves"), [(1, 2, True), (2, 1, False)])
def test_import_done_once_names_a_sync_for_advancing_views_only(
    make_view: MakeFound, there: int, here: int, moves: bool
) -> None:
    (held,), _ = check_import_keys([make_view(version=there)])
    (wanted,), _ = check_import_keys([make_view(version=here)])

    (row,) = plan_import(
        [wanted], {wanted.key: msgspec.structs.replace(held.as_content(), id=uuid4())}, is_sync=False
    ).quarantined

    assert ("mode sync" in row.message) is moves


def test_sync_moves_a_table_to_what_grew_out_of_it(plan: Plan, make_there: MakeThere) -> None:
    there = make_there(version=1)

    ((wanted, over),) = plan({ORDERS: there}, is_sync=True).forward

    assert (wanted.table.snapshot_id, over) == (2, there)


def test_sync_never_moves_back(plan: Plan, make_there: MakeThere) -> None:
    assert code_of(plan({ORDERS: make_there(version=3)}, is_sync=True)) is QuarantineCode.NOT_FORWARD


def test_sync_never_puts_one_table_over_another(plan: Plan, make_there: MakeThere) -> None:
    there = make_there(version=1, uuid=str(uuid4()))

    assert code_of(plan({ORDERS: there}, is_sync=True)) is QuarantineCode.NOT_FORWARD


@pytest.mark.parametrize(
    "present", [{ORDERS: Namespace()}, {ORDERS: DeltaLakeTable()}, {ContentKey.of("sales"): DeltaLakeTable()}]
)
def test_key_that_something_else_has_is_taken(plan: Plan, present: dict[ContentKey, Any]) -> None:
    assert code_of(plan(present)) is QuarantineCode.KEY_TAKEN
    assert any(kind.name in plan(present).quarantined[0].message for kind in ContentType)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a\x07.t", QuarantineCode.BAD_KEY),
        (".".join("x" * 21), QuarantineCode.BAD_KEY),
        ("x" * 480, QuarantineCode.BAD_LOCATION),
    ],
)
def test_folder_that_gives_no_key_is_quarantined(make_found: MakeFound, name: str, code: QuarantineCode) -> None:
    wanted, refused = check_import_keys([make_found(name, place="s3://lake/a-long-place-to-be-in")])

    assert (wanted, [row.code for row in refused]) == ([], [code])


def test_quarantine_of_a_survey_stays(make_found: MakeFound) -> None:
    row = QuarantinedTable(directory="s3://lake/t", key=("t",), code=QuarantineCode.CORRUPT, message="broken")

    assert check_import_keys([row]) == ([], [row])


def test_namespaces_are_made_only_where_missing() -> None:
    keys = [ContentKey.of("a", "b", "t"), ContentKey.of("a", "t")]

    assert missing_namespaces(keys, {}) == [ContentKey.of("a"), ContentKey.of("a", "b")]
    assert missing_namespaces(keys, {ContentKey.of("a"): Namespace()}) == [ContentKey.of("a", "b")]
