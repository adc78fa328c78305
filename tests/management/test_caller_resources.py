"""What a server tells of itself, and callers of themselves; tasks that are steered, and runs as pages."""

from __future__ import annotations

import html
from importlib.metadata import version

import pytest
from managed_office import ManagedOffice

from headwater.access import Privilege
from headwater.catalogs import CatalogGrant
from headwater.clock import Micros
from headwater.jobs import FSCK, Run, record_run
from headwater.store import id_text
from headwater.tasks import TaskQueue

TASKS = "/realms/acme/tasks"


def test_everybody_learns_how_to_log_in(office: ManagedOffice, open_office: ManagedOffice) -> None:
    asking, open_ = (each.call("GET", "/config").data for each in (office, open_office))

    assert asking == {
        "version": version("headwater"),
        "authentication": True,
        "tokenEndpoint": "/iceberg/v1/oauth/tokens",
        "revocationEndpoint": "/iceberg/v1/oauth/revoke",
    }
    assert (open_["authentication"], open_["tokenEndpoint"]) == (False, None)


def test_caller_learns_who_it_is(office: ManagedOffice) -> None:
    ann, root = (office.call("GET", "/realms/acme/me", token=office.token(name)).data for name in ("ann", "root"))

    assert (ann["principal"], ann["roles"], ann["privileges"]) == ("ann", ["readers"], ["TASK_READ"])
    assert ann["may"] == {"manageAccess": False, "createCatalogs": False, "readTasks": True, "manageTasks": False}
    assert (root["roles"], set(root["privileges"])) == (["service_admin"], {each.value for each in Privilege})
    assert all(root["may"].values())


def test_unnamed_caller_may_do_everything(open_office: ManagedOffice) -> None:
    me = open_office.call("GET", "/realms/acme/me").data

    assert (me["principal"], me["roles"]) == (None, []) and all(me["may"].values())
    assert all(open_office.call("GET", "/realms/acme/catalogs/lake/me").data["may"].values())
    assert open_office.call("GET", "/realms/nowhere/me").error[0] == 404


def test_rights_in_a_catalog_are_those_on_a_reference(office: ManagedOffice) -> None:
    grants = [CatalogGrant(privilege="TABLE_WRITE_DATA", references="dev*")]
    grants += [CatalogGrant(privilege="REFERENCE_DROP", on="reference", references="dev*")]
    token = office.make_holder("dev", lake=tuple(grants))
    path = "/realms/acme/catalogs/lake/me"
    main, dev = (office.call("GET", f"{path}{query}", token=token).data for query in ("", "?ref=dev-1"))

    assert [name for name, may in dev["may"].items() if may] == ["dropReference", "writeTables"]
    assert (main["ref"], dev["ref"], any(main["may"].values())) == ("main", "dev-1", False)


def test_catalog_that_is_hidden_tells_nobody_its_rights(office: ManagedOffice) -> None:
    hidden, missing = (
        office.call("GET", f"/realms/acme/catalogs/{name}/me", token=office.token("ann")) for name in ("vault", "nope")
    )

    assert hidden.error == missing.error == (404, "NotFoundException")
    assert hidden.message.replace("vault", "nope") == missing.message


def test_task_is_cancelled_and_tried_again(open_office: ManagedOffice) -> None:
    task = id_text(open_office.tasks["acme"])

    assert open_office.call("POST", f"{TASKS}/{task}/run-now").data["state"] == "WAITING"
    assert open_office.call("POST", f"{TASKS}/{task}/retry").error[0] == 400
    assert open_office.call("POST", f"{TASKS}/{task}/cancel").data["state"] == "CANCELLED"
    assert open_office.call("POST", f"{TASKS}/{task}/run-now").error[0] == 400
    assert open_office.call("POST", f"{TASKS}/{task}/retry").data["state"] == "WAITING"


@pytest.mark.parametrize("step", ["retry", "run-now", "cancel"])
def test_task_of_another_realm_is_steered_by_nobody(office: ManagedOffice, root: str, step: str) -> None:
    others, missing = id_text(office.tasks["rival"]), "0" * 15 + "9"
    answers = [office.call("POST", f"{TASKS}/{task}/{step}", token=root) for task in (others, missing)]

    assert [answer.error[0] for answer in answers] == [404, 404]
    assert answers[0].message.replace(others, missing) == answers[1].message
    assert TaskQueue(office.store).read_task(office.tasks["rival"]).value.is_active


def test_check_of_a_realm_is_submitted(open_office: ManagedOffice) -> None:
    first, second = (open_office.call("POST", TASKS, {"kind": FSCK}) for _ in range(2))

    assert (first.status, second.status) == (201, 200)
    assert (first.data["kind"], first.data["id"]) == (FSCK, second.data["id"])
    assert open_office.call("POST", TASKS, {"kind": "purge"}).error[0] == 400


def test_run_is_a_page_that_runs_nothing(open_office: ManagedOffice) -> None:
    nasty, now = "<script>alert(1)</script> s3://user:secret@host/", open_office.clock.now()
    task = open_office.tasks["acme"]
    run = Run(kind="gc", realm="acme", started=now, finished=Micros(now + 1), task=task, attempt=2, error=nasty, notes=(nasty,))
    record_run(open_office.store, run)
    answer = open_office.call("GET", f"/realms/acme/runs/{id_text(task)}-2/report")
    page = answer.content.decode()

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert "<script" not in page and html.escape("<script>alert(1)</script>") in page
    assert "secret" not in page and open_office.store.url not in page
    assert open_office.call("GET", f"/realms/rival/runs/{id_text(task)}-2/report").error[0] == 404
