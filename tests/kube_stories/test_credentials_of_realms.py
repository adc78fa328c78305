"""The root credentials of a realm, as a person finds them in a Secret."""

from __future__ import annotations

import pytest
from stories import Story, kept_credentials

from headwater.realms import Credentials, find_root, verify_secret

pytestmark = pytest.mark.long


def are_accepted(story: Story, credentials: Credentials) -> bool:
    root = find_root(story.realms, story.name)
    assert root is not None
    return verify_secret(root.credentials, credentials)


def test_secret_of_a_new_realm_opens_it(story: Story) -> None:
    story.make_realm()

    assert story.resource()["status"]["credentialsSecret"] == f"{story.name}-root-credentials"
    assert are_accepted(story, kept_credentials(story.namespace, story.name))


def test_secret_is_found_by_labels_and_belongs_to_nobody(story: Story) -> None:
    story.make_realm()

    found = story.kubectl("get", "secrets", "-l", f"headwater.dev/realm={story.name}", "-o", "name").split()
    secret = story.namespace.read("Secret", f"{story.name}-root-credentials")
    assert found == [f"secret/{story.name}-root-credentials"]
    assert secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "headwater-operator"
    assert secret["metadata"]["annotations"]["headwater.dev/realm-id"] == story.name
    assert "ownerReferences" not in secret["metadata"]


def test_annotation_rotates_the_credentials_once(story: Story) -> None:
    story.make_realm()
    former = kept_credentials(story.namespace, story.name)
    story.kubectl("annotate", "realm", story.name, "headwater.dev/rotate-credentials=2026-11")
    secret = story.namespace.wait_until(
        "Secret",
        f"{story.name}-root-credentials",
        lambda body: body["metadata"]["annotations"].get("headwater.dev/rotation") == "2026-11",
    )
    story.namespace.wait_until(
        "Realm", story.name, lambda _: are_accepted(story, kept_credentials(story.namespace, story.name))
    )
    story.kubectl("annotate", "realm", story.name, "example.com/note=1")  # makes the operator look once more
    story.wait("Realm", "Ready")

    assert not are_accepted(story, former)
    assert story.namespace.read("Secret", f"{story.name}-root-credentials")["metadata"] == secret["metadata"]


def test_secret_that_somebody_deleted_is_missed(story: Story) -> None:
    story.make_realm()
    story.kubectl("delete", "secret", f"{story.name}-root-credentials")

    missed = story.wait("Realm", "CredentialsAvailable", "False")
    assert "rotate-credentials" in missed["message"]


def test_rotating_brings_a_deleted_secret_back(story: Story) -> None:
    story.make_realm()
    story.kubectl("delete", "secret", f"{story.name}-root-credentials")
    story.kubectl("annotate", "realm", story.name, "headwater.dev/rotate-credentials=lost")
    story.namespace.wait_until("Secret", f"{story.name}-root-credentials", lambda body: body["data"])

    story.wait("Realm", "CredentialsAvailable")
    story.namespace.wait_until(
        "Realm", story.name, lambda _: are_accepted(story, kept_credentials(story.namespace, story.name))
    )
