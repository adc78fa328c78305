"""What is wrong is refused by the API server, in words that say what would be right; it never reaches the operator."""

from __future__ import annotations

from typing import Any

import pytest
from stories import catalog_body, realm_body

from kubetest import Namespace

pytestmark = pytest.mark.long

LOCATION = "must be a URL such as s3://bucket/folder/"
REALMS: list[tuple[str, dict[str, Any], str]] = [
    ("a reserved id", {"realmId": "::mine::"}, "spec.realmId: Forbidden: ids with '::' belong to Headwater itself"),
    ("an id with a blank", {"realmId": "my realm"}, 'spec.realmId: Invalid value: "my realm": use the characters A-Z a-z 0-9 _ -'),
    ("an unknown state", {"state": "Asleep"}, 'spec.state: Unsupported value: "Asleep": supported values: "Active", "Inactive"'),
    ("an unknown policy", {"deletionPolicy": "Delete"}, 'supported values: "Retain", "Purge"'),
    ("a flag in quotes", {"deletionProtection": "yes"}, "spec.deletionProtection in body must be of type boolean"),
    ("a hold below the floor", {"purgeHold": "10s"}, "must be at least 75s: a realm handle's time to live plus a commit's time-out"),
    ("a hold in words", {"purgeHold": "1 day"}, "must be a duration such as 30d, 24h, 1h30m or 90s"),
    ("a hold for ever", {"purgeHold": "99999d"}, "must not be longer than a hundred years"),
    ("no commits kept", {"retention": {"content": {"commits": 0}}}, "commits in body should be greater than or equal to 1"),
    ("a schedule in words", {"maintenance": {"schedule": "@weekly"}}, "must have five fields: minute, hour, day of month"),
    ("an impossible hour", {"maintenance": {"schedule": "0 25 * * 0"}}, "the second field, the hour, must be *, or numbers from 0 to 23"),
    ("a time zone that is none", {"maintenance": {"timeZone": "+02:00"}}, "must be the name of a time zone, for example UTC"),
    ("a misspelt field", {"retension": {}}, 'unknown field "spec.retension"'),
    ("a number as property", {"properties": {"cost": 7}}, "spec.properties.cost in body must be of type string"),
]  # fmt: skip
CATALOGS: list[tuple[str, dict[str, Any], str]] = [
    ("no storage", {"storage": None}, "spec.storage: Required value"),
    ("a relative location", {"storage": {"baseLocation": "./warehouse"}}, LOCATION),
    ("a password", {"storage": {"baseLocation": "s3://me:secret@bucket/"}}, "spec.storage.baseLocation: Forbidden: must not"),
    ("a way up", {"storage": {"baseLocation": "s3://bucket/a/../b"}}, "must not have the segments . and .."),
    ("a branch HEAD", {"defaultBranch": "head"}, "HEAD, DETACHED and 16 hex digits are no names of branches"),
    ("an import without places", {"imports": [{"name": "all", "locations": []}]}, "should have at least 1 items"),
    (
        "a schedule for an import that runs once",
        {"imports": [{"name": "all", "locations": ["s3://b/"], "schedule": "0 1 * * *"}]},
        "an import of mode once has no schedule",
    ),
    (
        "two imports of one name",
        {"imports": [{"name": "all", "locations": ["s3://a/"]}, {"name": "all", "locations": ["s3://b/"]}]},
        "spec.imports[1]: Duplicate value",
    ),
]  # fmt: skip


def refused(namespace: Namespace, body: dict[str, Any]) -> str:
    """What kubectl says of it."""
    done = namespace.apply(body, check=False)
    assert done.returncode == 1, done.stdout
    assert namespace.find(body["kind"], body["metadata"]["name"]) is None
    return done.stderr


@pytest.fixture(scope="module")
def nobody_home(cluster: Any) -> Namespace:
    """A namespace that no operator looks after."""
    namespace: Namespace = cluster.make_namespace("refused")
    return namespace


@pytest.mark.parametrize(("spec", "words"), [row[1:] for row in REALMS], ids=[row[0] for row in REALMS])
def test_realm_is_refused_with(nobody_home: Namespace, spec: dict[str, Any], words: str) -> None:
    assert words in refused(nobody_home, realm_body("acme", **spec))


@pytest.mark.parametrize(("spec", "words"), [row[1:] for row in CATALOGS], ids=[row[0] for row in CATALOGS])
def test_catalog_is_refused_with(nobody_home: Namespace, spec: dict[str, Any], words: str) -> None:
    given = {name: value for name, value in (catalog_body("lake", "acme")["spec"] | spec).items() if value is not None}

    assert words in refused(nobody_home, catalog_body("lake", "acme") | {"spec": given})


def test_name_that_is_no_id_needs_one(nobody_home: Namespace) -> None:
    said = refused(nobody_home, realm_body("acme.eu"))

    assert "spec.realmId: Required value: the name of this resource is no realm id" in said


def test_several_faults_are_told_at_once(nobody_home: Namespace) -> None:
    said = refused(nobody_home, realm_body("acme", state="Asleep", driftPolicy="Ignore"))

    assert "* spec.state:" in said
    assert "* spec.driftPolicy:" in said


def test_realm_cannot_change_its_id(namespace: Namespace) -> None:
    namespace.apply(realm_body("acme"))
    done = namespace.kubectl("patch", "realm", "acme", "--type=merge", "-p", '{"spec": {"realmId": "other"}}', check=False)

    assert done.returncode == 1
    assert "spec.realmId: Forbidden: the realm id cannot change" in done.stderr


def test_catalog_cannot_move_to_another_realm(namespace: Namespace) -> None:
    namespace.apply(catalog_body("lake", "acme"))
    done = namespace.kubectl("patch", "catalog", "lake", "--type=merge", "-p", '{"spec": {"realm": "other"}}', check=False)

    assert done.returncode == 1
    assert "spec.realm: Forbidden: a catalog cannot move to another realm" in done.stderr
