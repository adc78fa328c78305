"""Updates of snapshots, branches, tags and statistics."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import ConflictError
from headwater.iceberg.changes import ChangeFormError, StaleSnapshotError, change_table
from metadata_fixtures import GONE, LOCATION, PARTITION_STATISTICS, STATISTICS, snapshot, table

Document = dict[str, Any]
NOW = 1_760_000_000_000
LATER = NOW + 10_000


def change(document: Document, *updates: Document) -> Document:
    return change_table(document, updates, now_ms=NOW)


def add(number: int, sequence: int | None, **more: Any) -> Document:
    """Add a snapshot on top of the two that are there."""
    fields = {"parent-snapshot-id": 22, "timestamp-ms": LATER} | {name.replace("_", "-"): value for name, value in more.items()}
    return {"action": "add-snapshot", "snapshot": snapshot(number, sequence, **fields)}


def move(name: str, number: int, **more: Any) -> Document:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": number, **more}


def remove(*numbers: int) -> Document:
    return {"action": "remove-snapshots", "snapshot-ids": list(numbers)}


def logged(document: Document) -> list[int]:
    return [entry["snapshot-id"] for entry in document["snapshot-log"]]


def test_append_makes_its_snapshot_current() -> None:
    result = change(table(2), add(33, 3), move("main", 33))

    assert (result["current-snapshot-id"], result["refs"]["main"]["snapshot-id"], result["last-sequence-number"]) == (33, 33, 3)
    assert result["snapshot-log"][-1] == {"timestamp-ms": LATER, "snapshot-id": 33}
    assert result["last-updated-ms"] == LATER


def test_snapshot_is_stored_as_it_was_sent() -> None:
    update = add(33, 3, x_engine={"deep": [1]}, summary={"operation": "append", "added-rows": "7"})

    assert change(table(2), update)["snapshots"][-1] == update["snapshot"]


def test_snapshot_alone_leaves_the_current_one() -> None:
    result = change(table(2), add(33, 3))

    assert (result["current-snapshot-id"], logged(result)) == (22, [11, 22])


def test_snapshot_that_is_there_is_refused() -> None:
    with pytest.raises(ChangeFormError, match="Snapshot already exists for id: 22"):
        change(table(2), add(22, 3))


@pytest.mark.parametrize("sequence", [1, 2])
def test_sequence_number_that_is_taken_is_a_conflict(sequence: int) -> None:
    with pytest.raises(StaleSnapshotError, match="older than last sequence number 2") as conflict:
        change(table(2), add(33, sequence))

    assert isinstance(conflict.value, ConflictError)
    assert conflict.value.path == "updates[0].snapshot.sequence-number"


def test_snapshot_without_a_parent_keeps_the_highest_number() -> None:
    result = change(table(2), add(33, 1, parent_snapshot_id=GONE))

    assert result["last-sequence-number"] == 2


@pytest.mark.parametrize(("update", "path"), [
    (add(33, None), "updates[0].snapshot.sequence-number"), (add(33, -1), "updates[0].snapshot.sequence-number"),
    (add(33, 3, manifest_list=GONE), "updates[0].snapshot.manifest-list"),
    (add(33, 3, manifest_list=7), "updates[0].snapshot.manifest-list"),
])  # fmt: skip
def test_snapshot_that_lacks_something_is_refused(update: Document, path: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change(table(2), update)

    assert refusal.value.path == path


def test_snapshot_before_a_schema_is_refused() -> None:
    with pytest.raises(ChangeFormError, match="before a schema is added"):
        change_table(None, [add(33, 3)], now_ms=NOW)


def test_first_format_has_no_sequence_numbers() -> None:
    result = change(table(1), add(33, None, manifest_list=GONE, manifests=[f"{LOCATION}/metadata/m.avro"]), move("main", 33))

    assert "last-sequence-number" not in result
    with pytest.raises(ChangeFormError, match="must be 0 in v1"):
        change(table(1), add(33, 3))


def test_rows_of_a_snapshot_are_counted() -> None:
    result = change(table(3), add(33, 3, first_row_id=30, added_rows=5), add(44, 4, first_row_id=40, added_rows=2))

    assert result["next-row-id"] == 42


def test_rows_that_are_taken_are_a_conflict() -> None:
    with pytest.raises(StaleSnapshotError, match="behind table next-row-id: 29 < 30"):
        change(table(3), add(33, 3, first_row_id=29, added_rows=5))


@pytest.mark.parametrize("rows", [{}, {"added_rows": 5}, {"first_row_id": 30}, {"first_row_id": 30, "added_rows": -1}])
def test_snapshot_without_row_ids_is_refused(rows: dict[str, int]) -> None:
    with pytest.raises(ChangeFormError, match=r"Cannot add a snapshot: (first-row-id|added-rows) is"):
        change(table(3), add(33, 3, **rows))


def test_upgraded_table_counts_its_rows_from_0() -> None:
    result = change(
        table(2), {"action": "upgrade-format-version", "format-version": 3}, add(33, 3, first_row_id=0, added_rows=4)
    )

    assert result["next-row-id"] == 4


def test_snapshot_that_passed_is_not_logged() -> None:
    result = change(table(2), add(33, 3), move("main", 33), add(44, 4), move("main", 44))

    assert logged(result) == [11, 22, 44]


def test_snapshot_that_passed_and_went_cuts_no_log() -> None:
    result = change(table(2), add(33, 3), move("main", 33), move("main", 22), remove(33))

    assert logged(result) == [11, 22, 22]


def test_rollback_is_logged_now() -> None:
    result = change(table(2), move("main", 11))

    assert result["snapshot-log"][-1] == {"timestamp-ms": NOW, "snapshot-id": 11}
    assert result["last-updated-ms"] == NOW


def test_log_goes_on_though_a_clock_ran_ahead() -> None:
    ahead = change(table(2), add(33, 3, timestamp_ms=NOW + 3_600_000), move("main", 33))

    result = change(ahead, add(44, 4, timestamp_ms=NOW), move("main", 44))

    assert [entry["timestamp-ms"] for entry in result["snapshot-log"][-2:]] == [NOW + 3_600_000] * 2
    assert result["snapshots"][-1]["timestamp-ms"] == NOW


def test_branch_and_tag_are_created() -> None:
    result = change(
        table(2),
        move("dev", 22, **{"min-snapshots-to-keep": 3, "max-snapshot-age-ms": 5, "max-ref-age-ms": 7}),
        {"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 11, "max-ref-age-ms": None},
    )

    assert result["refs"] == table(2)["refs"] | {
        "dev": {"snapshot-id": 22, "type": "branch", "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 5, "max-ref-age-ms": 7},
        "v1": {"snapshot-id": 11, "type": "tag"},
    }


def test_branch_on_its_snapshot_stays_as_it_is() -> None:
    document = table(2)

    assert change(document, move("main", 22, **{"max-ref-age-ms": None})) is document


@pytest.mark.parametrize(("update", "text"), [
    (move("dev", 99), "Cannot set dev to unknown snapshot: 99 (updates[0].snapshot-id)"),
    (move("main", 22, type="tag"), "Cannot set main to a tag"),
    (move("v1", 22, type="tag", **{"min-snapshots-to-keep": 2}), "Cannot set min-snapshots-to-keep for tag v1"),
])  # fmt: skip
def test_ref_that_cannot_be_is_refused(update: Document, text: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change(table(2), update)

    assert str(refusal.value).startswith(text)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_table_without_main_has_no_current_snapshot(version: int) -> None:
    result = change(table(version), {"action": "remove-snapshot-ref", "ref-name": "main"})

    assert result.get("current-snapshot-id", -1) == -1
    assert ("current-snapshot-id" in result) is (version < 3)
    assert "main" not in result["refs"]


def test_missing_ref_is_removed_already() -> None:
    document = table(2)

    assert change(document, {"action": "remove-snapshot-ref", "ref-name": "never"}) is document


def test_first_format_has_a_main_that_nobody_wrote() -> None:
    result = change(table(1), move("dev", 11))

    assert result["refs"]["main"] == {"snapshot-id": 22, "type": "branch"}


def test_refs_go_with_their_snapshots() -> None:
    result = change(table(2), remove(11))

    assert (list(result["refs"]), [entry["snapshot-id"] for entry in result["snapshots"]]) == (["main"], [22])
    assert result["snapshots"][0]["parent-snapshot-id"] == 11


def test_main_goes_with_its_snapshot() -> None:
    result = change(table(2), remove(22))

    assert (result["current-snapshot-id"], list(result["refs"]), result["snapshot-log"]) == (-1, ["old"], [])


def test_log_is_cut_at_what_expired() -> None:
    three = change(table(2), add(33, 3), move("main", 33))

    assert logged(change(three, remove(22))) == [33]
    assert logged(change(three, remove(11))) == [22, 33]


def test_snapshots_that_are_gone_are_removed_already() -> None:
    document = table(2)

    assert change(document, remove(99)) is document


def set_statistics(name: str, file: Document) -> Document:
    return {"action": f"set-{name}", name: file}


@pytest.mark.parametrize(("name", "file"), [("statistics", STATISTICS), ("partition-statistics", PARTITION_STATISTICS)])
def test_snapshot_has_one_statistics_file(name: str, file: Document) -> None:
    first = change(table(2), set_statistics(name, file), set_statistics(name, file | {"snapshot-id": 11}))

    result = change(first, set_statistics(name, file | {"statistics-path": f"{LOCATION}/other", "x": 1}))

    assert [entry["snapshot-id"] for entry in result[name]] == [22, 11]
    assert result[name][0] == file | {"statistics-path": f"{LOCATION}/other", "x": 1}


@pytest.mark.parametrize(("name", "file"), [("statistics", STATISTICS), ("partition-statistics", PARTITION_STATISTICS)])
def test_statistics_are_removed_alone_or_with_their_snapshot(name: str, file: Document) -> None:
    both = change(table(2), set_statistics(name, file), set_statistics(name, file | {"snapshot-id": 11}))

    alone = change(both, {"action": f"remove-{name}", "snapshot-id": 22}, {"action": f"remove-{name}", "snapshot-id": 99})

    assert [entry["snapshot-id"] for entry in alone[name]] == [11]
    assert [entry["snapshot-id"] for entry in change(both, remove(11))[name]] == [22]
