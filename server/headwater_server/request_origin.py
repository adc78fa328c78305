"""Where a request comes from: which client, through which proxies, and whether a page in a browser may have made it.

A server on loopback without logins trusts whoever reaches it. A browser on the same machine does, and runs the pages of strangers: so a
request must call the server by a name that no stranger's DNS can give (``check_host``), and a page of another origin may change nothing
(``check_page``).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater_server.error_answers import ProtocolError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class TrustedOrigins:
    """Whose word counts.

    proxies       networks whose ``X-Forwarded-For`` is believed
    hosts         names beside ``localhost`` and loopback addresses by which the server may be called, in lower case
    pages         origins whose pages may call it; ``*`` for all
    """

    proxies: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    pages: tuple[str, ...] = ()

    @classmethod
    def of_settings(cls, settings: Settings) -> TrustedOrigins:
        """raises RefusedError for a proxy that is no address or network, and an origin without its scheme"""
        pages = _names(settings.server_origins)
        if wrong := [page for page in pages if page != "*" and "://" not in page]:
            raise RefusedError(
                f"HEADWATER_SERVER_ORIGINS has {wrong[0]!r}: an origin is written like https://console.example.com"
            )
        return cls(
            proxies=tuple(_network(name) for name in _names(settings.server_proxies)),
            hosts=frozenset(name.lower() for name in _names(settings.server_hosts)),
            pages=tuple(page.rstrip("/") for page in pages),
        )

    def client_of(self, peer: str, headers: Mapping[str, str]) -> str:
        """The client's address: the last in ``X-Forwarded-For`` that is no proxy of ours, if the peer is one; else the peer's."""
        hops = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",") if hop.strip()]
        client = peer
        while self._is_proxy(client) and hops:
            hop = hops.pop()
            if _address(hop) is None:
                break
            client = hop
        return client

    def check_host(self, host: str | None) -> None:
        """raises ProtocolError for a name in ``Host`` that somebody else's DNS could lead here"""
        if host is None:  # HTTP/1.0, which no browser speaks
            return
        name = host_name(host)
        address = _address(name)
        if name == "localhost" or name.endswith(".localhost") or name in self.hosts or (address and address.is_loopback):
            return
        raise ProtocolError(
            f"this server is not called {name[:_SHOWN_CHARACTERS]!r}: call it localhost, or name it in HEADWATER_SERVER_HOSTS",
            status=421,
            type_="MisdirectedRequestException",
        )

    def check_page(self, method: str, headers: Mapping[str, str]) -> None:
        """raises ProtocolError for a change that a page of an origin wants that is neither the server's own nor a named one"""
        origin = headers.get("origin")
        if method in _SAFE_METHODS or origin is None or origin in self.pages or "*" in self.pages:
            return
        if origin.partition("://")[2] == headers.get("host"):
            return
        raise ProtocolError(
            f"pages of {origin[:_SHOWN_CHARACTERS]!r} may change nothing here: HEADWATER_SERVER_ORIGINS names the origins that may",
            status=403,
            type_="ForbiddenException",
        )

    def _is_proxy(self, name: str) -> bool:
        address = _address(name)
        return address is not None and any(address in network for network in self.proxies)


def host_name(host: str) -> str:
    """The name or address in a ``Host`` header, without port and brackets, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _network(name: str) -> Network:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        raise RefusedError(
            f"HEADWATER_SERVER_PROXIES has {name!r}, which is no address and no network such as 10.0.0.0/8"
        ) from None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
