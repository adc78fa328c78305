"""The operator's finalizer: put on and taken off by swaps, beside those of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cut_connections import FaultyConnection, HttpFault
from desks import make_realm

from headwater.errors import HeadwaterError, UnavailableError
from headwater_operator.kube import KubeApi, kubeconfig_connection
from headwater_operator.resource.finalizers import FINALIZER, add_finalizer, remove_finalizer
from headwater_operator.runtime.informer_cache import CachedResource
from kubetest import Namespace


@pytest.fixture
def http(namespace: Namespace) -> FaultyConnection:
    return FaultyConnection(kubeconfig_connection(str(namespace.cluster.kubeconfig)))


@pytest.fixture
def api(http: FaultyConnection) -> KubeApi:
    return KubeApi(http)  # type: ignore[arg-type]  # it does what a connection does


def make(namespace: Namespace, *finalizers: str) -> CachedResource:
    body = make_realm()
    body["metadata"]["finalizers"] = list(finalizers)
    return CachedResource.from_body(namespace.cluster.api.create_resource(namespace.path("Realm"), body))


def touch(namespace: Namespace, **metadata: Any) -> None:
    """Somebody else changes the resource."""
    namespace.cluster.api.patch_resource(namespace.path("Realm", "acme"), {"metadata": metadata}, kind="merge", manager="else")


def finalizers(namespace: Namespace) -> list[str]:
    return list(namespace.read("Realm", "acme")["metadata"].get("finalizers") or [])


@pytest.mark.parametrize("others", [[], ["a.example/x"], ["a.example/x", "b.example/y"]])
def test_finalizer_comes_after_those_of_others(namespace: Namespace, api: KubeApi, others: list[str]) -> None:
    resource = make(namespace, *others)

    body = add_finalizer(api, resource)

    assert body is not None
    assert body["metadata"]["finalizers"] == finalizers(namespace) == [*others, FINALIZER]


@pytest.mark.parametrize("others", [["a.example/x"], ["a.example/x", "b.example/y"]])
def test_finalizer_goes_alone(namespace: Namespace, api: KubeApi, others: list[str]) -> None:
    resource = make(namespace, others[0], FINALIZER, *others[1:])

    remove_finalizer(api, resource)

    assert finalizers(namespace) == others


def test_last_one_lets_a_deleted_resource_go(namespace: Namespace, api: KubeApi) -> None:
    make(namespace, FINALIZER)
    namespace.cluster.api.delete_resource(namespace.path("Realm", "acme"))
    resource = CachedResource.from_body(namespace.read("Realm", "acme"))

    remove_finalizer(api, resource)

    assert namespace.find("Realm", "acme") is None


def test_writer_that_was_beaten_reads_again_and_keeps_others_changes(namespace: Namespace, api: KubeApi) -> None:
    seen = make(namespace)
    touch(namespace, finalizers=["a.example/x"])

    add_finalizer(api, seen)
    assert finalizers(namespace) == ["a.example/x", FINALIZER]

    stale = CachedResource.from_body(namespace.read("Realm", "acme"))
    touch(namespace, finalizers=[FINALIZER, "b.example/y"])
    remove_finalizer(api, stale)
    assert finalizers(namespace) == ["b.example/y"]


def test_one_that_is_there_is_not_added_twice(namespace: Namespace, api: KubeApi, http: FaultyConnection) -> None:
    seen = make(namespace)
    touch(namespace, finalizers=[FINALIZER])

    add_finalizer(api, seen)

    assert finalizers(namespace) == [FINALIZER]


def test_none_is_added_to_what_is_being_deleted(namespace: Namespace, api: KubeApi) -> None:
    seen = make(namespace, "a.example/x")
    namespace.cluster.api.delete_resource(namespace.path("Realm", "acme"))

    assert add_finalizer(api, seen) is None
    assert finalizers(namespace) == ["a.example/x"]


def test_resource_that_was_made_again_is_not_touched(namespace: Namespace, api: KubeApi) -> None:
    seen = make(namespace)
    namespace.cluster.api.delete_resource(namespace.path("Realm", "acme"))
    make(namespace, FINALIZER)

    assert add_finalizer(api, seen) is None
    assert remove_finalizer(api, replace(seen, finalizers=(FINALIZER,))) is None
    assert finalizers(namespace) == [FINALIZER]


def test_resource_that_is_gone_is_fine(namespace: Namespace, api: KubeApi) -> None:
    seen = make(namespace)
    namespace.cluster.api.delete_resource(namespace.path("Realm", "acme"))

    assert add_finalizer(api, seen) is None
    assert remove_finalizer(api, seen) is None


def test_quarrel_ends_after_some_tries(namespace: Namespace, api: KubeApi, http: FaultyConnection) -> None:
    seen = make(namespace)

    class Meddler(KubeApi):
        def find_resource(self, path: str) -> dict[str, Any] | None:
            found = super().find_resource(path)
            touch(namespace, labels={"count": str(len(http.requests))})
            return found

    touch(namespace, labels={"count": "0"})

    with pytest.raises(UnavailableError, match="somebody else"):
        add_finalizer(Meddler(http), seen)  # type: ignore[arg-type]
    assert len(http.writes) == 5


@pytest.mark.parametrize("fault", [HttpFault("500", True), HttpFault("cut", True), HttpFault("409")], ids=str)
def test_answer_that_was_lost_does_no_harm(
    namespace: Namespace, api: KubeApi, http: FaultyConnection, fault: HttpFault
) -> None:
    seen = make(namespace, "a.example/x")
    http.fail(fault)
    try:
        add_finalizer(api, seen)
    except HeadwaterError:
        add_finalizer(api, seen)

    assert finalizers(namespace) == ["a.example/x", FINALIZER]
