"""Resources as they were seen last: what is kept of them, and what of a new sight deserves another look."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import pytest
from bodies import body, catalog, realm

from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache, ResourceChange, ResourceKey

ACME = ResourceKey("Realm", "default", "acme")


@pytest.fixture
def cache() -> ResourceCache:
    return ResourceCache()


def realm_with_status(number: int) -> dict[str, Any]:
    """A Realm as big as they are in use."""
    conditions = [
        {"type": type_, "status": "True", "reason": "Reconciled", "message": "", "lastTransitionTime": "2026-05-28T20:26:40Z"}
        for type_ in ("Ready", "Accepted", "StoreReachable", "MaintenanceHealthy", "CredentialsAvailable", "Drifted")
    ]
    spec = {"properties": {f"property-{at}": "value" * 8 for at in range(12)}, "maintenance": {"schedule": "0 3 * * 0"}}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}" * 600}
    status = {"state": "ACTIVE", "conditions": conditions, "message": "", "tables": number, "realmKey": f"{number:016x}"}
    return body(name=f"realm-{number}", spec=spec, status=status, annotations=applied)


def test_key_reads_as_people_say_it() -> None:
    assert str(ACME) == "Realm default/acme"


def test_keys_are_ordered_and_found_again() -> None:
    lake = ResourceKey("Catalog", "default", "lake")

    assert sorted([ACME, lake]) == [lake, ACME]
    assert {ACME: 1}[ResourceKey("Realm", "default", "acme")] == 1


def test_annotation_that_kubectl_notes_for_itself_is_not_kept() -> None:
    last = "kubectl.kubernetes.io/last-applied-configuration"

    assert realm(annotations={last: "{}", "team": "blue"}).annotations == {"team": "blue"}


def test_resource_without_metadata_of_its_own_is_read() -> None:
    bare = CachedResource.from_body({"kind": "Realm", "metadata": {"name": "acme"}})

    assert (bare.spec, bare.status, bare.labels, bare.annotations, bare.finalizers) == ({}, {}, {}, {}, ())
    assert not bare.is_deleted


def test_value_that_was_read_is_ones_own() -> None:
    seen = realm(spec={"properties": {"team": "blue"}})

    seen.spec["properties"]["team"] = "red"

    assert seen.spec["properties"] == {"team": "blue"}


def test_resource_is_told_as_a_manifest_with_its_deletion_time() -> None:
    seen = realm(deletionTimestamp="2026-05-28T20:26:40Z", annotations={"headwater.dev/run-now": "gc"}, managedFields=[{}])

    assert seen.body() == {
        "apiVersion": "headwater.dev/v1alpha1",
        "kind": "Realm",
        "metadata": {
            "name": "acme",
            "namespace": "default",
            "labels": {},
            "annotations": {"headwater.dev/run-now": "gc"},
            "deletionTimestamp": "2026-05-28T20:26:40Z",
        },
        "spec": {"realmId": "acme"},
    }


def test_thousand_resources_take_less_than_four_mebibytes(cache: ResourceCache) -> None:
    tracemalloc.start()
    try:
        for number in range(1000):
            cache.update_resource(None, realm_with_status(number))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 4 * 1024**2, f"{taken / 1000:.0f} bytes each"


def test_first_sight_is_new(cache: ResourceCache) -> None:
    assert cache.update_resource(None, body()) is ResourceChange.NEW


@pytest.mark.parametrize("event", [None, "ADDED", "MODIFIED"])
def test_same_sight_again_is_nothing(cache: ResourceCache, event: str | None) -> None:
    cache.update_resource(None, body())

    assert not cache.update_resource(event, body())


@pytest.mark.parametrize(
    ("others", "change"),
    [
        ({"generation": 2, "spec": {"state": "Inactive"}}, ResourceChange.SPEC),
        ({"annotations": {"headwater.dev/run-now": "gc"}}, ResourceChange.METADATA),
        ({"labels": {"team": "blue"}}, ResourceChange.METADATA),
        ({"finalizers": ["headwater.dev/operator"]}, ResourceChange.FINALIZERS),
        ({"deletionTimestamp": "2026-05-28T20:26:40Z", "generation": 2}, ResourceChange.DELETION | ResourceChange.SPEC),
        ({"status": {"state": "ACTIVE"}}, ResourceChange.STATUS),
    ],
)
def test_each_change_has_its_name(cache: ResourceCache, others: dict[str, Any], change: ResourceChange) -> None:
    cache.update_resource(None, body())

    assert cache.update_resource("MODIFIED", body(resourceVersion="2", **others)) == change


def test_managed_fields_and_what_kubectl_notes_are_no_change(cache: ResourceCache) -> None:
    cache.update_resource(None, body())

    noted = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    assert not cache.update_resource("MODIFIED", body(resourceVersion="2", managedFields=[{}], annotations=noted))


def test_status_of_ones_own_comes_back_as_nothing_new(cache: ResourceCache) -> None:
    cache.update_resource(None, body())
    cache.expect(ACME, {"state": "ACTIVE", "tables": 3})

    assert not cache.update_resource("MODIFIED", body(resourceVersion="2", status={"tables": 3, "state": "ACTIVE"}))


def test_status_that_others_changed_is_told(cache: ResourceCache) -> None:
    cache.update_resource(None, body())
    cache.expect(ACME, {"state": "ACTIVE"})
    cache.update_resource("MODIFIED", body(resourceVersion="2", status={"state": "ACTIVE"}))

    assert cache.update_resource("MODIFIED", body(resourceVersion="3", status={"state": "LOST"})) is ResourceChange.STATUS


def test_answer_to_ones_own_write_is_what_is_held(cache: ResourceCache) -> None:
    cache.update_resource(None, body())

    assert not cache.learn(body(resourceVersion="2", status={"state": "ACTIVE"}))
    assert not cache.update_resource("MODIFIED", body(resourceVersion="2", status={"state": "ACTIVE"}))
    assert cache.find_resource(ACME) == CachedResource.from_body(body(resourceVersion="2", status={"state": "ACTIVE"}))


def test_resource_that_came_in_an_answer_is_told(cache: ResourceCache) -> None:
    cache.update_resource(None, body())
    answer = body(resourceVersion="3", status={"state": "ACTIVE"}, annotations={"headwater.dev/run-now": "gc"})

    assert cache.learn(answer) is ResourceChange.METADATA


def test_event_that_an_answer_has_overtaken_is_nothing(cache: ResourceCache) -> None:
    cache.update_resource(None, body())
    cache.learn(body(resourceVersion="10", status={"state": "ACTIVE"}))

    assert not cache.update_resource("MODIFIED", body(resourceVersion="9", annotations={"team": "blue"}))
    assert (held := cache.find_resource(ACME)) is not None
    assert held.resource_version == "10"


def test_answer_that_an_event_has_overtaken_is_nothing(cache: ResourceCache) -> None:
    cache.update_resource(None, body(resourceVersion="10"))

    assert not cache.learn(body(resourceVersion="9", annotations={"team": "blue"}))
    assert (held := cache.find_resource(ACME)) is not None
    assert held.annotations == {}


def test_list_is_taken_even_when_its_versions_went_back(cache: ResourceCache) -> None:
    cache.update_resource(None, body(resourceVersion="10"))

    assert cache.update_resource(None, body(resourceVersion="9", generation=7)) is ResourceChange.SPEC


def test_versions_that_are_no_numbers_are_never_older(cache: ResourceCache) -> None:
    cache.update_resource(None, body(resourceVersion="b"))

    assert cache.update_resource("MODIFIED", body(resourceVersion="a", labels={"team": "blue"})) is ResourceChange.METADATA


def test_resource_that_was_made_again_is_new(cache: ResourceCache) -> None:
    cache.update_resource(None, body())

    assert cache.update_resource("ADDED", body(uid="another", resourceVersion="5")) is ResourceChange.NEW


def test_deleted_resource_leaves(cache: ResourceCache) -> None:
    cache.update_resource(None, body())

    assert cache.update_resource("DELETED", body()) is ResourceChange.GONE
    assert cache.find_resource(ACME) is None
    assert not cache.update_resource("DELETED", body())


def test_late_word_of_a_deletion_keeps_the_new_resource(cache: ResourceCache) -> None:
    cache.update_resource("ADDED", body(uid="new"))

    assert not cache.update_resource("DELETED", body(uid="old"))
    assert cache.find_resource(ACME) is not None


def test_answer_about_a_gone_resource_does_not_bring_it_back(cache: ResourceCache) -> None:
    cache.update_resource(None, body())
    cache.update_resource("DELETED", body())

    assert not cache.learn(body(resourceVersion="2"))
    assert cache.find_resource(ACME) is None


def test_list_of_all_takes_away_what_is_not_in_it(cache: ResourceCache) -> None:
    for name in ("acme", "same", "old"):
        cache.update_resource(None, body(name=name))
    cache.update_resource(None, body("Catalog", "lake"))

    changes = cache.replace_all("Realm", [body(labels={"team": "blue"}), body(name="same"), body(name="fresh")])

    assert {str(key): change for key, change in changes.items()} == {
        "Realm default/old": ResourceChange.GONE,
        "Realm default/acme": ResourceChange.METADATA,
        "Realm default/fresh": ResourceChange.NEW,
    }
    assert [key.name for key in cache.keys("Realm")] == ["acme", "fresh", "same"]
    assert [key.name for key in cache.keys("Catalog")] == ["lake"]


def test_resource_that_turned_out_to_be_gone_is_forgotten(cache: ResourceCache) -> None:
    cache.update_resource(None, body("Catalog", "lake"))

    cache.remove_resource(ResourceKey("Catalog", "default", "lake"))
    cache.remove_resource(ACME)

    assert (cache.keys(), cache.catalogs_of("default", "acme")) == ([], [])


def test_catalogs_are_found_by_their_realm_even_if_missing(cache: ResourceCache) -> None:
    for name in ("pond", "lake"):
        cache.update_resource(None, body("Catalog", name))
    cache.update_resource(None, body("Catalog", "other", spec={"realm": "umbrella"}))
    cache.update_resource(None, body("Catalog", "far", namespace="elsewhere"))

    assert [key.name for key in cache.catalogs_of("default", "acme")] == ["lake", "pond"]
    assert cache.catalogs_of("default", "nobody") == []


def test_catalog_that_names_another_realm_moves(cache: ResourceCache) -> None:
    cache.update_resource(None, body("Catalog", "lake"))
    cache.update_resource("MODIFIED", body("Catalog", "lake", spec={"realm": "umbrella"}, generation=2, resourceVersion="2"))

    assert cache.catalogs_of("default", "acme") == []
    assert [key.name for key in cache.catalogs_of("default", "umbrella")] == ["lake"]


def test_realm_of_a_catalog_is_the_one_of_its_namespace(cache: ResourceCache) -> None:
    cache.update_resource(None, body())

    assert cache.realm_of(catalog()) == realm()
    assert cache.realm_of(catalog(namespace="elsewhere")) is None


def test_resources_are_counted_by_kind_and_by_condition(cache: ResourceCache) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("one", "two"):
        cache.update_resource(None, body(name=name, status=ready))
    cache.update_resource(None, body("Catalog", "lake", status={"conditions": [{"type": "Ready", "status": "False"}]}))

    assert cache.counts() == {"Realm": 2, "Catalog": 1}
    assert cache.standings() == {("Realm", "Ready", "True"): 2, ("Catalog", "Ready", "False"): 1}


def test_threads_may_use_a_cache_together(cache: ResourceCache) -> None:
    def churn(number: int) -> None:
        for round_ in range(50):
            cache.update_resource(None, body("Catalog", f"lake-{number}", spec={"realm": f"realm-{round_ % 3}"}))
            cache.catalogs_of("default", f"realm-{round_ % 3}")
            cache.standings()
            cache.update_resource("DELETED", body("Catalog", f"lake-{number}"))

    threads = [threading.Thread(target=churn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (cache.counts(), cache.catalogs_of("default", "realm-0")) == ({}, [])
