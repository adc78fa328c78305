"""Root credentials in a Secret: written once, rotated once for each token, never shown, never another's."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cut_connections import FAULTS, FaultyConnection, HttpFault

from headwater.errors import CorruptionError, HeadwaterError, RefusedError, SwapConflictError
from headwater.realms import Credentials
from headwater.store import RealmId
from headwater_operator.kube import KubeApi, kubeconfig_connection
from headwater_operator.resource.credentials_secret import SecretCredentials
from kubetest import Namespace

ACME, OTHER = RealmId("acme"), RealmId("other")
FIRST, SECOND = Credentials("id-1", "swordfish-1"), Credentials("id-2", "swordfish-2")
NAME = "acme-root-credentials"


@pytest.fixture
def http(namespace: Namespace) -> FaultyConnection:
    return FaultyConnection(kubeconfig_connection(str(namespace.cluster.kubeconfig)))


@pytest.fixture
def sink(namespace: Namespace, http: FaultyConnection) -> SecretCredentials:
    return SecretCredentials(KubeApi(http), namespace.name, "acme")  # type: ignore[arg-type]  # it does what a connection does


def confirm() -> None:
    """It is still the one that is to be removed."""


def data(namespace: Namespace) -> dict[str, str]:
    found = namespace.read("Secret", NAME)["data"]
    return {name: base64.b64decode(value).decode() for name, value in found.items()}


def make_secret(namespace: Namespace, *, ours: bool = True, realm_id: str = "acme", **texts: str) -> None:
    metadata: dict[str, Any] = {"name": NAME, "annotations": {"headwater.dev/realm-id": realm_id}}
    if ours:
        metadata["labels"] = {"app.kubernetes.io/managed-by": "headwater-operator"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}
    namespace.cluster.api.create_resource(namespace.path("Secret"), body)


def test_secret_is_kept_with_all_that_tells_whose_it_is(namespace: Namespace, sink: SecretCredentials) -> None:
    assert sink.write_credentials(ACME, FIRST) == FIRST

    assert data(namespace) == {
        "realm": "acme",
        "clientId": "id-1",
        "clientSecret": "swordfish-1",
        "credential": "acme.id-1:swordfish-1",
    }
    secret = namespace.read("Secret", NAME)
    assert secret["type"] == "Opaque"
    assert secret["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "headwater-operator", "headwater.dev/realm": "acme"}
    assert secret["metadata"]["annotations"] == {"headwater.dev/realm-id": "acme"}
    assert "ownerReferences" not in secret["metadata"]


def test_secret_that_was_written_first_stays(namespace: Namespace, sink: SecretCredentials) -> None:
    sink.write_credentials(ACME, FIRST)

    assert sink.write_credentials(ACME, SECOND) == FIRST
    assert data(namespace)["clientId"] == "id-1"


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("at", [1, 2])
def test_write_that_was_broken_off_is_taken_up(
    namespace: Namespace, sink: SecretCredentials, http: FaultyConnection, fault: HttpFault, at: int
) -> None:
    sink.write_credentials(ACME, FIRST)
    http.fail(fault, at=at)
    try:
        kept = sink.write_credentials(ACME, SECOND)
    except HeadwaterError:
        kept = sink.write_credentials(ACME, SECOND)

    assert kept == FIRST


@pytest.mark.parametrize(("ours", "realm_id"), [(False, "acme"), (True, "other")])
def test_secret_of_something_else_is_refused_and_left_alone(
    namespace: Namespace, sink: SecretCredentials, ours: bool, realm_id: str
) -> None:
    make_secret(namespace, ours=ours, realm_id=realm_id, clientId="theirs", clientSecret="theirs")

    with pytest.raises(RefusedError, match=f"Secret {namespace.name}/{NAME}"):
        sink.write_credentials(ACME, FIRST)
    with pytest.raises(RefusedError, match=f"Secret {namespace.name}/{NAME}"):
        sink.rotate_credentials(ACME, FIRST, "t1")
    sink.remove_credentials(ACME, confirm)
    assert not sink.exists(ACME)
    assert data(namespace) == {"clientId": "theirs", "clientSecret": "theirs"}


@pytest.mark.parametrize("texts", [{}, {"clientId": "x"}, {"clientId": "x", "clientSecret": ""}])
def test_secret_without_credentials_is_not_guessed_at(
    namespace: Namespace, sink: SecretCredentials, texts: dict[str, str]
) -> None:
    make_secret(namespace, **texts)

    assert not sink.exists(ACME)
    with pytest.raises(CorruptionError, match=NAME):
        sink.write_credentials(ACME, FIRST)


def test_rotation_replaces_them_once_for_each_token(namespace: Namespace, sink: SecretCredentials) -> None:
    sink.write_credentials(ACME, FIRST)

    assert sink.rotate_credentials(ACME, SECOND, "t1") == SECOND
    assert sink.rotate_credentials(ACME, FIRST, "t1") == SECOND
    assert namespace.read("Secret", NAME)["metadata"]["annotations"]["headwater.dev/rotation"] == "t1"
    assert sink.rotate_credentials(ACME, FIRST, "t2") == FIRST


def test_rotation_makes_a_secret_that_was_lost(namespace: Namespace, sink: SecretCredentials) -> None:
    assert sink.rotate_credentials(ACME, SECOND, "t1") == SECOND
    assert sink.rotate_credentials(ACME, FIRST, "t1") == SECOND
    assert sink.exists(ACME)


def test_rotation_fills_a_secret_of_ours_that_holds_none(namespace: Namespace, sink: SecretCredentials) -> None:
    make_secret(namespace, clientId="half")

    assert sink.rotate_credentials(ACME, SECOND, "t1") == SECOND
    assert data(namespace)["clientSecret"] == "swordfish-2"


def test_rotation_leaves_what_others_added_to_the_secret(namespace: Namespace, sink: SecretCredentials) -> None:
    sink.write_credentials(ACME, FIRST)
    more = {"metadata": {"labels": {"theirs": "yes"}}, "stringData": {"theirs": "too"}}
    namespace.cluster.api.patch_resource(namespace.path("Secret", NAME), more, kind="merge", manager="else")

    sink.rotate_credentials(ACME, SECOND, "t1")

    assert namespace.read("Secret", NAME)["metadata"]["labels"]["theirs"] == "yes"
    assert data(namespace) == {
        "realm": "acme",
        "clientId": "id-2",
        "clientSecret": "swordfish-2",
        "credential": "acme.id-2:swordfish-2",
        "theirs": "too",
    }


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_rotation_that_was_broken_off_is_taken_up(
    namespace: Namespace, sink: SecretCredentials, http: FaultyConnection, fault: HttpFault, at: int
) -> None:
    sink.write_credentials(ACME, FIRST)
    http.fail(fault, at=at)
    try:
        kept = sink.rotate_credentials(ACME, SECOND, "t1")
    except HeadwaterError:
        kept = sink.rotate_credentials(ACME, Credentials("id-3", "swordfish-3"), "t1")

    assert data(namespace)["clientId"] == kept.client_id != "id-1"


def test_removing_takes_the_secret_and_none_is_fine(namespace: Namespace, sink: SecretCredentials) -> None:
    sink.write_credentials(ACME, FIRST)

    sink.remove_credentials(ACME, confirm)
    sink.remove_credentials(ACME, confirm)

    assert namespace.find("Secret", NAME) is None
    assert not sink.exists(ACME)


def test_secret_that_was_made_again_since_stays(namespace: Namespace, sink: SecretCredentials) -> None:
    sink.write_credentials(ACME, FIRST)
    asked = 0

    def replace_once() -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise SwapConflictError("it was made again")
        sink.remove_credentials(ACME, confirm)
        sink.write_credentials(ACME, SECOND)

    with pytest.raises(SwapConflictError):
        sink.remove_credentials(ACME, replace_once)
    assert data(namespace)["clientId"] == "id-2"


def test_secret_is_told_as_kubectl_names_it(namespace: Namespace, sink: SecretCredentials) -> None:
    assert sink.place(ACME) == f"Secret {namespace.name}/{NAME}"


def test_no_error_shows_a_value(namespace: Namespace, sink: SecretCredentials, http: FaultyConnection) -> None:
    told = []
    for fault in FAULTS:
        http.fail(fault, at=2)
        try:
            sink.rotate_credentials(ACME, SECOND, str(fault).replace(" ", "-"))
        except HeadwaterError as error:
            told.append(f"{error!r} {error.__cause__!r}")

    assert told
    assert not any("swordfish" in line or base64.b64encode(b"swordfish-2").decode() in line for line in told)
