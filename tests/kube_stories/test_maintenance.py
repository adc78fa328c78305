"""Maintenance as a person steers it: now, not now, and never by accident."""

from __future__ import annotations

from typing import Any

import pytest
from stories import Story, catalog_body, realm_body

from headwater.jobs import COLLECT
from headwater.tasks import Task, TaskQueue, TaskState

pytestmark = pytest.mark.long


def collections(story: Story) -> list[Task]:
    """Of this realm: the active one and the last that ended."""
    return [seen.value for seen in TaskQueue(story.store).of_realm(story.name) if seen.value.kind == COLLECT]


def finished(story: Story) -> list[Task]:
    everything = TaskQueue(story.store).list_tasks(kind=COLLECT, realm=story.name, limit=100)
    return [seen.value for seen in everything if seen.value.state is TaskState.SUCCEEDED]


def last_maintenance(body: dict[str, Any]) -> Any:
    return body["status"].get("maintenance", {}).get("lastSuccessTime")


def test_realm_knows_when_it_is_maintained_next(story: Story) -> None:
    story.make_realm(maintenance={"schedule": "0 3 * * 0", "timeZone": "Europe/Berlin"})

    (task,) = collections(story)
    assert task.state is TaskState.WAITING
    assert story.resource()["status"]["maintenance"]["nextTime"].endswith("T02:00:00Z") or task.due


def test_run_now_collects_once(story: Story) -> None:
    story.make_realm()
    story.kubectl("annotate", "realm", story.name, "headwater.dev/run-now=gc")
    found = story.namespace.wait_until("Realm", story.name, last_maintenance)
    story.kubectl("annotate", "realm", story.name, "example.com/note=1")  # makes the operator look once more
    story.wait("Realm", "Ready")

    assert found["status"]["maintenance"]["lastResult"] == "Succeeded"
    assert len(finished(story)) == 1


def test_run_now_is_asked_again_by_another_word(story: Story) -> None:
    story.make_realm()
    story.kubectl("annotate", "realm", story.name, "headwater.dev/run-now=gc")
    story.namespace.wait_until("Realm", story.name, last_maintenance)
    story.kubectl("annotate", "realm", story.name, "--overwrite", "headwater.dev/run-now=gc:again")
    story.namespace.wait_until("Realm", story.name, lambda _: len(finished(story)) == 2)

    story.wait("Realm", "MaintenanceHealthy")


def test_suspended_maintenance_has_no_next_time(story: Story) -> None:
    story.make_realm()
    story.apply_realm(maintenance={"suspend": True})
    found = story.namespace.wait_until("Realm", story.name, lambda body: body["status"]["maintenance"].get("suspended"))

    assert "nextTime" not in found["status"]["maintenance"]
    assert [task.state for task in collections(story) if task.is_active] == []


def test_maintenance_no_longer_suspended_has_a_next_time(story: Story) -> None:
    story.make_realm(maintenance={"suspend": True})
    story.apply_realm(maintenance={"suspend": False})

    story.namespace.wait_until("Realm", story.name, lambda body: body["status"]["maintenance"].get("nextTime"))


def test_import_of_a_catalog_runs_and_tells_its_end(story: Story) -> None:
    imports = [{"name": "initial", "locations": [f"file:///nowhere/{story.name}/"]}]
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name, imports=imports))

    found = story.namespace.wait_until(
        "Catalog", "lake", lambda body: [one for one in body.get("status", {}).get("imports", []) if one.get("lastResult")]
    )
    assert [one["name"] for one in found["status"]["imports"]] == ["initial"]
