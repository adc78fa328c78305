"""Resources of management: what is written is read back, lists show what may be seen, and secrets appear once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog
from managed_office import ManagedOffice, unhashed

from file_writing_client import FileWritingClient
from headwater.access import PRIVILEGES, Privilege, SecurableKind
from headwater.catalogs import CatalogGrant, ContentKey, IcebergTable, Put
from headwater.iceberg.metadata_json import split_metadata
from headwater.jobs import COLLECT
from headwater.realms import RealmState, rotate_principal
from headwater.store import id_text
from headwater.tasks import TaskQueue
from headwater_server.identity import HashSlots

LAKE = "/realms/acme/catalogs/lake"
ROLE = f"{LAKE}/roles/analyst"


def pages(office: ManagedOffice, path: str, name: str, *, token: str, size: int) -> Iterator[list[Any]]:
    mark, query = "", f"{'&' if '?' in path else '?'}pageSize={size}"
    while True:
        data = office.call("GET", f"{path}{query}{mark}", token=token).data
        yield data[name]
        if data["nextPageToken"] is None:
            return
        mark = f"&pageToken={data['nextPageToken']}"


def names(office: ManagedOffice, path: str, name: str, *, token: str) -> list[str]:
    return [item["name"] for page in pages(office, path, name, token=token, size=2) for item in page]


def test_catalog_is_created_changed_deleted_and_undeleted(office: ManagedOffice, root: str) -> None:
    wish = {"name": "new", "baseLocation": "s3://acme/new/", "properties": {"a": "1", "b": "2"}, "hold": "7d"}
    made = office.call("POST", "/realms/acme/catalogs", wish, token=root)
    again = office.call("POST", "/realms/acme/catalogs", wish, token=root)
    patch = {"properties": {"a": None, "c": "3"}, "deletionProtection": True}
    changed = office.call("PATCH", "/realms/acme/catalogs/new", patch, token=root).data

    assert (made.status, again.status) == (201, 200) and made.data == again.data
    assert changed["properties"] == {"b": "2", "c": "3"} and changed["hold"] == "7d"
    assert office.call("DELETE", "/realms/acme/catalogs/new", token=root).status == 400
    assert office.call("PATCH", "/realms/acme/catalogs/new", {"deletionProtection": False}, token=root).status == 200
    assert office.call("DELETE", "/realms/acme/catalogs/new", token=root).data["state"] == "DELETED"
    assert office.call("DELETE", "/realms/acme/catalogs/new", token=root).status == 404
    back = office.call("POST", f"/realms/acme/catalogs/{made.data['id']}/undelete?newName=old", token=root).data
    assert (back["name"], back["id"], back["state"]) == ("old", made.data["id"], "ACTIVE")


def test_guests_are_listed_and_adopted(office: ManagedOffice, root: str, tmp_path: Path) -> None:
    lake = office.catalogs().open_catalog("lake")
    client = FileWritingClient(tmp_path)
    documents = [client.new_document(name, location=f"s3://acme/lake/{name}") for name in ("lines", "orders")]
    puts = [
        Put(
            ContentKey.of(f"t{at}"),
            IcebergTable(metadata_location="s3://x"),
            None,
            split_metadata(json.dumps(document).encode()),
        )
        for at, document in enumerate(documents)
    ]
    lake.commit(None, puts)

    path = f"{LAKE}/guests"
    assert [guest["key"] for page in pages(office, path, "guests", token=root, size=1) for guest in page] == [["t0"], ["t1"]]
    adopted = office.call("POST", f"{path}/adopt", {"keys": [["t1"]]}, token=root)
    assert adopted.data == {"adopted": [["t1"]], "refused": []}
    assert [guest["key"] for guest in office.call("GET", path, token=root).data["guests"]] == [["t0"]]


def test_places_of_files_lie_in_the_catalogs_locations(office: ManagedOffice, root: str) -> None:
    office.call("POST", "/realms/acme/catalogs", {"name": "new", "baseLocation": "s3://acme/new/"}, token=root)
    changed = office.call("PATCH", "/realms/acme/catalogs/new", {"filePlaces": ["s3://acme/new/hashed/"]}, token=root)
    refused = office.call("PATCH", "/realms/acme/catalogs/new", {"filePlaces": ["s3://acme/other/"]}, token=root)

    assert changed.data["filePlaces"] == ["s3://acme/new/hashed/"]
    assert refused.status == 400 and "is no place for files" in refused.message


def test_maintenance_is_stopped_and_resumed(office: ManagedOffice, root: str) -> None:
    path = "/realms/acme/maintenance"
    stopped = office.call("POST", f"{path}/stop", {"catalog": "lake", "reason": "an audit"}, token=root).data

    assert (stopped["catalog"], stopped["by"], stopped["reason"]) == ("lake", "root", "an audit")
    assert office.call("GET", path, token=root).data == {"stops": [stopped]}
    assert office.call("POST", f"{path}/resume", {}, token=root).data == {"stops": [stopped]}
    assert office.call("POST", f"{path}/resume", {"catalog": "lake"}, token=root).data == {"stops": []}


def test_policies_are_set_listed_and_removed(office: ManagedOffice, root: str) -> None:
    table = IcebergTable(metadata_location="s3://acme/lake/orders/metadata/1.json")
    office.catalogs().open_catalog("lake").commit(None, [Put(ContentKey.of("orders"), table)])
    rule = {"branches": "*", "maxAge": "5d", "minToKeep": 3, "maxRefAge": None}
    path = f"{LAKE}/policies"

    own = office.call("PUT", f"{path}/snapshots", {"snapshots": [rule]}, token=root).data
    of_table = office.call("PUT", f"{path}/metadata-files?key=orders", {"metadataFiles": {"keep": 9}}, token=root).data

    assert (own["snapshots"], own["key"], own["by"], own["declared"]) == ([rule], None, "root", False)
    assert (of_table["key"], of_table["metadataFiles"]) == (["orders"], {"keep": 9, "maxAge": None})
    assert [each for page in pages(office, path, "policies", token=root, size=1) for each in page] == [of_table, own]
    assert office.call("GET", f"{path}/metadata-files?key=orders", token=root).data == of_table
    assert office.call("GET", f"{path}/metadata-files", token=root).status == 404
    assert office.call("PUT", f"{path}/metadata-files?key=lines", {"metadataFiles": {"keep": 9}}, token=root).status == 404
    held = office.call("GET", f"{LAKE}/effective-policies?key=orders", token=root).data
    assert (held["branch"], held["key"], held["contentId"]) == ("main", ["orders"], of_table["contentId"])
    assert {(each["name"], each["value"], each["source"]) for each in held["values"]} >= {
        ("maxAge", "5d", "policy of catalog lake, branches *"),
        ("keep", "9", "policy of the table"),
    }
    assert office.call("DELETE", f"{path}/metadata-files?key=orders", token=root).status == 204
    assert office.call("GET", path, token=root).data["policies"] == [own]


def test_catalog_called_like_an_id_is_not_undeleted_for_it(office: ManagedOffice, root: str) -> None:
    [gone] = office.call("GET", "/realms/acme/catalogs?deleted=true", token=root).data["catalogs"]
    office.catalogs().create_catalog(gone["id"], base_location="s3://acme/decoy/")
    office.catalogs().delete_catalog(gone["id"])

    answer = office.call("POST", "/realms/acme/catalogs/gone/undelete", token=root)

    assert answer.error == (409, "ConflictException") and "use the command line" in answer.message
    assert names(office, "/realms/acme/catalogs", "catalogs", token=root) == ["lake", "vault"]


def test_undelete_never_takes_a_name_that_is_taken(office: ManagedOffice, root: str) -> None:
    answer = office.call("POST", "/realms/acme/catalogs/gone/undelete?newName=lake", token=root)

    assert answer.error == (409, "ConflictException")


def test_closed_realm_is_read_and_not_changed(open_office: ManagedOffice) -> None:
    realms = open_office.registry
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    open_office.clock.advance(60)
    wish = {"name": "new", "baseLocation": "s3://acme/new/"}

    assert open_office.call("GET", "/realms/acme").data["state"] == "INACTIVE"
    for path, body in (("/catalogs", wish), ("/principals", {"name": "etl"}), ("/tasks", {"kind": "gc"})):
        assert open_office.call("POST", f"/realms/acme{path}", body).error == (503, "ServiceUnavailableException")


def test_catalog_with_other_fields_is_a_conflict(office: ManagedOffice, root: str) -> None:
    answer = office.call("POST", "/realms/acme/catalogs", {"name": "lake", "baseLocation": "s3://acme/else/"}, token=root)

    assert answer.error == (409, "ConflictException")


def test_creator_learns_nothing_of_a_catalog_it_may_not_read(office: ManagedOffice) -> None:
    creator = office.make_holder("creator", Privilege.CATALOG_CREATE)
    same = {"name": "lake", "baseLocation": "s3://acme/lake/", "properties": {"owner": "keeper of lake"}}

    assert office.call("POST", "/realms/acme/catalogs", same, token=creator).error == (409, "ConflictException")


def test_catalog_that_may_not_be_seen_is_told_as_missing(office: ManagedOffice) -> None:
    reader = office.make_holder("reader", lake=(CatalogGrant(privilege="TABLE_LIST", on="namespace", path=("sales",)),))
    paths = ("", "/roles", "/roles/analyst/grants", "/undelete")
    told = {
        (path, name): office.call("POST" if path == "/undelete" else "GET", f"/realms/acme/catalogs/{name}{path}", token=reader)
        for path in paths
        for name in ("vault", "gone", "never")
    }

    assert {answer.error for answer in told.values()} == {(404, "NotFoundException")}
    assert {answer.message for answer in told.values()} == {
        f"realm 'acme' has no catalog '{name}'" for name in ("vault", "gone", "never")
    }
    assert office.call("GET", LAKE, token=reader).status == 403


def test_list_has_what_may_be_seen(office: ManagedOffice, root: str) -> None:
    seen = {
        "root": ["lake", "vault"],
        "ann": ["lake"],
        "lister": ["lake", "vault"],
        "taskmaster": [],
        "keeper": ["lake"],
    }
    tokens = {
        "root": root,
        "ann": office.token("ann"),
        "lister": office.make_holder("lister", Privilege.CATALOG_LIST),
        "taskmaster": office.make_holder("taskmaster", Privilege.TASK_MANAGE, Privilege.CATALOG_CREATE),
        "keeper": office.make_holder("keeper", lake=(CatalogGrant(privilege="CATALOG_DROP"),)),
    }

    assert {who: names(office, "/realms/acme/catalogs", "catalogs", token=token) for who, token in tokens.items()} == seen
    assert names(office, "/realms/acme/catalogs?deleted=true", "catalogs", token=root) == ["gone"]
    assert names(office, "/realms/acme/catalogs?deleted=true", "catalogs", token=tokens["lister"]) == []


def test_every_right_shows_its_catalogs_and_no_other(office: ManagedOffice) -> None:
    """Oracle: a right in a catalog shows that one, a right on the realm all, but for the rights that say nothing of any catalog."""
    apart = {Privilege.TASK_READ, Privilege.TASK_MANAGE, Privilege.CATALOG_CREATE}
    expected, tokens = {}, {}
    for privilege, rule in PRIVILEGES.items():
        if SecurableKind.CATALOG in rule.kinds:
            expected[f"{privilege}-in-lake"] = ["lake"]
            tokens[f"{privilege}-in-lake"] = office.make_holder(
                f"{privilege}-in-lake", lake=(CatalogGrant(privilege=privilege),)
            )
        expected[privilege] = [] if privilege in apart else ["lake", "vault"]
        tokens[privilege] = office.make_holder(privilege, privilege)

    assert {who: names(office, "/realms/acme/catalogs", "catalogs", token=token) for who, token in tokens.items()} == expected


def test_no_answer_shows_what_may_not_be_seen(office: ManagedOffice) -> None:
    """A principal that may see one catalog asks for everything there is, and for what it has heard of."""
    token = office.make_holder("reader", lake=(CatalogGrant(privilege="CATALOG_MANAGE_ACCESS"),))
    vault = office.catalogs().read_catalog("vault")
    task = id_text(office.tasks["acme"])
    paths = ["", "/catalogs", "/catalogs?deleted=true", "/principals", "/principal-roles", "/tasks", f"/tasks/{task}", "/runs"]
    paths += [f"/catalogs/{name}{below}" for name in ("vault", vault.id, "gone") for below in ("", "/roles")]
    paths += ["/access?privilege=CATALOG_LIST&catalog=vault", "/access?privilege=TASK_READ&principal=ann", "/privileges"]
    texts = [office.call("GET", f"/realms/acme{path}", token=token).content.decode() for path in paths]

    assert sum('"lake"' in text for text in texts) == 1
    for secret in ("keeper of", vault.id, "s3://acme/vault", "ann", "readers", "analyst"):
        assert [path for path, text in zip(paths, texts, strict=True) if secret in text and secret not in path] == []


def test_pages_cover_a_list_once(office: ManagedOffice, root: str) -> None:
    for number in range(5):
        office.make_holder(f"p{number}")
    root = office.token("root")
    listed = list(pages(office, "/realms/acme/principals", "principals", token=root, size=3))

    assert [len(page) for page in listed] == [3, 3, 1]
    assert [item["name"] for page in listed for item in page] == ["ann", "p0", "p1", "p2", "p3", "p4", "root"]


@pytest.mark.parametrize("query", ["pageToken=%21", "pageSize=0", "pageSize=1001", "pageToken=xyz"])
def test_page_that_means_nothing_is_refused(office: ManagedOffice, root: str, query: str) -> None:
    answer = office.call("GET", f"/realms/acme/tasks?{query}", token=root)

    assert answer.status == 400 and answer.message.startswith(query.partition("=")[0])


def test_secret_appears_in_one_answer(office: ManagedOffice, root: str) -> None:
    with structlog.testing.capture_logs() as logged:
        made = office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=root)
        office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=root)
        told = made.data["credentials"]
        others = [
            office.call("GET", f"/realms/acme{path}", token=root).content.decode()
            for path in ("/principals", "/principals/etl", "/tasks", "")
        ]

    assert made.headers["cache-control"] == "no-store"
    assert told["credential"] == f"{told['clientId']}:{told['clientSecret']}" and told["clientId"].startswith("acme.")
    assert made.data["principal"]["clientId"] == told["clientId"]
    assert not any(told["clientSecret"] in text for text in (*others, json.dumps(logged, default=str)))
    assert office.log_in(told["clientId"], told["clientSecret"]).status == 200


def test_change_is_seen_by_the_next_request(office: ManagedOffice, root: str) -> None:
    told = office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=root).data["credentials"]
    token = office.log_in(told["clientId"], told["clientSecret"]).data["access_token"]
    before = office.call("GET", "/realms/acme/tasks", token=token).status
    office.call("PUT", "/realms/acme/principal-roles/readers/principals/etl", token=root)
    with_role = office.call("GET", "/realms/acme/tasks", token=token).status
    office.call("POST", "/realms/acme/principals/etl/disable", token=root)

    assert (before, with_role, office.call("GET", "/realms/acme/tasks", token=token).status) == (403, 200, 401)


def test_credentials_of_another_server_are_known_at_once(office: ManagedOffice, root: str) -> None:
    assert office.call("GET", "/realms/acme/principals/ann", token=root).status == 200
    made = rotate_principal(office.registry, "acme", "ann", unhashed("ann-2"))

    assert office.call("GET", "/realms/acme/principals/ann", token=office.token("ann")).status == 200
    assert made.generation == 1


def test_credentials_share_the_slots_of_log_ins(office: ManagedOffice, root: str) -> None:
    slots = office.application.served.part(HashSlots)
    with ExitStack() as taken:
        for _ in range(4):
            taken.enter_context(slots.take_slot())
        answers = [
            office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=root),
            office.call("POST", "/realms/acme/principals/ann/rotate", token=root),
            office.log_in("acme.ann", "guessed"),
        ]

    assert [answer.status for answer in answers] == [429] * 3 and all("retry-after" in answer.headers for answer in answers)
    assert office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=root).status == 201


def test_reset_ends_former_credentials_and_rotation_keeps_them(office: ManagedOffice, root: str) -> None:
    def renew(how: str) -> dict[str, str]:
        credentials: dict[str, str] = office.call("POST", f"/realms/acme/principals/etl/{how}", token=root).data["credentials"]
        return credentials

    def logs_in(told: dict[str, str]) -> bool:
        return office.log_in(told["clientId"], told["clientSecret"]).status == 200

    first = office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=root).data["credentials"]
    second = renew("rotate")
    assert logs_in(first) and logs_in(second)
    third = renew("reset")
    assert [logs_in(each) for each in (first, second, third)] == [False, False, True]


def test_principal_is_disabled_enabled_and_removed(office: ManagedOffice, root: str) -> None:
    ways = ("disable", "disable", "enable", "enable")
    disabled = [office.call("POST", f"/realms/acme/principals/ann/{way}", token=root).data["disabled"] for way in ways]

    assert disabled[0] is not None and disabled == [disabled[0], disabled[0], None, None]
    assert [office.call("DELETE", "/realms/acme/principals/ann", token=root).status for _ in range(2)] == [204, 404]
    assert office.call("POST", "/realms/acme/principals/ann/reset", token=root).status == 404


def test_role_is_given_and_taken(office: ManagedOffice, root: str) -> None:
    role = "/realms/acme/principal-roles/writers"
    made = [office.call("POST", "/realms/acme/principal-roles", {"name": "writers"}, token=root).status for _ in range(2)]
    changes = [("PUT", f"{role}/principals/ann"), ("PUT", f"{role}/privileges/task-read")]
    given = [office.call(method, path, token=root).status for method, path in changes * 2]
    held = office.call("GET", role, token=root).data
    taken = [office.call("DELETE", path, token=root).status for _, path in changes * 2]

    assert (made, given, taken) == ([201, 200], [204] * 4, [204, 204, 404, 404])
    assert (held["assignedTo"], held["privileges"]) == (["ann"], ["TASK_READ"])
    assert office.call("GET", role, token=root).data["assignedTo"] == []


def test_grants_are_given_listed_and_taken(office: ManagedOffice, root: str) -> None:
    content_id = str(UUID(int=7))
    wanted = [
        {"privilege": "table-write-data", "on": f"table:id={content_id}", "branches": "dev-*"},
        {"privilege": "REFERENCE_CREATE", "on": "reference:dev-*"},
    ]
    added = [office.call("POST", f"{ROLE}/grants", {"grants": wanted}, token=root).status for _ in range(2)]
    listed = [grant for page in pages(office, f"{ROLE}/grants", "grants", token=root, size=1) for grant in page]
    revoked = [office.call("POST", f"{ROLE}/grants/revoke", {"grants": wanted}, token=root).data for _ in range(2)]

    assert added == [204, 204] and revoked == [{"revoked": 2}, {"revoked": 0}]
    assert {(grant["privilege"], grant["on"], grant["branches"]) for grant in listed} == {
        ("TABLE_READ_DATA", "namespace:sales", None),
        ("TABLE_WRITE_DATA", f"table:id={content_id}", "dev-*"),
        ("REFERENCE_CREATE", "reference:dev-*", None),
    }


@pytest.mark.parametrize(
    ("grant", "fault"),
    [
        ({"privilege": "FLY"}, "grants[0]: 'FLY' is no privilege"),
        ({"privilege": "TABLE_LIST", "on": "table"}, "grants[0]: 'table' is nothing that a grant is on"),
        ({"privilege": "TABLE_LIST", "on": "realm"}, "grants[0]: 'realm' is nothing that a grant is on"),
        ({"privilege": "TABLE_LIST", "on": "table:a\0"}, "grants[0]: "),
        ({"privilege": "TABLE_LIST", "on": "table:id=7"}, "grants[0]: '7' is no content id"),
        (
            {"privilege": "TABLE_CREATE", "on": f"table:id={UUID(int=7)}"},
            "grants[0]: TABLE_CREATE cannot be granted by content id",
        ),
        ({"privilege": "REFERENCE_LIST", "on": "reference:dev", "branches": "dev"}, "grants[0]: a grant on references"),
        ({"privilege": "TABLE_LIST", "branches": " dev"}, "grants[0]: ' dev' is no pattern"),
        ({"privilege": "TABLE_LIST", "brnches": "*"}, "grants[0]: object contains unknown field `brnches`"),
    ],
)
def test_grant_that_means_nothing_is_refused(office: ManagedOffice, root: str, grant: Any, fault: str) -> None:
    answer = office.call("POST", f"{ROLE}/grants", {"grants": [grant]}, token=root)

    assert answer.error == (400, "BadRequestException") and answer.message.startswith(fault)


def test_catalog_role_is_made_given_and_removed(office: ManagedOffice, root: str) -> None:
    role = f"{LAKE}/roles/loader"
    made = [office.call("POST", f"{LAKE}/roles", {"name": "loader"}, token=root).status for _ in range(2)]
    given = [office.call("PUT", f"{role}/principal-roles/readers", token=root).status for _ in range(2)]

    assert (made, given) == ([201, 200], [204, 204])
    assert office.call("GET", role, token=root).data["assignedTo"] == ["readers"]
    assert names(office, f"{LAKE}/roles", "catalogRoles", token=root) == ["analyst", "catalog_admin", "loader"]
    assert [office.call("DELETE", f"{role}/principal-roles/readers", token=root).status for _ in range(2)] == [204, 404]
    assert [office.call("DELETE", role, token=root).status for _ in range(2)] == [204, 404]


def test_tasks_and_runs_are_those_of_the_realm(office: ManagedOffice, root: str) -> None:
    mine, others = id_text(office.tasks["acme"]), id_text(office.tasks["rival"])
    listed = office.call("GET", "/realms/acme/tasks", token=root).data["tasks"]
    runs = office.call("GET", "/realms/acme/runs", token=root).data["runs"]

    assert [task["id"] for task in listed] == [mine] and [run["id"] for run in runs] == [f"{mine}-1"]
    for method, path in (("GET", f"/tasks/{others}"), ("POST", f"/tasks/{others}/cancel"), ("GET", f"/runs/{others}-1")):
        answer = office.call(method, f"/realms/acme{path}", token=root)
        assert answer.status == 404 and answer.message.startswith("realm 'acme' has no ")
    assert TaskQueue(office.store).read_task(office.tasks["rival"]).value.is_active


def test_tasks_of_an_earlier_realm_are_not_shown(office: ManagedOffice, root: str) -> None:
    queue = TaskQueue(office.store)
    queue.cancel_task(office.tasks["acme"])
    earlier = id_text(queue.submit_task(COLLECT, realm="acme", realm_key=4711).id)

    assert office.call("GET", f"/realms/acme/tasks/{earlier}", token=root).status == 404
    assert len(office.call("GET", "/realms/acme/tasks", token=root).data["tasks"]) == 1
    assert office.call("GET", "/realms/acme/tasks?state=WAITING", token=root).data["tasks"] == []


def test_task_is_submitted_and_cancelled(office: ManagedOffice, root: str) -> None:
    task = id_text(office.tasks["acme"])
    cancelled = office.call("POST", f"/realms/acme/tasks/{task}/cancel", token=root).data
    submitted = office.call("POST", "/realms/acme/tasks", {"kind": "gc"}, token=root)

    assert (cancelled["state"], submitted.status, submitted.data["state"]) == ("CANCELLED", 201, "WAITING")
    assert office.call("POST", "/realms/acme/tasks", {"kind": "purge"}, token=root).status == 400
    assert office.call("GET", "/realms/acme/tasks?pageSize=1", token=root).data["tasks"][0]["id"] == submitted.data["id"]


def test_logins_in_urls_are_not_shown(office: ManagedOffice, root: str) -> None:
    queue = TaskQueue(office.store)
    key = office.registry.read_realm("acme").key
    queue.submit_task("import", realm="acme", realm_key=key, arguments={"spec": {"locations": ["s3://me:word@bucket/"]}})

    [task] = office.call("GET", "/realms/acme/tasks?kind=import", token=root).data["tasks"]
    assert task["arguments"] == {"spec": {"locations": ["s3://***@bucket/"]}}


@pytest.mark.parametrize(
    ("question", "allowed", "on"),
    [
        ("privilege=TASK_READ", True, "the realm"),
        ("privilege=TASK_MANAGE", False, "the realm"),
        ("privilege=TABLE_READ_DATA&catalog=lake&table=sales.orders", True, "table sales.orders of catalog lake"),
        ("privilege=TABLE_READ_DATA&catalog=lake&table=hr.pay", False, "table hr.pay of catalog lake"),
        ("privilege=TABLE_LIST&catalog=lake&table=sales.orders&reference=dev", False, "table sales.orders of catalog lake"),
        ("privilege=CATALOG_DROP&catalog=lake", False, "catalog lake"),
        ("privilege=REFERENCE_LIST&catalog=lake&reference=dev", False, "reference dev of catalog lake"),
    ],
)
def test_access_is_explained(office: ManagedOffice, root: str, question: str, allowed: bool, on: str) -> None:
    told = office.call("GET", f"/realms/acme/access?principal=ann&{question}", token=root).data
    own = office.call("GET", f"/realms/acme/access?{question}", token=office.token("ann")).data

    assert (told["allowed"], told["on"], told["rule"] is not None) == (allowed, on, allowed)
    assert own == told
    assert told["roles"] == ["readers"] and (not allowed or "through readers" in told["rule"])


def test_disabled_principal_may_do_nothing(office: ManagedOffice, root: str) -> None:
    office.call("POST", "/realms/acme/principals/ann/disable", token=root)
    told = office.call("GET", "/realms/acme/access?principal=ann&privilege=TASK_READ", token=root).data

    assert not told["allowed"] and told["disabled"] is not None and told["rule"] == "TASK_READ on the realm through readers"


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ("", "missing required field `privilege`"),
        ("privilege=FLY", "'FLY' is no privilege"),
        ("privilege=TABLE_LIST&table=a.b", "catalog: "),
        ("privilege=TABLE_LIST&catalog=lake&table=a.b&view=a.c", "view: "),
    ],
)
def test_question_that_means_nothing_is_refused(office: ManagedOffice, root: str, question: str, fault: str) -> None:
    answer = office.call("GET", f"/realms/acme/access?principal=ann&{question}", token=root)

    assert answer.status == 400 and fault in answer.message


@pytest.mark.parametrize(
    "path",
    [
        "/realms/acme%2Fcatalogs",
        "/realms/acme%2F..%2Frival",
        "/realms/..",
        "/realms/%3A%3Asystem",
        "/realms/acme/../rival",
        "/realms//catalogs",
        "/realms/acme//catalogs",
        "/realms/rival/catalogs/lake",
        "/realms/acme/catalogs/..%2F..%2Frival%2Fcatalogs%2Fother",
        "/realms/acme/catalogs/lake%00",
        "/realms/acme/catalogs/other",
        "/realms/acme/catalogs/lake/roles/analyst%2Fgrants",
        "/realms/acme/catalogs/lake/roles/..",
        "/realms/acme/principals/..%2Fcatalogs",
        "/realms/acme/tasks/..",
    ],
)
def test_path_leads_nowhere_else(office: ManagedOffice, root: str, path: str) -> None:
    answer = office.call("GET", path, token=root)

    assert answer.error[0] in (400, 401, 404)
    assert "s3://" not in answer.message


@pytest.mark.parametrize(
    "path",
    ["/realms/..", "/realms/%3A%3Asystem", "/realms/acme%2F", "/realms/%3A%3Asystem/tasks", "/realms/%3A%3Asystem/catalogs"],
)
def test_realm_that_is_none_is_not_found_where_nobody_is_asked(open_office: ManagedOffice, path: str) -> None:
    assert open_office.call("GET", path).error[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "fault"),
    [
        ("POST", "/catalogs", {"name": "a b", "baseLocation": "s3://acme/x/"}, "'a b' is not a catalog name"),
        ("POST", "/catalogs", {"name": "new"}, "object missing required field `baseLocation`"),
        (
            "POST",
            "/catalogs",
            {"name": "new", "baseLocation": "s3://acme/x/", "hold": "soon"},
            "hold: 'soon' is not a duration",
        ),
        ("PATCH", "/catalogs/lake", {"defaultBranch": "none"}, "has no branch 'none'"),
        ("PATCH", "/catalogs/lake", {"state": "DELETED"}, "unknown field `state`"),
        ("PATCH", "", {"properties": {"a": 1}}, "properties[...]: "),
        ("PUT", "/catalogs/lake/policies/snapshots", {"metadataFiles": {"keep": 3}}, "in the field snapshots"),
        ("PUT", "/catalogs/lake/policies/snapshots", {"snapshots": [{"maxAge": "soon"}]}, "maxAge: 'soon' is not a duration"),
        (
            "PUT",
            "/catalogs/lake/policies/file-collection",
            {"fileCollection": {"grace": "1h"}},
            "grace is 1h: it may be from 1d",
        ),
        ("POST", "/principals", {"name": ""}, "name: "),
        ("POST", "/principals", {"name": "a/b"}, "is no name for a principal"),
        ("POST", "/principals/ann/rotate?overlapSeconds=-1", None, "overlapSeconds: "),
        ("POST", "/principal-roles", {"name": "*"}, "is no name for a role"),
        ("PUT", "/principal-roles/readers/privileges/FLY", None, "'FLY' is no privilege"),
        ("POST", "/tasks", {"kind": "purge"}, "kind: "),
        ("GET", "/tasks?state=LATE", None, "state: "),
        ("GET", "/tasks/nonsense", None, "nonsense"),
    ],
)
def test_input_that_is_wrong_is_named(office: ManagedOffice, root: str, method: str, path: str, body: Any, fault: str) -> None:
    answer = office.call(method, f"/realms/acme{path}", body, token=root)

    assert answer.error == (400, "BadRequestException") and fault in answer.message


@pytest.mark.parametrize("path", ["/realms/acme", "/realms/acme/catalogs/lake"])
def test_properties_grow_within_bounds(office: ManagedOffice, root: str, path: str) -> None:
    many = {f"p{number}": "x" for number in range(60)}
    assert office.call("PATCH", path, {"properties": many}, token=root).status == 200
    before = office.call("GET", path, token=root).data

    for more in ({f"q{number}": "x" for number in range(4)}, {"long": "x" * 1025}, {"n" * 254: "x"}):
        assert office.call("PATCH", path, {"properties": more}, token=root).status == 400
    swap: dict[str, str | None] = {"p0": None, "q0": "x"}
    assert office.call("GET", path, token=root).data == before
    assert office.call("PATCH", path, {"properties": swap}, token=root).status == 200


def test_places_of_a_catalog_are_bounded(office: ManagedOffice, root: str) -> None:
    places = [f"s3://acme/{number}/" for number in range(51)]
    wish = {"name": "new", "baseLocation": "s3://acme/new/", "allowedLocations": places}

    assert office.call("PATCH", "/realms/acme/catalogs/lake", {"allowedLocations": places}, token=root).status == 400
    assert office.call("POST", "/realms/acme/catalogs", wish, token=root).status == 400
