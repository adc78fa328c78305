"""An older definition of our resources in the cluster: the API server drops fields, and nothing is done because they are missing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from desks import Desk, make_catalog, make_realm

from headwater.realms import RealmRegistry, find_principal
from headwater.store import RealmId
from headwater_operator.kube import resource_path
from headwater_operator.runtime.served_schema import SchemaOlderError, ServedSchemas, has_shrunk, spec_digest
from kubetest import Namespace
from kubetest.waits import wait_for

GROUP = "headwater.dev"


@contextmanager
def older_definition(namespace: Namespace, plural: str, *dropped: str, has_digest: bool = True) -> Iterator[None]:
    """While this lasts, the cluster has a definition without these fields of the spec, as an older release would."""
    api, path = namespace.cluster.api, resource_path("CustomResourceDefinition", None, f"{plural}.{GROUP}")
    newer = api.get_resource(path)
    older = copy.deepcopy(newer["spec"])
    properties = older["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for name in dropped:
        del properties["spec"]["properties"][name]
    if not has_digest:
        del properties["status"]["properties"]["specDigest"]
    rules = properties["spec"].get("x-kubernetes-validations", [])
    properties["spec"]["x-kubernetes-validations"] = [
        rule for rule in rules if not any(name in rule["rule"] for name in dropped)
    ]
    serve(namespace, plural, path, older)
    try:
        yield
    finally:
        serve(namespace, plural, path, newer["spec"])


def serve(namespace: Namespace, plural: str, path: str, spec: dict[str, Any]) -> None:
    """Replace a definition, and wait until the API server reads by it."""
    api = namespace.cluster.api
    api.replace_resource(path, {**api.get_resource(path), "spec": spec})
    probe = {"apiVersion": f"{GROUP}/v1alpha1", "kind": plural.removesuffix("s").capitalize(), "metadata": {"name": "probe"}}
    known = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    wanted = {"principals": [{"name": "probe"}]} if plural == "realms" else {"roles": [{"name": "probe"}]}
    needed = (
        {"realmId": "probe"} if plural == "realms" else {"realm": "r", "name": "probe", "storage": {"baseLocation": "s3://b/"}}
    )

    def is_served() -> bool:
        manifest = {**probe, "spec": {**needed, **wanted}}
        made = namespace.kubectl(
            "create", "--dry-run=server", "--validate=false", "-o", "json", "-f", "-", text=json.dumps(manifest)
        )
        return all((name in made.stdout) == (name in known) for name in wanted)

    wait_for(is_served, seconds=30, why=lambda: "the definition is not served")


def secret(desk: Desk, name: str) -> Any:
    return desk.namespace.cluster.api.find_resource(desk.namespace.path("Secret", name))


def is_enabled(desk: Desk, principal: str) -> bool:
    found = find_principal(RealmRegistry(desk.store), RealmId("acme"), principal)
    return found is not None and found.disabled is None


def stored_version(desk: Desk) -> str:
    return str(desk.namespace.read("Realm", "acme")["metadata"]["resourceVersion"])


@pytest.fixture
def ready(desk: Desk) -> Desk:
    desk.apply(make_realm(principals=[{"name": "etl"}]))
    desk.go_on(3)
    assert desk.is_ready("Realm", "acme")
    return desk


@pytest.mark.long
@pytest.mark.parametrize("has_digest", [True, False])
def test_nothing_is_removed_or_written_while_an_older_definition_is_served(ready: Desk, *, has_digest: bool) -> None:
    before, version, kept = secret(ready, "acme-etl-credentials"), stored_version(ready), ready.status("Realm", "acme")

    with older_definition(ready.namespace, "realms", "principals", has_digest=has_digest):
        assert "principals" not in ready.namespace.read("Realm", "acme")["spec"]
        ready.go_on(1000, step=50)
        assert stored_version(ready) == version
        assert is_enabled(ready, "etl")
        assert "SchemaOlder" in [reason for reason, _ in ready.namespace.events("acme")]

    assert secret(ready, "acme-etl-credentials") == before
    ready.go_on(1000, step=50)
    assert ready.namespace.read("Realm", "acme")["spec"]["principals"] == [{"disabled": False, "name": "etl"}]
    assert ready.status("Realm", "acme")["specDigest"] == kept["specDigest"]
    assert ready.is_ready("Realm", "acme")


@pytest.mark.long
def test_new_resources_wait_for_the_definition(desk: Desk) -> None:
    with older_definition(desk.namespace, "realms", "principals"):
        desk.apply(make_realm())
        desk.go_on(3)
        assert "finalizers" not in desk.namespace.read("Realm", "acme")["metadata"]
        assert RealmRegistry(desk.store).find_realm("acme") is None

    desk.go_on(100)
    assert desk.is_ready("Realm", "acme")


@pytest.mark.long
def test_spec_that_was_pruned_for_good_is_not_acted_on(ready: Desk) -> None:
    before = secret(ready, "acme-etl-credentials")
    with older_definition(ready.namespace, "realms", "principals"):
        ready.annotate("Realm", "acme", run_now="gc")  # the server stores what it has read, and the generation stays

    ready.go_on(1000, step=50)

    assert "principals" not in ready.namespace.read("Realm", "acme")["spec"]
    assert ready.reason("Realm", "acme") == ("False", "SchemaOlder")
    assert ready.reason("Realm", "acme", "Accepted") == ("False", "SchemaOlder")
    assert "apply" in ready.namespace.condition("Realm", "acme", "Ready")["message"].lower()
    assert is_enabled(ready, "etl")
    ready.apply(make_realm(principals=[{"name": "etl"}]))
    ready.go_on(3)
    assert ready.is_ready("Realm", "acme")
    assert secret(ready, "acme-etl-credentials") == before


@pytest.mark.long
def test_catalogs_stand_still_as_well(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk()
    role = {"name": "reader", "grants": [{"privileges": ["CATALOG_READ_PROPERTIES"]}]}
    desk.apply(make_realm(), make_catalog(roles=[role]))
    desk.go_on(10)
    assert desk.is_ready("Catalog", "sales")
    version = desk.namespace.read("Catalog", "sales")["metadata"]["resourceVersion"]

    with older_definition(desk.namespace, "catalogs", "roles", has_digest=False):
        desk.go_on(700, step=50)

        assert desk.namespace.read("Catalog", "sales")["metadata"]["resourceVersion"] == version
        with pytest.raises(SchemaOlderError, match=r"spec\.roles.*apply the CRDs"):
            ServedSchemas(desk.api, desk.clock).check("Catalog")


def test_digest_does_not_mind_defaults_nor_unknown_fields() -> None:
    told = spec_digest("Realm", {"realmId": "acme"})

    assert spec_digest("Realm", {"realmId": "acme", "state": "Active", "maintenance": {"suspend": False}}) == spec_digest(
        "Realm", {"realmId": "acme", "maintenance": {}}
    )
    assert spec_digest("Realm", {"realmId": "acme", "invented": 1}) == told
    assert spec_digest("Realm", {"realmId": "acme", "state": "Inactive"}) != told
    assert (
        told == "1-217e09b101938ff17948c56bb65cfd87"
    )  # every resource stands still after an upgrade that changes this and not its first part


def test_digest_of_another_calculation_is_not_compared() -> None:
    status = {"observedGeneration": 3, "specDigest": "0-old"}

    assert not has_shrunk("Realm", 3, {"realmId": "acme"}, status)
    assert not has_shrunk("Realm", 4, {"realmId": "acme"}, status | {"specDigest": "1-other"})
    assert has_shrunk("Realm", 3, {"realmId": "acme"}, status | {"specDigest": "1-other"})
