"""Tasks and maintenance in the console: what a click on it changes in the store, and what the store changes on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from console_browser import Console
from console_server import ConsoleServer
from shown_lake import LAKE, REALM

from headwater.jobs import COLLECT, FSCK
from headwater.policies import list_stops
from headwater.store import ObjectId, id_text
from headwater.tasks import Task, TaskQueue

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
TASKS = ("realms", REALM, "tasks")
_STATES_BUT = "table[aria-label=Tasks] .state:not(:text-is('%s'))"


@pytest.fixture
def queue(server: ConsoleServer) -> Iterator[TaskQueue]:
    """Nothing is active but the report that is due tomorrow."""
    tasks = TaskQueue(server.store)
    yield tasks
    for task in tasks.list_tasks(realm=REALM):
        if task.value.state in ("WAITING", "RUNNING") and task.value.subject != "later":
            tasks.cancel_task(task.id)


def last_task(queue: TaskQueue, kind: str) -> tuple[ObjectId, Task]:
    task = max(queue.list_tasks(realm=REALM, kind=kind), key=lambda each: each.value.created)
    return task.id, task.value


def submit(queue: TaskQueue, server: ConsoleServer, kind: str = FSCK) -> ObjectId:
    return queue.submit_task(kind, realm=REALM, realm_key=server.lake.registry.read_realm(REALM).key).id


def test_collection_that_is_submitted_is_followed_to_its_end(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    console = visit()
    console.go(*TASKS)
    console.press("Collect garbage")
    console.confirm("Submit the task")
    console.see("No worker took it yet")
    task_id, task = last_task(queue, COLLECT)
    assert task.state == "WAITING" and console.page.url.endswith(f"/tasks/{id_text(task_id)}")
    server.lake.work(task_id)
    console.see("Succeeded")

    assert console.page.get_by_role("link", name="Run", exact=True).count() == 1


def test_check_that_is_over_at_once_is_shown(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    console = visit()
    console.go("realms", REALM, "checks")
    rows = console.page.locator("table[aria-label=Checks] tbody tr")
    rows.first.wait_for()
    before = rows.count()

    late = console.hold("**/tasks?kind=fsck")
    console.press("Check the realm")
    with console.page.expect_request("**/tasks?kind=fsck"):
        console.confirm("Submit the check")
    server.lake.work(last_task(queue, FSCK)[0])
    late[0].continue_()
    rows.nth(before).wait_for()

    assert rows.count() == before + 1


def test_cancelled_task_is_tried_once_more(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    console, task_id = visit(), submit(queue, server)
    console.go(*TASKS, id_text(task_id))
    console.press("Cancel")
    console.confirm("Cancel the task")
    console.see("Cancelled")
    assert queue.read_task(task_id).value.state == "CANCELLED"
    console.press("Retry")
    console.confirm("Try it once more")
    console.see("Waiting")

    assert queue.read_task(task_id).value.state == "WAITING"


def test_failed_task_says_why_and_is_tried_once_more(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    console, task_id = visit(), submit(queue, server)
    lease = queue.claim_task(task_id, "worker-2")
    assert lease is not None
    lease.fail_task("the disk <b>burns</b>", retry=False)
    console.go(*TASKS, id_text(task_id))
    console.see("the disk <b>burns</b>")
    console.press("Retry")
    console.confirm("Try it once more")
    console.see("Waiting")

    assert queue.read_task(task_id).value.state == "WAITING"


def test_task_of_tomorrow_is_run_now(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    [task] = [task for task in queue.list_tasks(realm=REALM) if task.value.subject == "later"]
    console = visit()
    console.go(*TASKS, id_text(task.id))
    console.press("Run now")
    console.confirm("Run it now")

    assert queue.read_task(task.id).value.due <= server.store.clock.now()


def test_state_shows_its_own_tasks_behind_more(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    console = visit()
    page = console.page
    page.route("**/tasks?*", lambda route: route.continue_(url=f"{route.request.url}&pageSize=2"))
    console.go(*TASKS)
    rows = page.locator("table[aria-label=Tasks] tbody tr")
    while page.get_by_role("button", name="Show more").count():
        shown = rows.count()
        console.press("Show more")
        rows.nth(shown).wait_for()
    assert rows.count() == len(queue.list_tasks(realm=REALM))
    page.get_by_role("link", name="Succeeded").click()
    page.wait_for_selector("a.choice[aria-current]:has-text('Succeeded')")
    page.wait_for_selector(_STATES_BUT % "Succeeded", state="detached")
    rows.nth(1).wait_for()
    assert rows.count() == 2
    console.press("Show more")
    rows.nth(2).wait_for()

    assert page.locator(_STATES_BUT % "Succeeded").count() == 0


def test_reader_may_look_at_tasks_and_nothing_else(visit: Visit, server: ConsoleServer, queue: TaskQueue) -> None:
    console, task_id = visit("ann"), submit(queue, server)
    console.go(*TASKS, id_text(task_id))
    console.see("No worker took it yet")
    console.page.wait_for_load_state("networkidle")  # it knows what ann may do

    assert console.page.locator(".heading button").filter(has_text="Cancel").count() == 0


def test_stopped_maintenance_is_resumed(visit: Visit, server: ConsoleServer) -> None:
    console = visit()
    console.go("realms", REALM, "maintenance")
    console.press("Stop maintenance")
    console.page.get_by_label("Catalog").fill(LAKE)
    console.page.get_by_label("Why").fill("an <i>audit</i>")
    console.confirm("Stop it")
    console.see("an <i>audit</i>")
    [stop] = list_stops(server.store)
    assert (stop.scope.realm, stop.scope.catalog, stop.by, stop.why) == (REALM, LAKE, "root", "an <i>audit</i>")
    console.press("Resume")
    console.confirm("Resume")
    console.see("Nothing is stopped")

    assert list_stops(server.store) == []


def test_stop_of_no_catalog_is_refused_in_its_dialog(visit: Visit, server: ConsoleServer) -> None:
    console = visit()
    console.go("realms", REALM, "maintenance")
    console.press("Stop maintenance")
    console.page.get_by_label("Catalog").fill("nowhere")
    console.page.locator("dialog").get_by_role("button", name="Stop it").click()
    console.see("has no catalog 'nowhere'")

    assert console.page.get_by_label("Catalog").input_value() == "nowhere"
    assert list_stops(server.store) == []
