"""Who may take a realm over: its own namespace, whom it was released to, and anybody once nobody has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater import Store
from headwater.errors import NotFoundError
from headwater.realms import RealmRegistry
from headwater.reconcile import (
    FileCredentials,
    ManagerIdentity,
    RealmManifest,
    ReconcileOutcome,
    reconcile_realm,
    release_realm,
)
from headwater.reconcile.manifests import ADOPT, DELETE, RELEASE_TO, ManifestMetadata, RealmSpec
from headwater.store import RealmId

Apply = Callable[..., ReconcileOutcome]
ADOPTING = {ADOPT: "acme"}


@pytest.fixture
def apply_from(store: Store, sink: FileCredentials) -> Apply:
    """Reconcile a Realm of the id acme, in a namespace, under a name."""

    def run(
        namespace: str, annotations: dict[str, str] | None = None, *, name: str = "acme", uid: str = "1", is_named: bool = True
    ) -> ReconcileOutcome:
        metadata = ManifestMetadata(name=name, namespace=namespace, annotations=annotations or {})
        manifest = RealmManifest(metadata=metadata, spec=RealmSpec(realm_id=RealmId("acme")))
        manager = ManagerIdentity(cluster="here", uid=uid, is_cluster_named=is_named)
        return reconcile_realm(store, manifest, credentials=sink, manager=manager)

    return run


def owner(store: Store) -> str:
    manager = RealmRegistry(store).read_realm("acme").manager
    return f"{manager.namespace}/{manager.name}" if manager else "nobody"


def test_namespace_does_not_get_anothers_realm_by_wishing(store: Store, apply_from: Apply) -> None:
    apply_from("ours")
    outcome = apply_from("theirs", ADOPTING)

    assert [one.reason for one in outcome.refused] == ["ManagedByAnother"]
    assert "annotate the Realm there headwater.dev/release-to: theirs/acme" in outcome.refused[0].message
    assert owner(store) == "ours/acme"


def test_realm_goes_to_whom_its_resource_releases_it(store: Store, apply_from: Apply) -> None:
    apply_from("ours", {RELEASE_TO: "theirs/acme"})
    apply_from("theirs", ADOPTING)

    assert owner(store) == "theirs/acme"


def test_agreement_is_for_one_resource_and_once(store: Store, apply_from: Apply) -> None:
    apply_from("ours", {RELEASE_TO: "theirs/acme"})
    strangers = apply_from("strangers", ADOPTING)
    apply_from("theirs", ADOPTING)
    again = apply_from("ours", ADOPTING)

    assert strangers.refused
    assert again.refused
    assert owner(store) == "theirs/acme"


def test_agreement_can_be_taken_back(store: Store, apply_from: Apply) -> None:
    apply_from("ours", {RELEASE_TO: "theirs/acme"})
    apply_from("ours")

    assert apply_from("theirs", ADOPTING).refused
    assert owner(store) == "ours/acme"


@pytest.mark.parametrize("other", [{"uid": "2"}, {"name": "acme-2"}])
def test_wish_is_enough_within_a_namespace(store: Store, apply_from: Apply, other: dict[str, str]) -> None:
    apply_from("ours")
    outcome = apply_from("ours", ADOPTING, **other)

    assert not outcome.refused
    assert "RealmAdopted" in [step.reason for step in outcome.steps]


def test_realm_that_was_left_to_nobody_stays_with_its_namespace(store: Store, apply_from: Apply) -> None:
    apply_from("ours")
    apply_from("ours", {DELETE: "true"})

    assert owner(store) == "nobody"
    assert apply_from("theirs", ADOPTING).refused
    assert not apply_from("ours", ADOPTING, uid="2").refused


def uid(store: Store) -> str:
    manager = RealmRegistry(store).read_realm("acme").manager
    return manager.uid if manager else ""


def test_named_cluster_that_was_restored_takes_its_realm_back(store: Store, apply_from: Apply) -> None:
    apply_from("ours")

    assert not apply_from("ours", uid="2").refused
    assert uid(store) == "2"


def test_cluster_without_a_name_leaves_a_live_realm_alone(store: Store, apply_from: Apply) -> None:
    apply_from("ours", is_named=False)

    [refusal] = apply_from("ours", uid="2", is_named=False).refused

    assert (refusal.reason, uid(store)) == ("ManagedByAnother", "1")
    assert (
        "give this one a name of its own: `cluster` in the values of the chart, or HEADWATER_OPERATOR_CLUSTER"
        in refusal.message
    )
    assert "annotate headwater.dev/adopt: acme to take it over" in refusal.message


def test_nameless_cluster_takes_a_live_realm_when_asked(store: Store, apply_from: Apply) -> None:
    apply_from("ours", is_named=False)
    apply_from("ours", ADOPTING, uid="2", is_named=False)

    assert uid(store) == "2"
    assert apply_from("ours", is_named=False).refused


def test_cluster_without_a_name_takes_back_what_was_let_go(store: Store, apply_from: Apply) -> None:
    apply_from("ours", is_named=False)
    apply_from("ours", {DELETE: "true"}, is_named=False)

    assert not apply_from("ours", uid="2", is_named=False).refused
    assert uid(store) == "2"


def test_somebody_with_the_store_may_release_a_realm_to_anybody(store: Store, apply_from: Apply) -> None:
    apply_from("ours")
    release_realm(store, "acme")

    assert owner(store) == "nobody"
    assert not apply_from("theirs", ADOPTING).refused


def test_realm_that_is_not_there_cannot_be_released(store: Store) -> None:
    with pytest.raises(NotFoundError):
        release_realm(store, "acme")
