"""A person applies manifests, looks at what became of them, and changes them."""

from __future__ import annotations

import json

import pytest
from stories import Story, catalog_body, realm_body

from headwater.catalogs import Catalogs
from headwater.realms import RealmState

pytestmark = pytest.mark.long


def test_realm_that_is_applied_becomes_ready(story: Story) -> None:
    assert story.apply_realm() == f"realm.headwater.dev/{story.name} created\n"
    waited = story.kubectl("wait", "--for=condition=Ready", f"realm/{story.name}", "--timeout=20s")

    assert waited == f"realm.headwater.dev/{story.name} condition met\n"
    assert story.realm().state is RealmState.ACTIVE


def test_realm_and_its_catalog_come_in_one_file(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name))
    story.kubectl("wait", "--for=condition=Ready", f"realm/{story.name}", "catalog/lake", "--timeout=20s")

    assert Catalogs(story.realms.open_realm(story.name)).read_catalog("lake").base_location == f"s3://{story.name}/lake/"


def test_catalog_waits_for_its_realm_and_goes_on_by_itself(story: Story) -> None:
    story.namespace.apply(catalog_body("lake", story.name))
    waits = story.wait("Catalog", "Ready", "False", name="lake")
    story.apply_realm()

    assert waits["reason"] == "RealmMissing"
    assert story.wait("Catalog", "Ready", name="lake")


def test_get_shows_state_readiness_with_its_reason_and_tables(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name))
    story.wait("Catalog", "Ready", name="lake")
    story.namespace.wait_until("Realm", story.name, lambda body: body["status"].get("catalogs") == 1)

    head, realm = [line.split() for line in story.kubectl("get", "realms").splitlines()]
    catalog = story.kubectl("get", "hcat", "--no-headers").split()
    assert head == ["NAME", "STATE", "READY", "REASON", "TABLES", "LAST-MAINTENANCE", "AGE"]
    assert realm[:5] == [story.name, "ACTIVE", "True", "Reconciled", "0"]
    assert catalog[:5] == ["lake", "ACTIVE", "True", "Reconciled", "0"]


def test_wide_columns_tell_the_next_maintenance(story: Story) -> None:
    story.make_realm()
    found = story.namespace.wait_until("Realm", story.name, lambda body: body["status"]["maintenance"].get("nextTime"))

    head, row = story.kubectl("get", "rlm", "-o", "wide").splitlines()
    assert head.split()[-2:] == ["NEXT-MAINTENANCE", "MESSAGE"]
    assert found["status"]["maintenance"]["nextTime"] in row.split()


def test_one_word_gets_all_that_is_headwaters(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name))

    names = story.kubectl("get", "headwater", "-o", "name").split()
    assert sorted(names) == ["catalog.headwater.dev/lake", f"realm.headwater.dev/{story.name}"]


def test_describe_shows_what_happened(story: Story) -> None:
    story.make_realm()

    shown = story.kubectl("describe", "realm", story.name)
    status, _, events = shown.partition("Events:")
    assert f"Realm Id: {story.name}" in " ".join(status.split())
    assert "RealmCreated" in events
    assert f"bootstrapped realm {story.name}" in events


def test_no_event_shows_a_secret(story: Story) -> None:
    story.make_realm()

    data = story.namespace.read("Secret", f"{story.name}-root-credentials")["data"]
    shown = story.kubectl("describe", "realm", story.name) + story.kubectl("get", "events", "-o", "yaml")
    assert data["clientSecret"] not in shown


def test_manifest_applied_again_unchanged_writes_nothing(story: Story) -> None:
    story.make_realm()
    before = story.resource()["metadata"]["resourceVersion"]

    assert story.apply_realm() == f"realm.headwater.dev/{story.name} unchanged\n"
    story.kubectl("annotate", "realm", story.name, "example.com/note=1")  # makes the operator look once more
    after = story.namespace.wait_until("Realm", story.name, lambda body: body["metadata"]["resourceVersion"] != before)
    assert len(story.namespace.events(story.name)) == len({reason for reason, _ in story.namespace.events(story.name)})
    assert after["status"] == story.resource()["status"]


