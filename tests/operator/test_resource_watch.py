"""The watches: what they bring, what they never do, and what they survive."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from desks import make_catalog, make_realm
from watch_thread import QuickServer, RunningWatch, quick_server

from fake_clock import FakeClock
from headwater.errors import NotFoundError, UnavailableError
from headwater_operator.kube import resource_path
from headwater_operator.resource.finalizers import FINALIZER
from headwater_operator.runtime.informer_cache import ResourceKey
from headwater_operator.runtime.watch import JitteredBackoffs, watch_settings
from kubetest.waits import wait_for

pytestmark = pytest.mark.long

WATCHES = ("realms", "catalogs")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QuickServer]:
    with quick_server(tmp_path) as started:
        monkeypatch.setenv("KUBECONFIG", str(started.emulated.kubeconfig))
        yield started


@pytest.fixture
def watches(server: QuickServer) -> Iterator[Callable[..., RunningWatch]]:
    """``watches(namespaces=["a"])`` is a watch that runs; it is stopped in the end."""
    started: list[RunningWatch] = []

    def start(**options: Any) -> RunningWatch:
        watch = RunningWatch.make(**options)
        started.append(watch)
        watch.start()
        return watch

    yield start
    for watch in started:
        watch.stop()


@pytest.fixture
def watch(server: QuickServer, watches: Callable[..., RunningWatch]) -> RunningWatch:
    """One that has listed everything, which is nothing yet."""
    running = watches()
    running.wait_until_open(server)
    return running


# What they bring


def test_cache_and_queue_have_everything_when_all_is_listed(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    server.make(make_realm(), make_catalog(), make_catalog("returns"))

    watch = watches()
    watch.wait_until_listed()

    assert watch.cache.counts() == {"Realm": 1, "Catalog": 2}
    assert watch.taken() == {"acme", "sales", "returns"}


def test_undeclared_states_of_a_list_come_first(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    server.make(*(make_catalog(f"settled-{number}") for number in range(20)), make_catalog("zealous"))
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Reconciled",
        "message": "",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }
    status = {"observedGeneration": 1, "conditions": [ready]}
    for number in range(20):
        path = resource_path("Catalog", "default", f"settled-{number}", "status")
        server.api.patch_resource(path, {"status": status}, kind="merge")

    clock = FakeClock()  # stands still while the list is taken in, however busy the machine is
    watch = watches(clock=clock)
    watch.wait_until_listed()
    at_once = watch.taken()
    clock.advance(60)

    assert (at_once, len(watch.taken())) == ({"zealous"}, 20)


def test_resource_that_comes_changes_and_goes_is_seen(server: QuickServer, watch: RunningWatch) -> None:
    server.make(make_realm())
    watch.wait_for_names("Realm", "acme")
    assert watch.taken() == {"acme"}

    path = resource_path("Realm", "default", "acme")
    server.api.patch_resource(path, {"spec": {"state": "Inactive"}}, kind="merge")
    wait_for(lambda: watch.taken() == {"acme"})
    seen = watch.cache.find_resource(ResourceKey("Realm", "default", "acme"))
    assert seen is not None and seen.spec["state"] == "Inactive"

    server.remove("Realm", "acme")
    watch.wait_for_names("Realm")
    assert watch.taken() == {"acme"}


def test_namespaces_are_watched_only_if_named(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    for name in ("ours", "other"):
        server.api.create_resource("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    server.make(make_realm("one"), namespace="ours")
    server.make(make_realm("two"))

    watch = watches(namespaces=["ours", "default"])
    watch.wait_until_listed()
    server.make(make_realm("three"), namespace="other")
    server.make(make_realm("four"), namespace="ours")
    watch.wait_for_names("Realm", "four", "one", "two")

    assert watch.cache.find_resource(ResourceKey("Realm", "other", "three")) is None


def test_label_selector_is_left_to_the_server(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    labelled = make_realm("one")
    labelled["metadata"]["labels"] = {"lake": "north"}
    server.make(labelled, make_realm("two"))

    watch = watches(label_selector="lake=north")
    watch.wait_until_listed()

    assert [key.name for key in watch.cache.keys("Realm")] == ["one"]


def test_every_list_and_watch_is_taken_by_the_server(server: QuickServer, watch: RunningWatch) -> None:
    """The server parses each parameter as a real one does: a time-out of 600.0 seconds is refused."""
    server.make(make_realm())
    watch.wait_for_names("Realm", "acme")

    asked = [one for one in server.requests() if "resource" in one and one["user_agent"] != "person"]
    found = {(one["verb"], one["resource"], one["status"]) for one in asked}
    assert found == {(verb, plural, 200) for verb in ("list", "watch") for plural in WATCHES}


# What they never do


def test_watch_writes_nothing_whatever_it_sees(server: QuickServer, watch: RunningWatch) -> None:
    """kopf adds and removes the finalizer that it is told of as its handlers need it; ours is none of its business."""
    held = make_realm()
    held["metadata"]["finalizers"] = [FINALIZER]
    server.make(held, make_catalog())
    server.api.patch_resource(resource_path("Realm", "default", "acme"), {"spec": {"state": "Inactive"}}, kind="merge")
    server.remove("Realm", "acme")
    watch.wait_for_names("Catalog", "sales")
    wait_for(
        lambda: (seen := watch.cache.find_resource(ResourceKey("Realm", "default", "acme"))) is not None and seen.is_deleted
    )
    watch.stop()

    assert {one["verb"] for one in server.requests(user_agent="kopf")} <= {"get", "list", "watch"}
    body = server.api.get_resource(resource_path("Realm", "default", "acme"))
    assert body["metadata"]["finalizers"] == [FINALIZER]
    assert "annotations" not in body["metadata"]


def test_watch_asks_for_no_more_than_discovery_and_our_resources(server: QuickServer, watch: RunningWatch) -> None:
    watch.stop()

    asked = {one["path"] for one in server.requests(user_agent="kopf")}
    resources = {path for path in asked if path.count("/") > 3}
    assert resources == {f"/apis/headwater.dev/v1alpha1/{plural}" for plural in WATCHES}


# What they survive


def test_lists_keep_a_silent_watch_young(watches: Callable[..., RunningWatch]) -> None:
    watch = watches(relist_seconds=0.2)
    watch.wait_until_listed()
    oldest = 0.0
    for _ in range(10):
        wait_for(lambda: max(watch.watch.ages().values()) < 0.1, every=0.01)
        oldest = max(oldest, *watch.watch.ages().values())

    assert set(watch.watch.ages()) == {"Realm", "Catalog"}
    assert oldest < 5


def test_watch_that_brings_less_than_a_list_shows_ages(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    watch = watches(relist_seconds=0.1, longest_wait_seconds=0.1)
    watch.wait_until_open(server)
    server.control("POST", "faults", [{"action": "503", "verb": "watch", "resource": "realms", "times": -1}])
    server.control("POST", "watches/cut")
    server.make(make_realm())

    wait_for(lambda: watch.watch.ages()["Realm"] > 3)
    assert watch.watch.ages()["Catalog"] < 3


def test_watch_that_is_cut_goes_on_where_it_was(server: QuickServer, watch: RunningWatch) -> None:
    server.make(make_realm("one"))
    watch.wait_for_names("Realm", "one")
    server.control("POST", "watches/cut")
    server.make(make_realm("two"))

    watch.wait_for_names("Realm", "one", "two")

    assert len(server.requests(user_agent="kopf", verb="list", resource="realms")) == 1


@pytest.mark.parametrize("says", ["in the stream", "as the answer"])
def test_resource_that_left_while_a_watch_was_away_is_forgotten(server: QuickServer, watch: RunningWatch, says: str) -> None:
    server.make(make_realm("one"), make_realm("two"))
    watch.wait_for_names("Realm", "one", "two")
    watch.taken()
    server.control("POST", "faults", [{"action": "503", "verb": "watch", "times": -1}])
    server.control("POST", "watches/cut")
    server.remove("Realm", "one")
    server.make(make_realm("three"))
    if says == "in the stream":
        server.control("POST", "compact")
    server.control("DELETE", "faults")
    if says == "as the answer":
        server.control("POST", "faults", [{"action": "410", "verb": "watch", "times": 1}])

    watch.wait_for_names("Realm", "three", "two")

    assert watch.taken() == {"one", "three"}


def test_last_resource_that_left_unseen_is_forgotten(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    """kopf's next list is empty, so it says nothing of it."""
    watch = watches(relist_seconds=0.2)
    watch.wait_until_open(server)
    server.make(make_realm())
    watch.wait_for_names("Realm", "acme")
    watch.taken()
    server.control("POST", "faults", [{"action": "503", "verb": "watch", "times": -1}])
    server.control("POST", "watches/cut")
    server.remove("Realm", "acme")
    server.control("POST", "compact")
    server.control("DELETE", "faults")

    watch.wait_for_names("Realm")
    assert watch.taken() == {"acme"}


