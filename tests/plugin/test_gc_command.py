"""`kubectl headwater gc`: asks by an annotation, and follows the status."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bodies import realm_status
from plugin_calls import Lakes, Plugin

RUN_NOW = "headwater.dev/run-now"

Body = dict[str, Any]


def task(state: str, **fields: Any) -> Body:
    return {"id": "0000000000000042", "kind": "gc", "subject": "", "state": state, "attempt": 1, **fields}


def ended(result: str = "Succeeded", *, task_id: str = "0000000000000042") -> Body:
    counts = {"objectsDeleted": 31, "bytesReclaimed": 2048}
    return {"lastTask": task_id, "lastResult": result, "lastTime": "2026-11-22T12:00:00Z", "suspended": False, **counts}


def word_of(found: Body) -> str:
    return str(found["metadata"].get("annotations", {}).get(RUN_NOW, ""))


def test_each_call_asks_with_a_new_word(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()
    plugin.ok("gc", "acme")
    first = word_of(lakes.read())
    plugin.ok("gc", "acme")

    assert first.startswith("gc:") and word_of(lakes.read()) not in ("", first)


def test_reclaimed_bytes_are_told_at_the_end(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()
    steps = iter(
        [
            realm_status(tasks=[task("RUNNING", done=1, total=4, unit="chunks")]),
            realm_status(tasks=[task("RUNNING", done=3, total=4, unit="chunks")]),
            realm_status(tasks=[], maintenance=ended()),
        ]
    )

    def go_on(found: Body) -> bool:
        if word_of(found) and (status := next(steps, None)):
            lakes.set_status(status)
        return False

    with lakes.watched(go_on):
        said = plugin.ok("gc", "acme", "--wait")
    assert said.splitlines()[-1] == "realm/acme: succeeded, 31 objects deleted, 2.0 KiB reclaimed"


def test_collection_that_failed_ends_with_8(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()

    def fail(found: Body) -> bool:
        if word_of(found):
            lakes.set_status(realm_status(maintenance=ended("Failed")))
        return bool(word_of(found))

    with lakes.watched(fail):
        assert plugin("gc", "acme", "--wait").exit_code == 8


@pytest.mark.long
def test_earlier_collection_does_not_count(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(status=realm_status(maintenance=ended(task_id="0000000000000007")))

    said = plugin.refused(4, "gc", "acme", "--wait", "--timeout", "1s")
    assert "no worker has begun it" in said


@pytest.mark.parametrize("state", ["INACTIVE", "PURGING", "INITIALIZING"])
def test_realm_that_is_not_active_is_not_asked(plugin: Plugin, lakes: Lakes, state: str) -> None:
    lakes.make_realm(status=realm_status(state=state))

    assert f"realm/acme is {state}" in plugin.refused(5, "gc", "acme")
    assert word_of(lakes.read()) == ""
