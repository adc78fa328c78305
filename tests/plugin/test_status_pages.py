"""What `kubectl headwater status` says of resources: pure, from their bodies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from plugin_bodies import (
    NOW,
    catalog_body,
    catalog_status,
    condition,
    import_status,
    realm_body,
    realm_status,
    time_text,
    with_identity,
)

from headwater.console import bytes_text
from headwater.text_tables import text_table
from headwater_operator.plugin.status_command import findings, next_things, page_lines, realm_page, realm_row, row_lines, span

Body = dict[str, Any]


def realm(**fields: Any) -> Body:
    return with_identity(realm_body(), **realm_status(**fields))


def catalog(name: str = "lake", **fields: Any) -> Body:
    return with_identity(catalog_body(name), uid=f"uid-{name}", **catalog_status(**fields))


def lines(found: Body, *catalogs: Body, events: tuple[Body, ...] = ()) -> list[str]:
    return page_lines(realm_page(found, catalogs, events, NOW), NOW)


def line(found: list[str], start: str) -> str:
    """The words of the one line that begins so, with single blanks between them."""
    (one,) = [" ".join(text.split()) for text in found if text.strip().startswith(start)]
    return one


def test_realm_that_is_well_has_no_findings() -> None:
    assert findings(realm()) == []


@pytest.mark.parametrize("kind", ["Ready", "Accepted", "StoreReachable", "MaintenanceHealthy", "CredentialsAvailable"])
@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_condition_that_is_not_true_is_a_finding(kind: str, status: str) -> None:
    conditions = [condition(kind, status, "SecretMissing", "it is not there")]

    assert findings(realm(conditions=conditions)) == [f"{kind} is {status} (SecretMissing): it is not there"]


def test_drift_is_a_finding_when_it_is_true() -> None:
    assert findings(realm(conditions=[condition("Drifted", "True", "DriftReported", "state is INACTIVE")])) == [
        "Drifted is True (DriftReported): state is INACTIVE"
    ]


def test_deletion_under_way_is_no_finding_by_itself() -> None:
    conditions = [condition("Deleting", "True", "PurgeHold"), condition("Purging", "False", "PurgeHold")]

    assert findings(realm(conditions=conditions)) == []


def test_resource_without_a_status_was_not_looked_at() -> None:
    assert findings(with_identity(realm_body())) == ["no operator has looked at it yet"]


def test_change_that_was_not_acted_on_yet_is_a_finding() -> None:
    found = realm()
    found["metadata"]["generation"] = 2

    assert findings(found) == ["the operator has not acted on the last change yet (generation 2, seen 1)"]


def test_findings_of_catalogs_stand_on_the_page_of_their_realm() -> None:
    broken = catalog(conditions=[condition("ImportsHealthy", "False", "TaskDeadLettered", "import initial failed")])

    assert realm_page(realm(), [broken], [], NOW)["findings"] == [
        "catalog lake: ImportsHealthy is False (TaskDeadLettered): import initial failed"
    ]


def test_events_to_come_are_in_the_order_of_time() -> None:
    sync = catalog(imports=[import_status("nightly", nextTime=time_text(hours=9))])
    retry = {"id": "9", "kind": "purge", "subject": "", "state": "WAITING", "attempt": 2, "due": time_text(minutes=5)}

    assert [thing["what"] for thing in next_things(realm(tasks=[retry]), [sync], NOW)] == [
        "task purge (after 2 attempts)",
        "import nightly of catalog lake",
        "collection of garbage",
    ]


def test_suspended_collection_is_not_announced() -> None:
    assert next_things(realm(maintenance={"nextTime": time_text(days=3), "suspended": True}), [], NOW) == []


def test_waiting_collection_is_announced_once() -> None:
    waiting = {"id": "9", "kind": "gc", "subject": "", "state": "WAITING", "attempt": 0, "due": time_text(days=3)}

    assert [thing["what"] for thing in next_things(realm(tasks=[waiting]), [], NOW)] == ["collection of garbage"]


def test_end_of_the_hold_is_announced() -> None:
    held = realm(state="INACTIVE", purge={"holdUntil": time_text(hours=20)}, maintenance={})

    assert next_things(held, [], NOW) == [
        {"time": time_text(hours=20), "what": "the hold ends, and the purge begins: everything in the realm is deleted"}
    ]


def test_past_times_are_not_next() -> None:
    assert next_things(realm(maintenance={"nextTime": time_text(days=-3)}), [], NOW) == []


def test_page_begins_with_what_the_realm_is() -> None:
    assert lines(realm())[:2] == ["Realm lakes/acme: ACTIVE", "  realm id:         acme (key 033f1a6b2c400001)"]


def test_page_tells_the_last_maintenance() -> None:
    assert line(lines(realm()), "last maintenance") == (
        "last maintenance: Succeeded 4d ago; 1204 objects deleted, 3.2 MiB reclaimed"
    )


def test_failed_maintenance_is_told_with_the_last_success() -> None:
    failed = {"lastResult": "Failed", "lastTime": time_text(hours=-50), "lastSuccessTime": time_text(days=-11)}

    assert line(lines(realm(maintenance=failed)), "last maintenance") == "last maintenance: Failed 2d ago; last success 11d ago"


def test_running_task_shows_how_far_it_is() -> None:
    task = {"id": "9", "kind": "gc", "subject": "", "state": "RUNNING", "attempt": 1, "started": time_text(seconds=-90)}

    assert (
        line(lines(realm(tasks=[{**task, "done": 3, "total": 14, "unit": "chunks"}])), "gc")
        == "gc - RUNNING 1 3 of 14 chunks for 90s -"
    )


def test_imports_of_a_catalog_are_in_its_line() -> None:
    assert (
        line(lines(realm(), catalog()), "lake") == "lake ACTIVE True 14 initial Succeeded 9d ago, 13 imported, 1 quarantined -"
    )


def test_tables_that_an_import_left_are_shown_with_reasons() -> None:
    codes = [{"code": "Corrupt", "tables": 2}, {"code": "NoMetadata", "tables": 1}]
    repeated = catalog(imports=[import_status(imported=0, updated=2, unchanged=9, quarantined=3, quarantineCodes=codes)])

    shown = line(lines(realm(), repeated), "lake")
    assert "9d ago, 2 updated, 9 unchanged, 3 quarantined (Corrupt, NoMetadata)" in shown


def test_failed_import_does_not_show_the_counts_before() -> None:
    failed = catalog(imports=[import_status(lastResult="Failed", imported=13, quarantined=1)])

    assert line(lines(realm(), failed), "lake") == "lake ACTIVE True 14 initial Failed 9d ago -"


def test_running_import_shows_how_far_it_is() -> None:
    running = catalog(imports=[import_status(state="RUNNING", done=5, total=14, unit="tables")])

    assert line(lines(realm(), running), "lake") == "lake ACTIVE True 14 initial RUNNING 5 of 14 tables -"


def test_ended_import_shows_its_counts_where_an_earlier_operator_left_its_progress() -> None:
    entry = import_status(state="SUCCEEDED", done=14, total=14, unit="tables", imported=13, quarantined=1)
    shown = line(lines(realm(), catalog(imports=[entry])), "lake")

    assert "13 imported, 1 quarantined" in shown
    assert "14 of 14" not in shown


def test_purge_shows_how_many_rows_are_left() -> None:
    purging = realm(state="PURGING", purge={"rowsDeleted": 900, "rowsRemaining": 100})

    assert line(lines(purging), "purge") == "purge: 900 rows deleted, 100 remaining"


def test_events_are_shown_newest_last_and_only_the_last() -> None:
    events = tuple(
        {
            "metadata": {"name": f"e{number}"},
            "involvedObject": {"kind": "Realm", "name": "acme"},
            "type": "Normal",
            "reason": "RealmUpdated",
            "message": f"number {number}",
            "lastTimestamp": time_text(minutes=-number),
        }
        for number in range(20)
    )
    shown = [text for text in lines(realm(), events=events) if "number" in text]

    assert (len(shown), shown[-1].split()) == (10, ["0s", "Normal", "RealmUpdated", "realm/acme", "1", "number", "0"])


def test_table_of_realms_has_one_line_each() -> None:
    rows = [realm_row(realm()), realm_row(with_identity(realm_body("beta")))]
    found = [text.split() for text in row_lines(rows, NOW, with_namespace=False)]

    assert found[1:] == [
        ["acme", "acme", "ACTIVE", "True", "1", "14", "in", "3d", "-"],
        ["beta", "beta", "-", "-", "-", "-", "-", "no", "operator", "has", "looked", "at", "it", "yet"],
    ]


def test_no_realms_are_one_sentence() -> None:
    assert row_lines([], NOW, with_namespace=False) == ["no realms"]


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=119), "119m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=400), "400d"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_ages_are_as_short_as_kubectls(age: timedelta, text: str) -> None:
    assert span(age.total_seconds()) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")])
def test_sizes_are_for_people(count: int, text: str) -> None:
    assert bytes_text(count) == text


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table(("A", "B"), [("long", 1), (None, True)]) == ["A      B", "long   1", "-      yes"]
