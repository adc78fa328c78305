"""Principals, roles and connections that resources declare: a Secret for each, what the status says, and nothing secret elsewhere."""

from __future__ import annotations

import base64
import json
import logging
import re
from typing import Any

import pytest
from cut_connections import FAULTS, HttpFault
from desks import Desk, make_catalog, make_realm
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater.realms import (
    Credentials,
    RealmRegistry,
    create_principal,
    find_principal,
    hash_credentials,
    list_principal_roles,
    log_in,
    new_credentials,
)
from headwater.store import RealmId
from headwater.tasks import TaskQueue
from headwater_operator.plugin.bundle_redaction import Redactor
from headwater_operator.resource.credentials_secret import connection_secret_name, secret_name
from kubetest import Namespace
from tiers import long_but_for

READERS = {"name": "readers", "privileges": ["TASK_READ"]}
ETL = {"name": "etl", "roles": ["readers"]}
SALES = {
    "name": "sales",
    "grantedTo": ["readers"],
    "grants": [{"privileges": ["TABLE_READ_DATA"], "namespace": ["sales"], "references": "*"}],
}
CONNECTION = {"roles": ["sales"], "uri": "https://lake.example.org"}
RESOURCES = st.from_regex(r"[ab]([ab.-]{0,4}[ab])?", fullmatch=True)
PRINCIPALS = st.from_regex(r"[ab]([ab-]{0,4}[ab])?|[Aab][Aab@._-]{0,4}", fullmatch=True) | st.just("root")
NAMES = {"etl": "acme-etl-credentials", "connection.sales": "sales-connection"}


def apply_all(desk: Desk, realm: dict[str, Any] | None = None, catalog: dict[str, Any] | None = None) -> None:
    declared = {"principals": [ETL], "roles": [READERS]} if realm is None else realm
    desk.apply(
        make_realm(**declared), make_catalog(**({"roles": [SALES], "connection": CONNECTION} if catalog is None else catalog))
    )
    desk.go_on(3)


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """A Realm with a principal, and a Catalog with a connection."""
    apply_all(desk)
    assert desk.is_ready("Realm", "acme")
    assert desk.is_ready("Catalog", "sales")
    return desk


def texts(namespace: Namespace, name: str) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in namespace.read("Secret", name)["data"].items()}


def logs_in(desk: Desk, name: str) -> bool:
    """Whether the principal logs in with what is in its Secret, as a client that was told it."""
    client, _, secret = texts(desk.namespace, NAMES[name])["credential"].partition(":")
    realm, _, client = client.partition(".")
    try:
        return log_in(RealmRegistry(desk.store), realm, Credentials(client, secret)).name == name
    except RefusedError:
        return False


def is_disabled(desk: Desk, name: str) -> bool:
    principal = find_principal(RealmRegistry(desk.store), "acme", name)
    assert principal is not None
    return principal.disabled is not None


