"""New credentials for a realm's root, asked for by an annotation: once for each token, and interrupted anywhere they end as one set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater import Store
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import (
    Credentials,
    RealmRegistry,
    find_root,
    hash_credentials,
    new_credentials,
    rotate_principal,
    verify_secret,
)
from headwater.reconcile import FileCredentials, RealmManifest, ReconcileOutcome
from headwater.reconcile.manifests import ROTATE_CREDENTIALS
from headwater.store import RealmId

MakeRealm = Callable[..., RealmManifest]
Apply = Callable[..., list[ReconcileOutcome]]
ACME = RealmId("acme")


@pytest.fixture
def kept(sink: FileCredentials) -> Callable[[], Credentials]:
    """The credentials that are in the file now."""

    def read() -> Credentials:
        content = json.loads(Path(sink.place(ACME)).read_text())
        return Credentials(content["clientId"], content["clientSecret"])

    return read


def logs_in(store: Store, credentials: Credentials) -> bool:
    root = find_root(RealmRegistry(store), "acme")
    assert root is not None
    return verify_secret(root.credentials, credentials)


def test_rotation_replaces_the_credentials_everywhere(
    store: Store, apply: Apply, make_realm: MakeRealm, kept: Callable[[], Credentials]
) -> None:
    apply(make_realm())
    before = kept()
    [outcome] = apply(make_realm({ROTATE_CREDENTIALS: "one"}))

    assert "CredentialsRotated" in [step.reason for step in outcome.steps]
    assert logs_in(store, kept())
    assert not logs_in(store, before)


def test_one_token_rotates_once_and_another_one_again(
    apply: Apply, make_realm: MakeRealm, kept: Callable[[], Credentials]
) -> None:
    seen = []
    for token in ("one", "one", "two"):
        apply(make_realm({ROTATE_CREDENTIALS: token}))
        seen.append(kept())

    assert seen[0] == seen[1] != seen[2]


def test_no_secret_is_told(apply: Apply, make_realm: MakeRealm, kept: Callable[[], Credentials]) -> None:
    apply(make_realm())
    [outcome] = apply(make_realm({ROTATE_CREDENTIALS: "one"}))

    assert kept().client_secret not in str(outcome)


def test_rotation_broken_off_after_the_file_ends_with_it(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials, kept: Callable[[], Credentials]
) -> None:
    apply(make_realm())
    begun = sink.rotate_credentials(ACME, new_credentials(), "one")
    apply(make_realm({ROTATE_CREDENTIALS: "one"}))

    assert kept() == begun
    assert logs_in(store, begun)


def test_lost_file_is_replaced_by_a_rotation(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials, kept: Callable[[], Credentials]
) -> None:
    apply(make_realm())
    sink.remove_credentials(ACME, lambda: None)
    apply(make_realm({ROTATE_CREDENTIALS: "one"}))

    assert logs_in(store, kept())


def test_realm_that_is_not_active_says_that_its_rotation_waits(apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm(state="Inactive"))
    [outcome] = apply(make_realm({ROTATE_CREDENTIALS: "one"}, state="Inactive"))

    assert [report.reason for report in outcome.reports] == ["RotationWaits"]


def test_active_realm_alone_takes_other_credentials(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm(state="Inactive"))

    with pytest.raises(RefusedError, match="INACTIVE"):
        rotate_principal(RealmRegistry(store), "acme", "root", hash_credentials(new_credentials()))
    with pytest.raises(NotFoundError):
        rotate_principal(RealmRegistry(store), "nobody", "root", hash_credentials(new_credentials()))