def test_list_that_expires_between_pages_restarts_the_watch_of_its_kind_alone(
    server: QuickServer, watches: Callable[..., RunningWatch]
) -> None:
    """A kopf that watches both kinds ends with either: the watch of Realms was cut, and began anew, with each of these 410."""
    names = [f"sales-{number:03}" for number in range(501)]  # kopf asks for pages of 500
    server.make(*map(make_catalog, names))
    second_pages = [
        {"action": "410", "verb": "list", "resource": "catalogs", "user_agent": "kopf", "skip": skip} for skip in (1, 2, 3)
    ]
    server.control("POST", "faults", second_pages)

    watch = watches(longest_wait_seconds=0.1)
    wait_for(lambda: server.requests(user_agent="kopf", verb="watch", resource="realms"))
    server.make(make_realm())
    watch.wait_for_names("Realm", "acme")
    watch.wait_for_names("Catalog", *names)
    watch.wait_until_open(server)

    statuses = [one["status"] for one in server.requests(user_agent="kopf", verb="list", resource="catalogs")]
    assert statuses == [200, 410] * 3 + [200, 200]
    for verb in ("list", "watch"):
        assert len(server.requests(user_agent="kopf", verb=verb, resource="realms")) == 1


def test_lists_that_fail_are_asked_for_again(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    server.make(make_realm())
    faults = [{"action": action, "verb": "list", "resource": "realms"} for action in ("500", "429", "drop", "503", "403")]
    server.control("POST", "faults", faults)

    watch = watches(longest_wait_seconds=0.1)
    watch.wait_until_listed()

    assert watch.cache.counts() == {"Realm": 1}


def test_server_that_is_silent_for_a_while_loses_nothing(server: QuickServer, watch: RunningWatch) -> None:
    server.emulated.pause()
    wait_for(lambda: max(watch.watch.ages().values()) > 0.6)
    server.emulated.resume()
    server.make(make_realm())

    watch.wait_for_names("Realm", "acme")


def test_kind_that_is_served_no_more_ends_the_feed(server: QuickServer, watch: RunningWatch) -> None:
    server.api.delete_resource(resource_path("CustomResourceDefinition", None, "realms.headwater.dev"))
    server.control("POST", "watches/cut")

    assert watch.ended.wait(60)

    assert isinstance(watch.fault, UnavailableError)


def test_kinds_that_were_never_there_are_refused_by_name(server: QuickServer, watches: Callable[..., RunningWatch]) -> None:
    server.api.delete_resource(resource_path("CustomResourceDefinition", None, "catalogs.headwater.dev"))

    watch = watches()
    assert watch.ended.wait(60)

    assert isinstance(watch.fault, NotFoundError)
    assert "catalogs.headwater.dev" in str(watch.fault)


def test_watch_that_was_stopped_before_it_began_ends_at_once(server: QuickServer) -> None:
    watch = RunningWatch.make()
    watch.watch.stop()
    watch.start()

    assert watch.ended.wait(120)
    watch.stop()
    assert [one for one in server.requests() if one["user_agent"] != "person"] == []


# Settings


def test_waits_between_attempts_are_jittered_grow_and_never_end() -> None:
    waits = list(itertools.islice(JitteredBackoffs(longest_seconds=15), 200))

    assert not hasattr(JitteredBackoffs(), "__len__")  # kopf would count the attempts
    assert waits[0] <= 0.75
    assert 7.5 <= min(waits[10:]) < 10 < 20 < max(waits[10:]) <= 22.5


def test_kopf_is_set_up_for_production() -> None:
    settings = watch_settings(instance="pod-1")

    assert f"{settings.watching.server_timeout}" == "600"  # kopf sends this text, and an API server takes no 600.0
    assert settings.watching.client_timeout == 660
    assert (settings.watching.connect_timeout, settings.watching.inactivity_timeout) == (10, 70)
    assert settings.watching.chunk_size == 500
    assert settings.networking.request_timeout == 30
    assert settings.networking.enforce_retry_after
    assert settings.scanning.disabled
    assert not settings.posting.enabled
    assert settings.persistence.finalizer != FINALIZER
