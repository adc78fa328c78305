"""What is taken out of a bundle, and what stays readable."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_operator.plugin.bundle_redaction import COMMON_WORDS, REDACTED, Redactor, sounds_secret


def cleaned(value: Any) -> Any:
    redactor = Redactor()
    redactor.learn(value)
    return redactor.clean(value)


@pytest.mark.parametrize(
    "name",
    [
        *("password", "s3.secret-access-key", "s3.session-token", "apiKey", "api_key", "adls.sas-token", "client.credential"),
        *(
            "gcs.oauth2.token",
            "connection-string",
            "AUTHORIZATION",
            "aws_access_key_id",
            "encryption.key",
            "private-key",
            "clientSecret",
        ),
    ],
)
def test_name_that_sounds_secret_is_known(name: str) -> None:
    assert sounds_secret(name)


@pytest.mark.parametrize(
    "name",
    ["owner", "realmKey", "realmId", "credentialsSecret", "topologyKey", "baseLocation", "schedule", "name", "key", "message"],
)
def test_harmless_name_is_left(name: str) -> None:
    assert not sounds_secret(name)


def test_properties_with_secret_names_lose_their_values() -> None:
    spec = {"properties": {"s3.secret-access-key": "hunter2", "owner": "team-a"}}

    assert cleaned(spec) == {"properties": {"s3.secret-access-key": REDACTED, "owner": "team-a"}}


def test_values_of_environment_variables_go_and_their_names_stay() -> None:
    env = [
        {"name": "HEADWATER_STORE", "value": "anything"},
        {"name": "URL", "valueFrom": {"secretKeyRef": {"name": "store", "key": "url"}}},
    ]

    assert cleaned({"env": env}) == {"env": [{"name": "HEADWATER_STORE", "value": REDACTED}, env[1]]}


def test_annotations_of_strangers_lose_their_values() -> None:
    annotations = {"headwater.dev/adopt": "acme", "example.com/note": "swordfish"}

    assert cleaned({"annotations": annotations}) == {"annotations": {**annotations, "example.com/note": REDACTED}}


def test_kubectls_copy_of_a_manifest_is_left_out() -> None:
    assert cleaned({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}) == {"annotations": {}}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("cannot open postgresql://headwater:pa@ss/w0rd@db:5432/lake", "pa@ss/w0rd"),
        ("redis://:swordfish@redis:6379/0", "swordfish"),
        ("login as headwater:swordfish@db failed", "swordfish"),
        ("https://bucket.example/x?sig=swordfish&sv=2", "swordfish"),
        ("connect host=db password=swordfish dbname=lake", "swordfish"),
        ("connect host=db password='sword fish' dbname=lake", "sword fish"),
        ('{"a": 1, "clientSecret": "swordfish"} was sent', "swordfish"),
        ('body: "{\\"clientSecret\\": \\"swordfish\\"}"', "swordfish"),
        ("Authorization: Bearer c3dvcmRmaXNo", "c3dvcmRmaXNo"),
        ("run with --db-password swordfish --verbose", "swordfish"),
        ("the password is 'swordfish'", "swordfish"),
        ("seen AKIAIOSFODNN7EXAMPLE there", "AKIAIOSFODNN7EXAMPLE"),
        ("used wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "bPxRfiCYEXAMPLEKEY"),
        ("got q6Rk1zW0yVb3nXc8TgLs5MdFhJp2aEuO", "q6Rk1zW0yVb3nXc8TgLs5MdFhJp2aEuO"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "eyJzdWIiOiJ4In0"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB\n-----END RSA PRIVATE KEY-----", "MIIEpAIB"),
    ],
)
def test_secret_in_a_text_goes(text: str, secret: str) -> None:
    assert secret not in Redactor().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "realm acme is INACTIVE and held before its purge; set deletionPolicy: Retain to keep it after all",
        "realm acme is managed by kubernetes/lakes/acme/2b0b7a4e-1c9d-4b1f-9a35-0a6a5d1d2f11",
        "GET /apis/headwater.dev/v1alpha1/namespaces/lakes/realms: no answer (ReadTimeoutError)",
        "task 033f1a6b2c400777 failed after 5 attempts: table sales.orders, 00003-c0d97c83-b585-4a9e-8682-da68b2ab3aa0.metadata.json",
        "registry.example.com:5000/data/headwater-operator:0.1.0@sha256:0a6a5d1d2f11",
        "s3://lake/sales/orders is imported, at 2026-11-22T12:00:00Z",
        "the Secret acme-root-credentials is not there",
    ],
)
def test_facts_that_a_helper_needs_stay(text: str) -> None:
    assert Redactor().text(text) == text


def test_secret_known_from_one_place_is_taken_out_of_all() -> None:
    bundle = {"spec": {"properties": {"password": "swordfish"}}, "events": ["refused swordfish"], "names": {"swordfish": 1}}

    assert "swordfish" not in str(cleaned(bundle))


@pytest.mark.parametrize("spelling", [lambda s: base64.b64encode(s.encode()).decode(), lambda s: quote(s, safe="")])
def test_known_secret_is_found_in_other_spellings(spelling: Any) -> None:
    secret = "sword/fish & chips"

    assert spelling(secret) not in str(cleaned({"password": secret, "message": f"sent {spelling(secret)}"}))


def test_short_or_common_word_is_not_hunted_everywhere() -> None:
    assert cleaned({"token": "default", "namespace": "default"}) == {"token": REDACTED, "namespace": "default"}


@given(st.text(min_size=8, alphabet=st.characters(min_codepoint=33, max_codepoint=126)))
def test_secrets_stand_nowhere_else(secret: str) -> None:
    bundle = {"properties": {"password": secret}, "message": f"it was {secret} all along"}
    plain = secret.strip("\\\"'")

    assert len(plain) < 6 or plain.lower() in COMMON_WORDS or plain in REDACTED or plain not in str(cleaned(bundle)["message"])
