"""Other credentials for root: rotated, the former ones still hold; reset, they are refused at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import read_head
from headwater.errors import HeadwaterError, RefusedError, SwapConflictError
from headwater.realms import (
    Credentials,
    CredentialsHash,
    RealmRegistry,
    RealmState,
    bootstrap,
    find_root,
    hash_credentials,
    log_in,
    new_credentials,
    reset_principal,
    rotate_principal,
)
from headwater.store import Backend, ObjectId, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend
from newer_release import INVENTED, body_of, rewrite

MINUTE = 60


@pytest.fixture
def acme(realms: RealmRegistry, credentials_hash: CredentialsHash) -> RealmRegistry:
    """Realms with an ACTIVE `acme` whose root has the session's credentials."""
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)
    return realms


@pytest.fixture(scope="session")
def others() -> Credentials:
    return new_credentials()


@pytest.fixture(scope="session")
def others_hash(others: Credentials) -> CredentialsHash:
    return hash_credentials(others)


def logs_in(realms: RealmRegistry, credentials: Credentials) -> bool:
    try:
        return log_in(realms, "acme", credentials).name == "root"
    except RefusedError:
        return False


def clients(realms: RealmRegistry) -> list[str]:
    return [
        key.decode() for key, _ in read_head(realms.open_realm("acme"), "principals", fresh=True).index("by-client").range()
    ]


def fake(client_id: str) -> CredentialsHash:
    return CredentialsHash(client_id=client_id, salt=b"", digest=b"")


def test_credentials_new_and_former_log_in_after_a_rotation(
    acme: RealmRegistry, credentials: Credentials, others: Credentials, others_hash: CredentialsHash
) -> None:
    rotate_principal(acme, "acme", "root", others_hash)

    assert logs_in(acme, others)
    assert logs_in(acme, credentials)


def test_next_rotation_ends_the_credentials_before_the_former_ones(
    acme: RealmRegistry, credentials: Credentials, others: Credentials, others_hash: CredentialsHash
) -> None:
    rotate_principal(acme, "acme", "root", others_hash)
    rotate_principal(acme, "acme", "root", fake("third"))

    assert not logs_in(acme, credentials)
    assert logs_in(acme, others)
    assert sorted(clients(acme)) == sorted(["third", others.client_id])


def test_former_credentials_hold_for_their_overlap_and_not_longer(
    acme: RealmRegistry, credentials: Credentials, others_hash: CredentialsHash, clock: FakeClock
) -> None:
    rotate_principal(acme, "acme", "root", others_hash, overlap_seconds=10 * MINUTE)

    clock.advance(10 * MINUTE - 1)
    assert logs_in(acme, credentials)
    clock.advance(2)
    assert not logs_in(acme, credentials)


def test_reset_refuses_all_former_credentials_at_once(
    acme: RealmRegistry, credentials: Credentials, others: Credentials, others_hash: CredentialsHash
) -> None:
    rotate_principal(acme, "acme", "root", fake("second"))
    reset_principal(acme, "acme", "root", others_hash)

    assert clients(acme) == [others.client_id]
    assert logs_in(acme, others)
    assert not logs_in(acme, credentials)


def test_former_secret_does_not_log_in_as_the_new_client(
    acme: RealmRegistry, credentials: Credentials, others: Credentials, others_hash: CredentialsHash
) -> None:
    rotate_principal(acme, "acme", "root", others_hash)

    assert not logs_in(acme, Credentials(others.client_id, credentials.client_secret))
    assert not logs_in(acme, Credentials("nobody", credentials.client_secret))


def test_inactive_realm_lets_nobody_log_in(acme: RealmRegistry, credentials: Credentials) -> None:
    acme.move_realm(acme.read_realm("acme"), RealmState.INACTIVE)

    with pytest.raises(RefusedError, match="INACTIVE"):
        log_in(acme, "acme", credentials)


def test_renewal_of_what_another_has_renewed_is_beaten(acme: RealmRegistry, credentials: Credentials) -> None:
    rotate_principal(acme, "acme", "root", fake("second"), replaces=credentials.client_id)

    with pytest.raises(SwapConflictError, match="has the credentials of client second"):
        rotate_principal(acme, "acme", "root", fake("third"), replaces=credentials.client_id)


def test_root_stays_the_principal_that_its_grants_name(acme: RealmRegistry) -> None:
    before = find_root(acme, "acme")
    rotate_principal(acme, "acme", "root", fake("second"))

    assert find_root(acme, "acme").entity == before.entity


@pytest.mark.parametrize("before", [True, False], ids=["call lost", "answer lost"])
def test_rotation_interrupted_anywhere_ends_with_one_new_set(make_store: Callable[[Backend], Store], before: bool) -> None:
    for step in itertools.count(1):
        backend = FaultyBackend(MemoryBackend())
        with make_store(backend) as store:
            realms = RealmRegistry(store)
            realms.create_realm("acme")
            bootstrap(realms, "acme", fake("first"))
            calls_before = len(backend.calls)
            backend.fail(at=step, before=before)
            renew_until_done(realms)
            is_through = len(backend.calls) < calls_before + step
            backend.heal()

            assert sorted(clients(realms)) == ["first", "second"]
            if is_through:
                assert step > 3, "the fault did not travel through the whole rotation"
                return


def renew_until_done(realms: RealmRegistry) -> None:
    """Run again after each failure, as a person does; who finds it done stops."""
    for _ in range(3):
        try:
            root = find_root(realms, "acme")
            if root is not None and root.credentials.client_id == "first":
                rotate_principal(realms, "acme", "root", fake("second"), replaces="first")
            return
        except HeadwaterError:
            continue
    raise AssertionError("the rotation does not converge")


def test_fields_of_a_later_release_stay_with_their_hash(acme: RealmRegistry, others_hash: CredentialsHash) -> None:
    rows = acme.open_realm("acme")
    rewrite(rows, root_id(rows), lambda body: body["credentials"].update(INVENTED))
    rotate_principal(acme, "acme", "root", others_hash)
    body = body_of(rows, root_id(rows))

    assert [name for name in ("credentials", "former") if "invented" in body[name]] == ["former"]


def root_id(rows: RealmStore) -> ObjectId:
    at = read_head(rows, "principals", fresh=True)
    value = None if at is None else at.index("by-name").get(b"root")
    assert value is not None and value.object_id is not None
    return value.object_id
