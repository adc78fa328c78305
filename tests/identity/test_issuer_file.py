"""The file of issuers: what it may say, and what happens when it changes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from headwater.errors import RefusedError
from headwater_server.caller import NotProvenError
from headwater_server.identity.issuer_file import IssuerFile, is_safe_url
from loopback_issuer import LoopbackIssuer, MakeToken, MakeTokens

GOOD = {"issuer": "https://login.example.org/realms/acme", "realms": ["acme"], "audiences": ["lake"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "issuers.json"


def write(file: Path, *entries: dict[str, Any]) -> None:
    file.write_text(json.dumps({"issuers": entries}))


def faults(file: Path, *entries: dict[str, Any]) -> str:
    write(file, *entries)
    with pytest.raises(RefusedError) as refused:
        IssuerFile(str(file))
    return str(refused.value)


def names(issuers: IssuerFile) -> list[str]:
    return [issuer.issuer for issuer in issuers.current_issuers()]


def test_issuer_has_defaults(file: Path) -> None:
    write(file, GOOD)

    (issuer,) = IssuerFile(str(file)).current_issuers()

    assert (issuer.algorithms, issuer.principal_claim, issuer.leeway_seconds) == (("RS256", "ES256"), "sub", 30)
    assert (issuer.jwks_uri, issuer.roles, issuer.uses_stored_principals, issuer.max_age_seconds) == ("", None, False, None)


def test_every_fault_is_told_at_once(file: Path) -> None:
    told = faults(
        file,
        {**GOOD, "realms": [], "audiences": [], "algorithms": ["HS256", "none"], "leeway-seconds": 121},
        {**GOOD, "issuer": "http://login.example.org", "jwks-uri": "http://login.example.org/keys", "max-age-seconds": 0},
    )

    assert str(file) in told
    for word in ("realms is empty", "audiences is empty", "'HS256' is none", "'none' is none", "leeway-seconds 121"):
        assert word in told
    for word in ("'http://login.example.org': issuer is no URL", "jwks-uri is no URL", "max-age-seconds 0"):
        assert word in told


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"realms": ["a.b"]}, "'a.b' is not a realm id"),
        ({"realms": ["*"]}, "is not a realm id"),
        ({"audiences": [""]}, "audiences has an empty name"),
        ({"algorithms": []}, "algorithms is empty"),
        ({"algorithms": ["ES256K"]}, "is none of RS256"),
        ({"algorithms": ["rs256"]}, "is none of RS256"),
        ({"issuer": "https://login.example.org/?a=b"}, "issuer is no URL"),
        ({"ca-file": "/no/such/file.pem"}, "ca-file '/no/such/file.pem' cannot be used"),
        ({"principal-claim": ""}, "principal-claim '' is no path"),
        ({"principal-claim": "a..b"}, "is no path"),
        ({"roles-claim": ".roles"}, "roles-claim '.roles' is no path"),
        ({"roles": {"staff": "reader"}}, "roles needs roles-claim"),
        ({"roles-claim": "groups", "roles": {"staff": []}}, "'staff' has an empty name, or none"),
        ({"roles-claim": "groups", "roles": {"staff": ""}}, "'staff' has an empty name, or none"),
        ({"default-roles": [""]}, "default-roles has an empty name"),
        ({"leeway-seconds": -1}, "leeway-seconds -1"),
        ({"audience": ["lake"]}, "unknown field `audience`"),
        ({"principal_claim": "sub"}, "unknown field `principal_claim`"),
        ({"realms": "acme"}, "Expected `array`"),
        ({"uses-stored-principals": 1}, "Expected `bool`"),
    ],
)
def test_fault_of_an_issuer_is_told(file: Path, fields: dict[str, Any], word: str) -> None:
    assert word in faults(file, {**GOOD, **fields})


@pytest.mark.parametrize("field", ["issuer", "realms", "audiences"])
def test_field_that_is_needed_is_asked_for(file: Path, field: str) -> None:
    assert f"missing required field `{field}`" in faults(file, {name: GOOD[name] for name in GOOD if name != field})


def test_issuer_stands_once_for_a_realm(file: Path) -> None:
    assert "stands there twice for realm 'acme'" in faults(file, GOOD, {**GOOD, "realms": ["globex", "acme"]})
    write(file, GOOD, {**GOOD, "realms": ["globex"]})

    assert len(IssuerFile(str(file)).current_issuers()) == 2


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"issuers": {}}', b"{", b"\xff", b'{"issuers": [], "x": 1}', b"[" * 9000]
)
def test_file_that_is_broken_is_refused_at_the_start(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    with pytest.raises(RefusedError, match="as the docs have it"):
        IssuerFile(str(file))


def test_file_that_is_no_file_is_refused_at_the_start(file: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="No such file"):
        IssuerFile(str(file))
    with pytest.raises(RefusedError, match="no regular file"):
        IssuerFile(str(tmp_path))
    os.mkfifo(file)
    with pytest.raises(RefusedError, match="no regular file"):
        IssuerFile(str(file))


def test_file_that_is_too_large_is_refused(file: Path) -> None:
    file.write_bytes(b" " * (1 << 20) + b'{"issuers": []}')

    with pytest.raises(RefusedError, match="too large"):
        IssuerFile(str(file))


def test_change_of_the_file_holds_at_once(
    make_tokens: MakeTokens, make_token: MakeToken, issuer: LoopbackIssuer, file: Path
) -> None:
    tokens = make_tokens()
    tokens.verify(make_token(), "acme")

    write(file, {**GOOD, "issuer": issuer.url, "audiences": ["a longer name"]})
    with pytest.raises(NotProvenError, match="another audience"):
        tokens.verify(make_token(), "acme")
    assert issuer.fetches == 1  # who is trusted for what has changed, and not its keys
    write(file)
    with pytest.raises(NotProvenError, match="not of an issuer"):
        tokens.verify(make_token(), "acme")


def test_broken_change_leaves_the_former_in_force(file: Path) -> None:
    write(file, GOOD)
    issuers = IssuerFile(str(file))

    with capture_logs() as logs:
        for content in ("{", json.dumps({"issuers": [{**GOOD, "realms": []}]})):
            file.write_text(content)
            assert [names(issuers) for _ in range(3)] == [[GOOD["issuer"]]] * 3
        file.unlink()
        assert names(issuers) == [GOOD["issuer"]]

    assert [(line["log_level"], "stay in force" in line["event"]) for line in logs] == [("error", True)] * 3
    write(file)
    assert names(issuers) == []


def test_file_of_a_mounted_volume_is_followed(file: Path, tmp_path: Path) -> None:
    """Kubernetes swaps a link to a folder."""
    for name, entry in (("first", GOOD), ("other", {**GOOD, "realms": ["room"]})):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "issuers.json", entry)
    (tmp_path / "data").symlink_to("first")
    file.symlink_to("data/issuers.json")
    issuers = IssuerFile(str(file))
    (tmp_path / "next").symlink_to("other")
    (tmp_path / "next").rename(tmp_path / "data")

    assert [issuer.realms for issuer in issuers.current_issuers()] == [("room",)]


@pytest.mark.parametrize(
    "url",
    [
        *("https://login.example.org", "https://login.example.org:8443/a/b", "https://[2001:db8::1]/", "https://10.0.0.1/?p=x"),
        *("http://localhost:8080", "http://127.0.0.1", "http://127.9.9.9/a", "http://[::1]:9/a", "HTTPS://login.example.org"),
    ],
)
def test_safe_url_is_taken(url: str) -> None:
    assert is_safe_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "login.example.org",
            "http://login.example.org",
            "http://10.0.0.1",
            "http://localhost.example.org",
            "http://127.1",
        ),
        *(
            "https://",
            "https:///a",
            "https://ann@login.example.org",
            "https://:x@login.example.org",
            "https://a/#b",
            "https://a#",
        ),
        *(
            "https://a b/",
            "https://a\n/",
            "https://a/\r\nX: 1",
            "https://a:port/",
            "https://a:99999/",
            "https://[::1/",
            "https://ä/",
        ),
        *(
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "http://127.0.0.1@login.example.org/",
            "https://a\\@127.0.0.1/",
            "http://0/",
        ),
    ],
)
def test_unsafe_url_is_refused(url: str) -> None:
    assert not is_safe_url(url)