def test_secret_of_a_principal_opens_the_realm(ready: Desk) -> None:
    secret = ready.namespace.read("Secret", "acme-etl-credentials")
    found = texts(ready.namespace, "acme-etl-credentials")

    assert logs_in(ready, "etl")
    assert found.keys() == {"realm", "principal", "clientId", "clientSecret", "credential"}
    assert found["clientId"].startswith("acme.")
    assert secret["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "headwater-operator", "headwater.dev/realm": "acme"}
    assert secret["metadata"]["annotations"] == {"headwater.dev/realm-id": "acme", "headwater.dev/principal": "etl"}


def test_connection_is_all_that_a_pod_mounts(ready: Desk) -> None:
    found = texts(ready.namespace, "sales-connection")

    assert logs_in(ready, "connection.sales")
    assert found.keys() == {
        *("uri", "warehouse", "credential", "client-id", "client-secret", "oauth2-server-uri"),
        *(".pyiceberg.yaml", "spark-defaults.conf"),
    }
    assert ready.namespace.read("Secret", "sales-connection")["metadata"]["labels"]["headwater.dev/catalog"] == "sales"


def test_status_says_that_secrets_are_there(ready: Desk) -> None:
    for kind, name in (("Realm", "acme"), ("Catalog", "sales")):
        assert ready.reason(kind, name, "CredentialsAvailable") == ("True", "SecretPresent")


def test_secrets_stand_in_secrets_alone(
    desk: Desk, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    apply_all(desk)
    desk.annotate("Realm", "acme", rotate_principal="etl:1")
    desk.annotate("Catalog", "sales", rotate_credentials="1")
    desk.go_on(3)
    secrets = [texts(desk.namespace, name)["credential"].rpartition(":")[2] for name in NAMES.values()]
    kinds = ("Realm", "Catalog", "Event")
    bodies = [body for kind in kinds for body in desk.namespace.cluster.api.list_resources(desk.namespace.path(kind))]
    told = json.dumps(bodies) + caplog.text + "".join(capsys.readouterr())

    assert "rotated the credentials of principal etl" in told
    assert not [secret for secret in secrets if secret in told]


def test_support_bundle_has_nothing_of_a_connection(ready: Desk) -> None:
    found = texts(ready.namespace, "sales-connection")
    cleaned = json.dumps(Redactor().clean({"mounted": [found["spark-defaults.conf"], found[".pyiceberg.yaml"]]}))

    assert found["client-secret"] not in cleaned


@pytest.mark.long
def test_deleted_secret_is_missed_and_made_anew_on_request(ready: Desk) -> None:
    for name in NAMES.values():
        ready.delete("Secret", name)
    ready.go_on(400)
    missed = [ready.reason(*one, "CredentialsAvailable") for one in (("Realm", "acme"), ("Catalog", "sales"))]
    ready.annotate("Realm", "acme", rotate_principal="etl:1")
    ready.annotate("Catalog", "sales", rotate_credentials="1")
    ready.go_on(3)

    assert missed == [("False", "SecretMissing")] * 2
    assert logs_in(ready, "etl")
    assert logs_in(ready, "connection.sales")
    assert ready.reason("Realm", "acme", "CredentialsAvailable") == ("True", "SecretPresent")


@pytest.mark.long
def test_access_that_is_declared_no_more_is_taken_away(ready: Desk) -> None:
    apply_all(ready, realm={"principals": [], "roles": [READERS]}, catalog={"roles": [SALES]})

    assert is_disabled(ready, "etl")
    assert is_disabled(ready, "connection.sales")
    assert ready.reason("Catalog", "sales", "CredentialsAvailable") == ("", "")
    assert None not in [ready.namespace.find("Secret", name) for name in NAMES.values()]
    ready.go_on(25 * 3600, step=1800)
    assert [name for name in NAMES.values() if ready.namespace.find("Secret", name) is not None] == []


@pytest.mark.long
def test_connection_moves_to_another_secret(ready: Desk) -> None:
    apply_all(ready, catalog={"roles": [SALES], "connection": {**CONNECTION, "secretName": "elsewhere"}})

    assert texts(ready.namespace, "elsewhere")["warehouse"] == "acme/sales"
    assert ready.is_ready("Catalog", "sales")
    assert not is_disabled(ready, "connection.sales")
    ready.go_on(25 * 3600, step=1800)
    assert ready.namespace.find("Secret", "sales-connection") is None


@pytest.mark.long
def test_connection_that_moves_back_has_its_credentials_again(ready: Desk) -> None:
    before = texts(ready.namespace, "sales-connection")
    apply_all(ready, catalog={"roles": [SALES], "connection": {**CONNECTION, "secretName": "elsewhere"}})
    apply_all(ready)

    assert texts(ready.namespace, "sales-connection") == before
    assert logs_in(ready, "connection.sales")
    ready.go_on(25 * 3600, step=1800)
    assert ready.namespace.find("Secret", "elsewhere") is None
    assert logs_in(ready, "connection.sales")


def test_secret_of_somebody_else_is_left_alone(desk: Desk) -> None:
    desk.put_in_the_way("acme-etl-credentials")
    desk.put_in_the_way("sales-connection")
    apply_all(desk)

    assert desk.reason("Realm", "acme") == ("False", "Refused")
    assert desk.reason("Catalog", "sales") == ("False", "Refused")
    assert texts(desk.namespace, "sales-connection") == {"token": "theirs"}


def test_secret_in_the_way_stops_nothing_else(desk: Desk) -> None:
    desk.put_in_the_way("acme-etl-credentials")
    desk.put_in_the_way("sales-connection")
    other = {"name": "other", "roles": ["readers"]}
    maintained = {"maintenance": {"expireSnapshots": {"schedule": "0 3 * * *"}}}
    apply_all(
        desk,
        realm={"principals": [ETL, other], "roles": [READERS]},
        catalog={"roles": [SALES], "connection": CONNECTION, **maintained},
    )

    assert desk.reason("Realm", "acme") == ("False", "Refused")
    assert "acme-etl-credentials" in desk.namespace.condition("Realm", "acme", "Ready")["message"]
    assert desk.namespace.find("Secret", "acme-other-credentials") is not None
    assert {role.name for role in list_principal_roles(RealmRegistry(desk.store), "acme")} > {"readers"}
    due = {task.value.kind for task in TaskQueue(desk.store).list_tasks() if task.value.is_active}
    assert due == {"gc", "expire-snapshots"}
    desk.namespace.cluster.api.delete_resource(desk.namespace.path("Secret", "acme-etl-credentials"))
    desk.go_on(60)
    assert desk.is_ready("Realm", "acme")
    assert logs_in(desk, "etl")


def test_every_secret_in_the_way_is_named(desk: Desk) -> None:
    names = ["acme-etl-credentials", "acme-other-credentials"]
    for name in names:
        desk.put_in_the_way(name)
    apply_all(desk, realm={"principals": [ETL, {"name": "other", "roles": ["readers"]}], "roles": [READERS]})
    message = desk.namespace.condition("Realm", "acme", "Ready")["message"]

    assert [name for name in names if name not in message] == []


def test_connection_to_nowhere_stalls(desk: Desk) -> None:
    apply_all(desk, catalog={"roles": [SALES], "connection": {"roles": ["sales"]}})

    assert desk.reason("Catalog", "sales") == ("False", "ServerUnknown")
    assert desk.reason("Catalog", "sales", "Stalled") == ("True", "ServerUnknown")


def test_catalog_goes_on_once_its_realm_has_the_role(desk: Desk) -> None:
    apply_all(desk, realm={})
    waited = desk.reason("Catalog", "sales")
    desk.apply(make_realm(roles=[READERS]))
    desk.go_on(3)

    assert waited == ("False", "RoleMissing")
    assert desk.is_ready("Catalog", "sales")


def test_inactive_realm_says_that_access_waits(desk: Desk) -> None:
    desk.apply(make_realm(state="Inactive", principals=[ETL], roles=[READERS]))
    desk.go_on(3)

    assert desk.reason("Realm", "acme", "CredentialsAvailable") == ("True", "AccessWaits")


def test_principal_that_a_person_made_is_told(desk: Desk) -> None:
    desk.apply(make_realm())
    desk.go_on(3)
    create_principal(RealmRegistry(desk.store), "acme", "etl", hash_credentials(new_credentials()))
    desk.apply(make_realm(principals=[ETL], roles=[READERS]))
    desk.go_on(3)

    assert desk.reason("Realm", "acme", "CredentialsAvailable") == ("False", "CredentialsElsewhere")


@pytest.mark.long
@pytest.mark.parametrize("policy", ["Retain", "Purge"])
def test_deleted_resources_follow_their_policy(desk: Desk, policy: str) -> None:
    declared = {"deletionPolicy": policy}
    realm = {"principals": [ETL], "roles": [READERS], **declared}
    apply_all(desk, realm=realm, catalog={"roles": [SALES], "connection": CONNECTION, **declared})
    desk.annotate("Catalog", "sales", confirm_purge="acme/sales")
    desk.annotate("Realm", "acme", confirm_purge="acme")
    desk.delete("Catalog", "sales")
    desk.go_on(3)
    desk.delete("Realm", "acme")
    desk.go_on(90_000, until=lambda: desk.work_off() and desk.namespace.find("Realm", "acme") is None, step=3600)
    desk.go_on(60)

    left = [name for name in NAMES.values() if desk.namespace.find("Secret", name) is not None]
    assert desk.namespace.find("Realm", "acme") is None
    assert left == (list(NAMES.values()) if policy == "Retain" else [])
    assert policy == "Purge" or (logs_in(desk, "etl") and logs_in(desk, "connection.sales"))


@pytest.mark.rare(2)
@pytest.mark.long
@pytest.mark.parametrize("fault", long_but_for(FAULTS[-1:], FAULTS), ids=str)
def test_access_is_as_declared_in_the_end_whatever_call_fails(desk: Desk, fault: HttpFault) -> None:
    desk.apply(make_realm(), make_catalog())
    desk.go_on(3)
    for at in range(1, 40, 2):
        desk.http.fail(fault, at=at)
        apply_all(desk)
        desk.go_on(30)
        assert logs_in(desk, "etl")
        assert logs_in(desk, "connection.sales")
        if len(desk.http.requests) < at:
            break
        desk.http.fail(fault, at=at)
        apply_all(desk, realm={}, catalog={})
        desk.go_on(30)
        assert is_disabled(desk, "etl")
        assert is_disabled(desk, "connection.sales")


@pytest.mark.parametrize(
    ("principal", "start"),
    [
        ("etl", "acme-etl-credentials"),
        ("a-b", "acme.a-b.credentials"),
        ("Etl", "acme.etl."),
        ("svc@corp.example", "acme.svc-corp-example."),
        ("x" * 128, "acme." + "x" * 40 + "."),
    ],
)
def test_name_of_a_secret_is_one_that_a_server_takes(principal: str, start: str) -> None:
    made = secret_name("acme", principal)

    assert made.startswith(start)
    assert re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*[.-]credentials", made)
    assert len(secret_name("r" * 253, principal)) <= 253


def test_names_of_secrets_differ_where_principals_do() -> None:
    names = [secret_name("acme", principal) for principal in ("etl", "Etl", "ETL", "e_tl", "e-tl", "e.tl", "root")]
    longest = [secret_name("r" * 253, principal) for principal in ("etl", "elt", "root")]

    assert len({*names, *longest}) == 10
    assert len(connection_secret_name("c" * 253)) <= 253


@given(st.lists(st.tuples(RESOURCES, PRINCIPALS), min_size=2, max_size=2, unique=True))
def test_no_two_principals_of_any_realms_share_a_secret(pairs: list[tuple[str, str]]) -> None:
    """``a`` and ``b-root`` had the same as the root of ``a-b``."""
    assert len({secret_name(realm, principal) for realm, principal in pairs}) == 2


def test_secret_of_an_earlier_release_keeps_its_name(desk: Desk) -> None:
    desk.apply(make_realm(principals=[{"name": "b-root"}]))
    desk.go_on(3)
    made = desk.namespace.read("Secret", "acme.b-root.credentials")
    api = desk.namespace.cluster.api
    former = {name: made["metadata"][name] for name in ("labels", "annotations")} | {"name": "acme-b-root-credentials"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": former, "data": made["data"]}
    api.create_resource(desk.namespace.path("Secret"), body)
    api.delete_resource(desk.namespace.path("Secret", "acme.b-root.credentials"))

    desk.go_on(700, step=100)
    assert desk.reason("Realm", "acme", "CredentialsAvailable") == ("True", "SecretPresent")
    desk.annotate("Realm", "acme", rotate_principal="b-root:1")
    desk.go_on(3)
    assert desk.namespace.read("Secret", "acme-b-root-credentials")["data"] != made["data"]
    assert desk.namespace.find("Secret", "acme.b-root.credentials") is None


def test_names_of_two_realms_do_not_collide(desk: Desk) -> None:
    desk.apply(make_realm("a-b"), make_realm("a", principals=[{"name": "b-root"}]))
    desk.go_on(3)

    assert desk.is_ready("Realm", "a-b")
    assert desk.is_ready("Realm", "a")


def test_realm_id_is_no_part_of_what_is_stored(ready: Desk) -> None:
    principal = find_principal(RealmRegistry(ready.store), RealmId("acme"), "etl")
    assert principal is not None

    assert f"acme.{principal.credentials.client_id}" == texts(ready.namespace, "acme-etl-credentials")["clientId"]


@pytest.mark.parametrize("name", ["acme-root-credentials", "acme-etl-credentials", "somebody-elses"])
def test_connection_takes_no_secret_of_another(ready: Desk, name: str) -> None:
    if name == "somebody-elses":
        ready.put_in_the_way(name)
    before, worked = texts(ready.namespace, name), len(ready.worked)
    apply_all(ready, catalog={"roles": [SALES], "connection": {**CONNECTION, "secretName": name}})
    assert ready.reason("Catalog", "sales") == ("False", "Refused")
    assert len(ready.worked) - worked < 20, "it is tried again and again"

    apply_all(ready)
    assert texts(ready.namespace, name) == before
    assert logs_in(ready, "connection.sales")
