"""The plugin and the real operator: what one asks, the other answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from plugin_bodies import catalog_body, realm_body
from plugin_calls import Plugin

from headwater.realms import RealmRegistry, RealmState
from kube_fixtures import Installation
from kubetest import Namespace

pytestmark = pytest.mark.long


@pytest.fixture
def running(installation: Installation, namespace: Namespace) -> Installation:
    """An operator, and a realm that is ready."""
    installation.start_operator()
    namespace.apply(realm_body())
    namespace.wait_for_condition("Realm", "acme", "Ready")
    return installation


@pytest.fixture
def asked(namespace: Namespace) -> Plugin:
    """The plugin in the operator's namespace."""
    return Plugin(namespace)


def state_of(running: Installation) -> RealmState | None:
    with running.open_store() as store:
        found = RealmRegistry(store).find_realm("acme")
    return None if found is None else found.state


@pytest.mark.usefixtures("running")
def test_realm_that_is_as_declared_has_an_empty_plan(asked: Plugin) -> None:
    assert asked.ok("plan", "acme") == "realm/acme: nothing to do\n"


def test_file_is_planned_and_nothing_of_it_is_done(running: Installation, asked: Plugin, written: Callable[[str], str]) -> None:
    file = written(yaml.safe_dump(realm_body(state="Inactive")))

    assert "would do: move realm acme to INACTIVE" in asked.ok("plan", "acme", "-f", file)
    assert state_of(running) is RealmState.ACTIVE


@pytest.mark.usefixtures("running")
def test_catalog_without_its_realm_would_wait(asked: Plugin, namespace: Namespace) -> None:
    namespace.apply(catalog_body("pond", "missing"))

    assert "would wait: " in asked.ok("plan", "catalog/pond")


def test_collection_is_asked_for_and_followed(running: Installation, asked: Plugin) -> None:
    running.start_worker()

    assert asked.ok("gc", "acme", "--wait", "--timeout", "60s").splitlines()[-1].startswith("realm/acme: succeeded, ")


def test_purge_is_followed_to_its_end(running: Installation, asked: Plugin) -> None:
    running.start_worker()
    said = asked.ok("purge", "acme", "--confirm", "acme", "--wait", "--timeout", "90s")

    assert said.splitlines()[-1] == "realm/acme: gone, with everything in it"
    assert state_of(running) is None


def test_purge_that_is_called_off_leaves_the_realm(running: Installation, asked: Plugin, namespace: Namespace) -> None:
    namespace.kubectl("patch", "realm", "acme", "--type=merge", "-p", '{"spec":{"purgeHold":"1h"}}')
    namespace.wait_for_condition("Realm", "acme", "Ready")
    asked.ok("purge", "acme", "--confirm", "acme")
    namespace.wait_for_condition("Realm", "acme", "Deleting", reason="PurgeHold")
    asked.ok("purge", "acme", "--cancel")

    namespace.wait_until_gone("Realm", "acme")
    assert state_of(running) is RealmState.ACTIVE


@pytest.mark.usefixtures("running")
def test_operator_that_lives_keeps_its_resources(asked: Plugin, namespace: Namespace) -> None:
    said = asked.refused(5, "release", "acme", "--yes", "--operator-namespace", namespace.name)

    assert "the operator lives (" in said


def test_remains_of_a_killed_operator_can_be_released(running: Installation, asked: Plugin, namespace: Namespace) -> None:
    running.started[0].kill()
    namespace.kubectl("delete", "realm", "acme", "--wait=false")
    asked.ok("release", "acme", "--yes", "--operator-namespace", namespace.name)

    assert (namespace.find("Realm", "acme"), state_of(running)) == (None, RealmState.ACTIVE)
