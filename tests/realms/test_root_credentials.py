"""Credentials: random, verifiable, and never stored in the clear."""

from __future__ import annotations

import pytest

from headwater.realms import (
    Credentials,
    CredentialsHash,
    hash_credentials,
    new_credentials,
    parse_client_id,
    told_client_id,
    told_credential,
    verify_secret,
)


def test_new_credentials_are_never_the_same() -> None:
    assert new_credentials() != new_credentials()


def test_text_form_hides_the_secret(credentials: Credentials) -> None:
    assert credentials.client_secret not in repr(credentials)


def test_hash_verifies_the_credentials_that_it_was_made_from(
    credentials: Credentials, credentials_hash: CredentialsHash
) -> None:
    assert verify_secret(credentials_hash, credentials)


def test_hash_refuses_another_secret(credentials: Credentials, credentials_hash: CredentialsHash) -> None:
    assert not verify_secret(credentials_hash, Credentials(credentials.client_id, "guess"))


def test_hash_refuses_another_client(credentials: Credentials, credentials_hash: CredentialsHash) -> None:
    assert not verify_secret(credentials_hash, Credentials("somebody", credentials.client_secret))


def test_two_hashes_of_the_same_credentials_differ(credentials: Credentials, credentials_hash: CredentialsHash) -> None:
    assert hash_credentials(credentials).digest != credentials_hash.digest


@pytest.mark.parametrize(("realm", "client"), [("acme", "0123456789abcdef"), ("a_B-9", "client.with.dots"), ("x" * 128, "c")])
def test_told_client_id_names_realm_and_client(realm: str, client: str) -> None:
    assert parse_client_id(told_client_id(realm, client)) == (realm, client)


def test_told_credential_splits_at_its_first_colon(credentials: Credentials) -> None:
    client, _, secret = told_credential("acme", credentials).partition(":")

    assert (parse_client_id(client), secret) == (("acme", credentials.client_id), credentials.client_secret)


@pytest.mark.parametrize(
    "text", ["", "0123456789abcdef", ".client", "acme.", "::system::.client", "a/b.client", "x" * 129 + ".c", "acme\n.c"]
)
def test_text_without_realm_or_client_is_no_client_id(text: str) -> None:
    assert parse_client_id(text) is None
