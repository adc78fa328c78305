"""Where a server listens: on loopback alone, as long as nobody has to prove who they are; with a certificate or without."""

from __future__ import annotations

import pytest

from headwater import Settings
from headwater.errors import RefusedError, UnavailableError
from headwater_server.server_process import ListenAddress, certificate_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8181", ("127.0.0.1", 8181)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("127.8.0.1:65535", ("127.8.0.1", 65535)),
    ],
)
def test_loopback_address_is_taken(text: str, address: tuple[str, int]) -> None:
    parsed = ListenAddress.parse(text)

    assert (parsed.host, parsed.port) == address


@pytest.mark.parametrize("text", ["0.0.0.0:8181", "[::]:80", "10.0.0.1:80", "lake.example.com:80", "*:80"])
def test_address_that_others_reach_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="nobody has to prove who calls"):
        ListenAddress.parse(text).listen()


@pytest.mark.parametrize("text", ["", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1"])
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="write for example"):
        ListenAddress.parse(text)


@pytest.mark.parametrize("settings", [{"server_certificate": "tls.crt"}, {"server_private_key": "tls.key"}])
def test_certificate_and_key_go_together(settings: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="set both, or none"):
        certificate_of(Settings(**settings))


def test_taken_port_is_told() -> None:
    with ListenAddress.parse("127.0.0.1:0").listen() as listener:
        port = listener.getsockname()[1]

        with pytest.raises(UnavailableError, match=f"port {port}"):
            ListenAddress("127.0.0.1", port).listen()
