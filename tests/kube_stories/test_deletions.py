"""A person deletes: what stays, what goes, what waits, and how it is called off."""

from __future__ import annotations

import pytest
from stories import Story, catalog_body, realm_body

from headwater.catalogs import Catalogs
from headwater.realms import RealmState

pytestmark = pytest.mark.long

CONFIRM = "headwater.dev/confirm-purge"


def delete(story: Story, kind: str = "realm", name: str = "") -> None:
    story.kubectl("delete", kind, name or story.name, "--wait=false")


def test_retain_leaves_the_realm_as_it_is_to_nobody(story: Story) -> None:
    story.make_realm(properties={"owner": "finance"})
    deleted = story.kubectl("delete", "realm", story.name, "--timeout=20s")

    left = story.realm()
    assert f'"{story.name}" deleted' in deleted
    assert (left.state, left.manager, left.properties) == (RealmState.ACTIVE, None, {"owner": "finance"})
    assert story.namespace.find("Secret", f"{story.name}-root-credentials") is not None


def test_retained_realm_is_taken_back_when_applied_again(story: Story) -> None:
    story.make_realm()
    key = story.realm().key
    story.kubectl("delete", "realm", story.name, "--timeout=20s")
    assert story.realm().manager is None
    story.apply_realm()
    story.wait("Realm", "Ready")

    assert story.realm().manager is not None
    assert story.realm().key == key


def test_purge_waits_until_it_is_confirmed(story: Story) -> None:
    story.make_realm(deletionPolicy="Purge")
    delete(story)

    waits = story.wait("Realm", "Deleting", "True", reason="PurgeUnconfirmed")
    assert CONFIRM in waits["message"]
    assert story.realm().state is RealmState.ACTIVE


def test_purge_that_is_confirmed_late_is_done_to_its_end(story: Story) -> None:
    story.make_realm(deletionPolicy="Purge")
    delete(story)
    story.wait("Realm", "Deleting", "True", reason="PurgeUnconfirmed")
    story.kubectl("annotate", "realm", story.name, f"{CONFIRM}={story.name}")
    story.kubectl("wait", "--for=delete", f"realm/{story.name}", "--timeout=30s")

    assert story.find_realm() is None
    assert story.namespace.find("Secret", f"{story.name}-root-credentials") is None


def test_purge_with_the_wrong_word_waits(story: Story) -> None:
    story.make_realm({CONFIRM: "another"}, deletionPolicy="Purge")
    delete(story)

    assert "another" in story.wait("Realm", "Deleting", "True", reason="PurgeUnconfirmed")["message"]


def test_purge_is_held_and_called_off_by_retain(story: Story) -> None:
    story.make_realm({CONFIRM: story.name}, deletionPolicy="Purge", purgeHold="1h")
    delete(story)
    story.wait("Realm", "Purging", "False", reason="PurgeHold")
    held = story.realm().state
    story.kubectl("patch", "realm", story.name, "--type=merge", "-p", '{"spec": {"deletionPolicy": "Retain"}}')
    story.namespace.wait_until_gone("Realm", story.name)

    assert held is RealmState.INACTIVE
    assert story.realm().state is RealmState.ACTIVE


def test_hold_is_told_with_its_end(story: Story) -> None:
    story.make_realm({CONFIRM: story.name}, deletionPolicy="Purge", purgeHold="1h")
    delete(story)

    found = story.namespace.wait_until("Realm", story.name, lambda body: body["status"].get("purge", {}).get("holdUntil"))
    assert found["status"]["state"] == "INACTIVE"


def test_purged_realm_takes_its_catalogs_with_it(story: Story) -> None:
    story.namespace.apply(
        realm_body(story.name, {CONFIRM: story.name}, deletionPolicy="Purge"), catalog_body("lake", story.name)
    )
    story.wait("Catalog", "Ready", name="lake")
    delete(story)
    story.namespace.wait_until_gone("Realm", story.name)
    found = story.wait("Catalog", "Ready", "False", name="lake", reason="RealmMissing")

    assert story.find_realm() is None
    assert found["message"]


def test_catalog_whose_realm_is_gone_can_be_deleted(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name))
    story.wait("Catalog", "Ready", name="lake")
    story.kubectl("delete", "realm", story.name, "--timeout=20s")

    story.kubectl("delete", "catalog", "lake", "--timeout=20s")


def test_retain_leaves_a_catalog_in_its_realm(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name))
    story.wait("Catalog", "Ready", name="lake")
    story.kubectl("delete", "catalog", "lake", "--timeout=20s")

    assert Catalogs(story.realms.open_realm(story.name)).read_catalog("lake").manager is None


def test_confirmed_catalog_goes(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name, deletionPolicy="Purge"))
    story.wait("Catalog", "Ready", name="lake")
    delete(story, "catalog", "lake")
    waits = story.wait("Catalog", "Deleting", "True", name="lake", reason="PurgeUnconfirmed")
    story.kubectl("annotate", "catalog", "lake", f"{CONFIRM}={story.name}/lake")
    story.namespace.wait_until_gone("Catalog", "lake")

    assert f"{story.name}/lake" in waits["message"]
    assert Catalogs(story.realms.open_realm(story.name)).find_catalog("lake") is None


@pytest.mark.parametrize("kind", ["realm", "catalog"])
def test_protected_resource_cannot_be_deleted(story: Story, kind: str) -> None:
    protected = {"deletionProtection": True}
    story.namespace.apply(realm_body(story.name, **protected), catalog_body("lake", story.name, **protected))
    name = story.name if kind == "realm" else "lake"

    done = story.namespace.kubectl("delete", kind, name, "--wait=false", check=False)
    assert done.returncode == 1
    assert "deletionProtection" in done.stderr
    assert "deletionTimestamp" not in story.namespace.read(kind.capitalize(), name)["metadata"]


def test_resource_protected_no_more_can_be_deleted(story: Story) -> None:
    story.make_realm(deletionProtection=True)
    story.apply_realm(deletionProtection=False)

    story.kubectl("delete", "realm", story.name, "--timeout=20s")
