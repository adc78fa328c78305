"""Where requests come from: named proxies are believed, and nobody else is."""

from __future__ import annotations

import pytest

from headwater import Settings
from headwater.errors import RefusedError
from headwater_server.request_origin import TrustedOrigins, host_name

ORIGINS = TrustedOrigins.of_settings(Settings(server_proxies="10.0.0.0/8, ::1,192.168.1.1"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("1.2.3.4", "5.6.7.8", "1.2.3.4"),
        ("10.0.0.1", "5.6.7.8", "5.6.7.8"),
        ("10.0.0.1", "9.9.9.9, 5.6.7.8", "5.6.7.8"),
        ("10.0.0.1", "9.9.9.9, 5.6.7.8, 10.2.0.1", "5.6.7.8"),
        ("::1", "2001:db8::1", "2001:db8::1"),
        ("192.168.1.1", "10.0.0.9", "10.0.0.9"),
        ("192.168.1.2", "5.6.7.8", "192.168.1.2"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "5.6.7.8, <script>", "10.0.0.1"),
        ("", "5.6.7.8", ""),
    ],
)
def test_client_is_the_last_hop_before_named_proxies(peer: str, forwarded: str, client: str) -> None:
    assert ORIGINS.client_of(peer, {"x-forwarded-for": forwarded}) == client


@pytest.mark.parametrize(
    "settings", [{"server_proxies": "10.0.0.0/33"}, {"server_proxies": "proxy"}, {"server_origins": "example.com"}]
)
def test_name_that_is_none_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="HEADWATER_SERVER_"):
        TrustedOrigins.of_settings(Settings(**settings))


@pytest.mark.parametrize(
    ("host", "name"), [("A.example.com:80", "a.example.com"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("127.0.0.1", "127.0.0.1")]
)
def test_host_is_read_without_its_port(host: str, name: str) -> None:
    assert host_name(host) == name