def test_edited_property_reaches_the_store(story: Story) -> None:
    story.make_realm(properties={"owner": "finance"})
    story.kubectl("patch", "realm", story.name, "--type=merge", "-p", '{"spec": {"properties": {"owner": "sales"}}}')
    story.wait("Realm", "Ready")

    assert story.realm().properties == {"owner": "sales"}
    assert story.resource()["status"]["observedGeneration"] == 2


def test_realm_is_made_inactive_and_active_again(story: Story) -> None:
    story.make_realm()
    story.kubectl("patch", "realm", story.name, "--type=merge", "-p", '{"spec": {"state": "Inactive"}}')
    story.namespace.wait_until("Realm", story.name, lambda body: body["status"]["state"] == "INACTIVE")
    rested = story.realm().state
    story.kubectl("patch", "realm", story.name, "--type=merge", "-p", '{"spec": {"state": "Active"}}')
    story.namespace.wait_until("Realm", story.name, lambda body: body["status"]["state"] == "ACTIVE")

    assert (rested, story.realm().state) == (RealmState.INACTIVE, RealmState.ACTIVE)


def test_property_of_a_catalog_is_edited(story: Story) -> None:
    story.namespace.apply(realm_body(story.name), catalog_body("lake", story.name))
    story.wait("Catalog", "Ready", name="lake")
    story.namespace.apply(catalog_body("lake", story.name, properties={"tier": "gold"}))
    story.wait("Catalog", "Ready", name="lake")

    assert Catalogs(story.realms.open_realm(story.name)).read_catalog("lake").properties == {"tier": "gold"}


def test_explain_tells_what_a_field_is_for(story: Story) -> None:
    shown = story.kubectl("explain", "realm.spec.deletionPolicy")

    assert "ENUM:\n    Retain\n    Purge" in shown
    assert "What happens when this resource is deleted." in shown


def test_diff_is_clean_after_apply_and_tells_what_would_change(story: Story) -> None:
    story.make_realm()

    clean = story.namespace.kubectl("diff", "-f", "-", text=json.dumps(realm_body(story.name)))
    changed = story.namespace.kubectl("diff", "-f", "-", text=json.dumps(realm_body(story.name, state="Inactive")), check=False)
    assert clean.stdout == ""
    assert changed.returncode == 1
    assert "-  state: Active\n+  state: Inactive" in changed.stdout


def test_dry_run_makes_nothing(story: Story) -> None:
    done = story.kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(realm_body(story.name)))

    assert done == f"realm.headwater.dev/{story.name} created (server dry run)\n"
    assert story.namespace.find("Realm", story.name) is None
    assert story.find_realm() is None


def test_realm_is_applied_server_side(story: Story) -> None:
    body = json.dumps(realm_body(story.name, properties={"owner": "finance"}))
    done = story.kubectl("apply", "--server-side", "-f", "-", text=body)
    story.wait("Realm", "Ready")

    assert done == f"realm.headwater.dev/{story.name} serverside-applied\n"
    assert story.realm().properties == {"owner": "finance"}
    assert story.kubectl("apply", "--server-side", "-f", "-", text=body) == done


def test_realm_has_the_id_that_its_manifest_gives(story: Story) -> None:
    story.namespace.apply(realm_body("acme", realmId=f"{story.name}_Acme"), catalog_body("lake", "acme"))
    story.wait("Catalog", "Ready", name="lake")

    assert story.realms.read_realm(f"{story.name}_Acme").manager.name == "acme"  # type: ignore[union-attr]
    assert story.namespace.read("Catalog", "lake")["status"]["realmId"] == f"{story.name}_Acme"


def test_editing_the_status_by_hand_does_not_last(story: Story) -> None:
    story.make_realm()
    story.kubectl("patch", "realm", story.name, "--subresource=status", "--type=merge", "-p", '{"status": {"state": "PURGED"}}')

    story.namespace.wait_until("Realm", story.name, lambda body: body["status"]["state"] == "ACTIVE")
