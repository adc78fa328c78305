"""`kubectl headwater release`: takes the operator's finalizer off, if the operator does not live."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from plugin_bodies import FINALIZER
from plugin_calls import Lakes, Plugin

from kubetest.waits import wait_for


@contextmanager
def renewed(lakes: Lakes) -> Iterator[None]:
    """A holder of the Lease that lives."""
    ended = threading.Event()
    numbers = iter(range(10**6))

    def renew() -> bool:
        spec = {"renewTime": f"2026-11-22T12:00:00.{next(numbers):06}Z"}
        path = lakes.namespace.path("Lease", "headwater-operator")
        lakes.namespace.cluster.api.patch_resource(path, {"spec": spec}, kind="merge")
        return ended.is_set()

    thread = threading.Thread(target=wait_for, args=(renew,), kwargs={"seconds": 60})
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def finalizers(lakes: Lakes, kind: str = "Realm", name: str = "acme") -> list[str]:
    return list(lakes.read(kind, name)["metadata"].get("finalizers", []))


def test_deletion_that_nobody_carries_out_ends(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    lakes.namespace.kubectl("delete", "realm", "acme", "--wait=false")
    plugin.ok("release", "acme", "--yes", "--operator-namespace", lakes.name)

    assert lakes.namespace.find("Realm", "acme") is None


def test_resources_left_behind_are_told(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)

    said = plugin("release", "acme", "--yes", "--operator-namespace", lakes.name).stderr
    assert f"Realm {lakes.name}/acme (stays, without an operator): realm acme" in said
    assert "headwater realm purge" in said


def test_release_waits_for_a_yes(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)

    assert "say --yes to go ahead" in plugin.refused(5, "release", "acme", "--operator-namespace", lakes.name)
    assert finalizers(lakes) == [FINALIZER]


def test_operator_that_lives_is_named_and_nothing_is_done(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    lakes.make_lease("operator-7d4b9c_3f2a", seconds=15)
    with renewed(lakes):
        said = plugin.refused(5, "release", "acme", "--yes", "--operator-namespace", lakes.name)

    assert "the operator lives (operator-7d4b9c_3f2a" in said
    assert finalizers(lakes) == [FINALIZER]


def test_lease_that_stands_still_is_of_a_dead_operator(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    lakes.make_lease("operator-7d4b9c_3f2a", seconds=1)
    plugin.ok("release", "acme", "--yes", "--operator-namespace", lakes.name)

    assert finalizers(lakes) == []


def test_lease_that_was_given_back_is_nobodys(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    lakes.make_lease("", seconds=3600)
    plugin.ok("release", "acme", "--yes", "--operator-namespace", lakes.name)

    assert finalizers(lakes) == []


def test_finalizers_of_others_stay(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    path = lakes.namespace.path("Realm", "acme")
    both = {"metadata": {"finalizers": ["example.com/theirs", FINALIZER]}}
    lakes.namespace.cluster.api.patch_resource(path, both, kind="merge")
    plugin.ok("release", "acme", "--yes", "--operator-namespace", lakes.name)

    assert finalizers(lakes) == ["example.com/theirs"]


def test_all_of_a_namespace_is_released_at_once(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    lakes.make_catalog(held=True)
    plugin.ok("release", "--all", "--yes", "--operator-namespace", lakes.name)

    assert (finalizers(lakes), finalizers(lakes, "Catalog", "lake")) == ([], [])


def test_resource_that_no_operator_holds_is_left(plugin: Plugin, lakes: Lakes) -> None:
    before = lakes.make_realm()

    assert "there is nothing to release" in plugin.ok("release", "acme")
    assert lakes.read() == before


def test_operator_without_a_lease_is_known_by_its_pod(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    labels = {"app.kubernetes.io/part-of": "headwater", "app.kubernetes.io/component": "operator"}
    container = {"name": "operator", "image": "headwater-operator:0.1.0"}
    pod = {"metadata": {"name": "operator-1", "labels": labels}, "spec": {"containers": [container]}}
    api, path = lakes.namespace.cluster.api, lakes.namespace.path("Pod")
    api.create_resource(path, {"apiVersion": "v1", "kind": "Pod", **pod})
    api.patch_resource(f"{path}/operator-1/status", {"status": {"phase": "Running"}}, kind="merge")

    assert "the pod operator-1" in plugin.refused(5, "release", "acme", "--yes", "--operator-namespace", lakes.name)
    assert finalizers(lakes) == [FINALIZER]


def test_one_resource_or_all_has_to_be_said(plugin: Plugin) -> None:
    assert "name one resource, or say --all" in plugin.refused(2, "release")
