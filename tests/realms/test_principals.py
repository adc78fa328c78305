"""Principals of a realm beside root: made once, listed, disabled at once, and never told apart by who asks in vain."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import (
    Credentials,
    CredentialsHash,
    RealmRegistry,
    bootstrap,
    create_principal,
    disable_principal,
    drop_principal,
    enable_principal,
    find_principal,
    hash_credentials,
    list_principals,
    log_in,
    new_credentials,
    read_principal,
    reset_principal,
    rotate_principal,
)
from headwater.realms import principals as principals_module

MINUTE = 60


@pytest.fixture
def acme(realms: RealmRegistry, credentials_hash: CredentialsHash) -> RealmRegistry:
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)
    return realms


def fake(client_id: str) -> CredentialsHash:
    return CredentialsHash(client_id=client_id, salt=b"", digest=b"")


def test_new_principal_is_found_and_listed(acme: RealmRegistry) -> None:
    made = create_principal(acme, "acme", "etl", fake("one"))

    assert find_principal(acme, "acme", "etl") == made
    assert [each.name for each in list_principals(acme, "acme")] == ["etl", "root"]
    assert find_principal(acme, "acme", "nobody") is None


def test_creation_that_is_repeated_makes_no_second_principal(acme: RealmRegistry) -> None:
    made = create_principal(acme, "acme", "etl", fake("one"))

    assert create_principal(acme, "acme", "etl", fake("one")) == made


def test_name_that_is_taken_is_refused(acme: RealmRegistry) -> None:
    create_principal(acme, "acme", "etl", fake("one"))

    with pytest.raises(RefusedError, match="has a principal 'etl' already"):
        create_principal(acme, "acme", "etl", fake("two"))
    with pytest.raises(RefusedError, match="has a principal 'root' already"):
        create_principal(acme, "acme", "root", fake("two"))


@pytest.mark.parametrize("name", ["", "-etl", "a b", "a/b", "a\0b", "a:b", "ä", "x" * 129, "../root", "etl\n"])
def test_name_that_would_be_misread_is_refused(acme: RealmRegistry, name: str) -> None:
    with pytest.raises(RefusedError, match="is no name for a principal"):
        create_principal(acme, "acme", name, fake("one"))


def test_client_id_of_another_principal_is_refused(acme: RealmRegistry) -> None:
    create_principal(acme, "acme", "etl", fake("one"))
    create_principal(acme, "acme", "bi", fake("two"))

    with pytest.raises(RefusedError, match="client one is another principal's"):
        create_principal(acme, "acme", "third", fake("one"))
    with pytest.raises(RefusedError, match="client one is another principal's"):
        rotate_principal(acme, "acme", "bi", fake("one"))
    assert [each.credentials.client_id for each in list_principals(acme, "acme")][:2] == ["two", "one"]


def test_principal_that_is_not_there_has_no_credentials_to_change(acme: RealmRegistry) -> None:
    changes: list[Callable[[], object]] = [
        lambda: rotate_principal(acme, "acme", "etl", fake("one")),
        lambda: reset_principal(acme, "acme", "etl", fake("one")),
        lambda: disable_principal(acme, "acme", "etl"),
        lambda: enable_principal(acme, "acme", "etl"),
        lambda: drop_principal(acme, "acme", "etl"),
        lambda: read_principal(acme, "acme", "etl"),
    ]
    for change in changes:
        with pytest.raises(NotFoundError, match="realm 'acme' has no principal 'etl'"):
            change()


def test_disabled_principal_cannot_log_in_until_it_is_enabled(
    acme: RealmRegistry, credentials: Credentials, clock: FakeClock
) -> None:
    first = disable_principal(acme, "acme", "root")
    clock.advance(MINUTE)

    assert disable_principal(acme, "acme", "root") == first, "it is disabled since the first time"
    with pytest.raises(RefusedError):
        log_in(acme, "acme", credentials)

    enable_principal(acme, "acme", "root")
    assert log_in(acme, "acme", credentials).name == "root"


def test_dropped_principal_opens_nothing_and_frees_its_name(acme: RealmRegistry) -> None:
    made = new_credentials()
    former = create_principal(acme, "acme", "etl", hash_credentials(made))
    rotate_principal(acme, "acme", "etl", fake("two"))
    drop_principal(acme, "acme", "etl")

    assert find_principal(acme, "acme", "etl") is None
    with pytest.raises(RefusedError, match="unknown, disabled"):
        log_in(acme, "acme", made)
    again = create_principal(acme, "acme", "etl", fake("two"))
    assert again.entity != former.entity, "what the former one was granted is not the new one's"
    assert [each.name for each in list_principals(acme, "acme")] == ["etl", "root"]


def test_root_cannot_be_dropped(acme: RealmRegistry, credentials: Credentials) -> None:
    with pytest.raises(RefusedError, match="root of realm 'acme' stays"):
        drop_principal(acme, "acme", "root")
    assert log_in(acme, "acme", credentials).name == "root"


def test_refusals_do_not_tell_why(
    acme: RealmRegistry,
    clock: FakeClock,
    credentials: Credentials,
    credentials_hash: CredentialsHash,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An unknown client, a wrong secret, a disabled principal and credentials that are over: the same words, after the same work."""
    worked: list[tuple[int, int, int]] = []
    verify = principals_module.verify_secret

    def watched(stored: CredentialsHash, given: Credentials) -> bool:
        worked.append((stored.cost, stored.block, stored.parallel))
        return verify(stored, given)

    monkeypatch.setattr(principals_module, "verify_secret", watched)

    def refusal(given: Credentials) -> str:
        with pytest.raises(RefusedError) as refused:
            log_in(acme, "acme", given)
        return str(refused.value).replace(given.client_id, "CLIENT")

    told = {refusal(Credentials("0123456789abcdef", "guess")), refusal(Credentials(credentials.client_id, "guess"))}
    disable_principal(acme, "acme", "root")
    told.add(refusal(credentials))
    enable_principal(acme, "acme", "root")
    rotate_principal(acme, "acme", "root", fake("next"), overlap_seconds=0)
    clock.advance(1)
    told.add(refusal(credentials))

    assert len(told) == 1
    assert worked == [(credentials_hash.cost, credentials_hash.block, credentials_hash.parallel)] * 4


def test_generation_is_honored_as_long_as_its_credentials(acme: RealmRegistry, clock: FakeClock) -> None:
    def honored() -> list[int]:
        held = find_principal(acme, "acme", "etl")
        assert held is not None
        return [generation for generation in range(-1, 6) if held.honors(generation, now=clock.now())]

    create_principal(acme, "acme", "etl", fake("one"))
    assert honored() == [0]
    rotate_principal(acme, "acme", "etl", fake("two"), overlap_seconds=10 * MINUTE)
    assert honored() == [0, 1]
    clock.advance(11 * MINUTE)
    assert honored() == [1]
    rotate_principal(acme, "acme", "etl", fake("three"))
    assert honored() == [1, 2]
    reset_principal(acme, "acme", "etl", fake("four"))
    assert honored() == [3]
    disable_principal(acme, "acme", "etl")
    assert honored() == []


def test_credentials_know_their_generation(acme: RealmRegistry) -> None:
    create_principal(acme, "acme", "etl", fake("one"))
    held = rotate_principal(acme, "acme", "etl", fake("two"))

    assert [held.generation_of(client) for client in ("one", "two")] == [0, 1]
