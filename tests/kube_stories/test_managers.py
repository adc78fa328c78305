"""Two resources, or a resource and a person, want the same realm."""

from __future__ import annotations

import pytest
from stories import Story, realm_body

from headwater.realms import RealmManager, RealmState, bootstrap, hash_credentials, new_credentials
from kube_fixtures import Installation
from kubetest import Namespace

pytestmark = pytest.mark.long


@pytest.fixture
def other(running: Installation) -> Namespace:
    """Another team's namespace."""
    return running.cluster.make_namespace("other")


def test_second_resource_for_the_same_realm_is_refused(story: Story, other: Namespace) -> None:
    story.make_realm(properties={"owner": "finance"})
    other.apply(realm_body(story.name, properties={"owner": "sales"}))

    refused = other.wait_for_condition("Realm", story.name, "Ready", "False", reason="ManagedByAnother")
    assert story.namespace.name in refused["message"]
    assert story.realm().properties == {"owner": "finance"}


def test_second_resource_cannot_adopt_what_was_not_given_away(story: Story, other: Namespace) -> None:
    story.make_realm()
    other.apply(realm_body(story.name, {"headwater.dev/adopt": story.name}))

    refused = other.wait_for_condition("Realm", story.name, "Ready", "False", reason="ManagedByAnother")
    assert f"headwater.dev/release-to: {other.name}/{story.name}" in refused["message"]
    assert story.realm().manager.namespace == story.namespace.name  # type: ignore[union-attr]


def test_second_resource_adopts_a_realm_that_was_given_away(story: Story, other: Namespace) -> None:
    story.make_realm()
    other.apply(realm_body(story.name, {"headwater.dev/adopt": story.name}))
    story.kubectl("annotate", "realm", story.name, f"headwater.dev/release-to={other.name}/{story.name}")
    other.wait_for_condition("Realm", story.name, "Ready")
    story.wait("Realm", "Ready", "False", reason="ManagedByAnother")

    manager = story.realm().manager
    assert manager is not None and manager.namespace == other.name


def test_deleting_a_refused_resource_harms_nobody(story: Story, other: Namespace) -> None:
    story.make_realm()
    other.apply(realm_body(story.name, {"headwater.dev/confirm-purge": story.name}))
    other.wait_for_condition("Realm", story.name, "Ready", "False", reason="ManagedByAnother")
    other.kubectl("delete", "realm", story.name, "--timeout=20s")

    assert story.realm().state is RealmState.ACTIVE
    assert story.namespace.find("Secret", f"{story.name}-root-credentials") is not None


def test_realm_that_a_person_made_is_adopted_when_asked(story: Story) -> None:
    story.realms.create_realm(story.name, manager=RealmManager(cluster="", namespace="", name="by-hand", uid=""))
    bootstrap(story.realms, story.name, hash_credentials(new_credentials()))
    story.apply_realm()
    story.wait("Realm", "Ready", "False", reason="ManagedByAnother")
    story.apply_realm({"headwater.dev/adopt": story.name})
    story.wait("Realm", "Ready")

    assert story.realm().state is RealmState.ACTIVE


def test_realm_that_was_changed_behind_the_operators_back_is_corrected(story: Story) -> None:
    story.make_realm()
    story.realms.move_realm(story.realm(), RealmState.INACTIVE)

    story.namespace.wait_until("Realm", story.name, lambda _: story.realm().state is RealmState.ACTIVE, seconds=10)


def test_drift_is_only_reported_where_the_policy_says_so(story: Story) -> None:
    story.make_realm(driftPolicy="Report")
    story.realms.move_realm(story.realm(), RealmState.INACTIVE)
    drifted = story.wait("Realm", "Drifted", seconds=10)

    assert "INACTIVE" in drifted["message"]
    assert story.realm().state is RealmState.INACTIVE


def test_drift_that_somebody_mended_is_no_longer_reported(story: Story) -> None:
    story.make_realm(driftPolicy="Report")
    story.realms.move_realm(story.realm(), RealmState.INACTIVE)
    story.wait("Realm", "Drifted", seconds=10)
    story.realms.move_realm(story.realm(), RealmState.ACTIVE)

    story.wait("Realm", "Drifted", "False", seconds=10)
