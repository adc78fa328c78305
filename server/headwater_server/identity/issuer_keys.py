"""The public keys of an OpenID Connect issuer: fetched when a token needs one, kept for a while, and fetched by one caller at a time.

Whoever sends a token chooses its ``kid``, so what an unknown one can cost is bounded: a fetch every half minute, and few who wait for it.
What the issuer's servers send is bounded too, in bytes, in seconds and in keys; they redirect nobody, and set neither cookies nor ages.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jwa import JWS_ALGORITHMS, JWSAlgModel
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.util import base64_to_int

from headwater.clock import Clock
from headwater.errors import UnavailableError
from headwater.typed_values import decode_json
from headwater_server.caller import NotProvenError
from headwater_server.identity.issuer_file import ALGORITHMS, KeySource, is_loopback_url, is_safe_url

log = structlog.get_logger(__name__)

FETCH_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 600.0
"""How long keys are used without asking again. A key that its issuer has withdrawn counts no longer than this."""
LONGEST_SECONDS: Final = 86_400.0
"""How long keys are used while their issuer cannot be asked."""
PAUSE_SECONDS: Final = 30.0
"""How much later than one fetch the next may begin, whatever tokens come."""
MAX_BYTES: Final = 1 << 20
_MAX_HEADER_BYTES = 1 << 16
_MAX_KEYS = 64
_MAX_WAITING = 5
_RSA_BITS = range(2048, 8193)
_DISCOVERY = "/.well-known/openid-configuration"

PublicKey = RSAKey | ECKey | OKPKey
_FIELDS: Final[Mapping[str, tuple[type[PublicKey], tuple[str, ...]]]] = {
    "RSA": (RSAKey, ("n", "e")),
    "EC": (ECKey, ("crv", "x", "y")),
    "OKP": (OKPKey, ("crv", "x")),
}
"""By ``kty``, what a key is made of. Symmetric keys are missing on purpose: what is public cannot be a secret."""
_MODELS: Final[Mapping[str, JWSAlgModel]] = {model.name: model for model in JWS_ALGORITHMS if model.name in ALGORITHMS}


def is_signed_by(key: PublicKey, algorithm: str, content: bytes, signature: bytes) -> bool:
    """Whether a signature over the content is that of a key. The key has to fit the algorithm, which is one of ``ALGORITHMS``."""
    return _MODELS[algorithm].verify(content, signature, key)


class IssuerKeys:
    """The keys of one issuer. Thread-safe.

    seconds       how long a fetch may take, and how long others wait for it
    """

    def __init__(self, source: KeySource, clock: Clock, *, seconds: float = FETCH_SECONDS) -> None:
        self._source = source
        self._clock = clock
        self._seconds = seconds
        self._held: _HeldKeys | None = None
        self._begun: float | None = None
        self._is_down = False
        self._fetching = threading.Lock()
        self._places = threading.BoundedSemaphore(_MAX_WAITING)

    def find_keys(self, kid: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        """The keys that may have signed a token with this header, at least one. Without a ``kid``, all that fit the algorithm.

        raises        NotProvenError when the issuer has no such key; UnavailableError when it cannot be asked
        """
        keys = self._usable(kid, algorithm)
        if keys and not self._is_older(KEPT_SECONDS):
            return keys
        if keys:
            self._refresh()
        else:
            self._wait_for_fetch()
        keys = self._usable(kid, algorithm)
        if keys:
            return keys
        if self._is_down:
            raise self._unavailable()
        raise NotProvenError("the token is signed by no key of its issuer", reason=f"no key {kid!r} for {algorithm}")

    def _usable(self, kid: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        held = self._held
        return () if held is None or self._is_older(LONGEST_SECONDS) else held.keys.get((kid, algorithm), ())

    def _is_older(self, seconds: float) -> bool:
        return self._held is None or self._clock.monotonic() - self._held.fetched > seconds

    def _is_due(self) -> bool:
        return self._begun is None or self._clock.monotonic() - self._begun >= PAUSE_SECONDS

    def _refresh(self) -> None:
        """Fetch the keys again, unless somebody else is about it: who has a key waits for nobody."""
        if self._is_due() and self._fetching.acquire(blocking=False):
            try:
                self._fetch_if_due()
            finally:
                self._fetching.release()

    def _wait_for_fetch(self) -> None:
        """Fetch the keys, or wait for who does. Only few wait: the others would take the threads of callers whose keys are known."""
        if not self._is_due() and not self._fetching.locked():
            return
        if not self._places.acquire(blocking=False):
            raise self._unavailable()
        try:
            if not self._fetching.acquire(timeout=self._seconds):
                raise self._unavailable()
            try:
                self._fetch_if_due()
            finally:
                self._fetching.release()
        finally:
            self._places.release()

    def _fetch_if_due(self) -> None:
        if not self._is_due():  # somebody fetched them while this one waited
            return
        self._begun = self._clock.monotonic()
        try:
            keys = fetch_keys(self._source, seconds=self._seconds)
        except UnavailableError as fault:
            self._is_down = True
            log.warning("the keys of an issuer were not read", issuer=self._source.issuer, fault=str(fault))
        else:
            self._held = _HeldKeys(self._begun, keys)  # before the flag: who sees that the issuer is up finds its keys
            self._is_down = False
            log.info("the keys of an issuer were read", issuer=self._source.issuer, kids=sorted({kid or "" for kid, _ in keys}))

    def _unavailable(self) -> UnavailableError:
        return UnavailableError(f"the keys of issuer {self._source.issuer!r} cannot be had now: try again later")


_Keys = Mapping[tuple[str | None, str], tuple[PublicKey, ...]]
"""By ``kid`` and algorithm, and by None and algorithm for tokens without a ``kid``."""


@dataclass(frozen=True, slots=True)
class _HeldKeys:
    fetched: float
    keys: _Keys


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


class _KeyDocument(msgspec.Struct, frozen=True):
    keys: list[Any]


def fetch_keys(source: KeySource, *, seconds: float = FETCH_SECONDS) -> _Keys:
    """Fetch the keys of an issuer, and its discovery document before where the address of the keys is not known.

    raises        UnavailableError that says what was wrong, for the server's own log
    """
    until = time.monotonic() + seconds
    url = source.jwks_uri or _discovered_url(source, until)
    entries = _fetch(url, source.ca_file, until, _KeyDocument).keys
    if len(entries) > _MAX_KEYS:
        raise UnavailableError(f"{url} has {len(entries)} keys, and {_MAX_KEYS} are the most that are taken")
    keys: dict[tuple[str | None, str], tuple[PublicKey, ...]] = {}
    for entry in entries:
        for place, key in _places_of(entry):
            keys[place] = (*keys.get(place, ()), key)
    return keys


def _discovered_url(source: KeySource, until: float) -> str:
    url = source.issuer.rstrip("/") + _DISCOVERY
    discovery = _fetch(url, source.ca_file, until, _Discovery)
    if discovery.issuer != source.issuer:
        raise UnavailableError(f"{url} is the document of issuer {discovery.issuer[:200]!r}")
    if not is_safe_url(discovery.jwks_uri):
        raise UnavailableError(f"{url} names a jwks_uri that is no URL with https: {discovery.jwks_uri[:200]!r}")
    if is_loopback_url(discovery.jwks_uri) and not is_loopback_url(source.issuer):  # it would have this machine ask itself
        raise UnavailableError(f"{url} names a jwks_uri on this machine: {discovery.jwks_uri[:200]!r}")
    return discovery.jwks_uri


def _places_of(entry: Any) -> Iterator[tuple[tuple[str | None, str], PublicKey]]:
    """Where a key of a document is found, with the key. Nowhere, if it cannot be a key that tokens are checked by."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or "d" in entry:
        return
    kid, named, operations = entry.get("kid"), entry.get("alg"), entry.get("key_ops", ["verify"])
    if not isinstance(kid, str | None) or not isinstance(operations, list) or "verify" not in operations:
        return
    key = _public_key(entry)
    if key is None:
        return
    for algorithm, model in _MODELS.items():
        if named in (None, algorithm) and _fits(key, model):
            yield from (((place, algorithm), key) for place in {kid, None})


def _public_key(entry: dict[str, Any]) -> PublicKey | None:
    """The key of an entry by its numbers alone: what else stands there, such as an address of a certificate, is not looked at."""
    try:
        kind, fields = _FIELDS[entry["kty"]]
        numbers: Any = {"kty": entry["kty"], **{field: entry[field] for field in fields}}
        if kind is RSAKey and base64_to_int(numbers["n"]).bit_length() not in _RSA_BITS:  # joserfc would only warn
            return None
        key = kind.import_key(numbers)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return None if isinstance(key, OKPKey) and not key.curve_name.startswith("Ed") else key


def _fits(key: PublicKey, model: JWSAlgModel) -> bool:
    try:
        model.check_key(key)
    except JoseError:
        return False
    return True


Document = TypeVar("Document", bound=msgspec.Struct)


def _fetch(url: str, ca_file: str, until: float, kind: type[Document]) -> Document:
    try:
        return decode_json(_get(url, ca_file, until), kind)
    except (OSError, HTTPException, ValueError) as fault:  # UnicodeError of a host name, and ssl.SSLError, are among them
        raise UnavailableError(f"{url} cannot be read: {fault or type(fault).__name__}") from fault
    except (msgspec.DecodeError, RecursionError) as fault:
        raise UnavailableError(f"{url} is not such a document: {fault}") from fault


def _get(url: str, ca_file: str, until: float) -> bytes:
    """The body at a URL, asked by hand: nothing follows redirects, unpacks, keeps cookies or takes a proxy from the environment."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with contextlib.ExitStack() as opened:
        connection = _connect(opened, parts, ca_file, until)
        connection.settimeout(_seconds_to(until))
        connection.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n"
            "User-Agent: headwater\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        bounded: Any = _BoundedSocket(connection, until)
        return _body(opened.enter_context(HTTPResponse(bounded, method="GET")))


def _connect(opened: contextlib.ExitStack, parts: SplitResult, ca_file: str, until: float) -> socket.socket:
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection = opened.enter_context(socket.create_connection((host, port), timeout=_seconds_to(until)))
    if parts.scheme != "https":
        return connection
    context = ssl.create_default_context(cafile=ca_file or None)
    connection.settimeout(_seconds_to(until))
    return opened.enter_context(context.wrap_socket(connection, server_hostname=host))


def _body(response: HTTPResponse) -> bytes:
    response.begin()
    if response.status != 200:
        raise OSError(f"answered {response.status}")
    if response.getheader("Content-Encoding", "identity") != "identity":
        raise OSError("the answer is packed")
    body = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise OSError(f"more than {MAX_BYTES} bytes")
    return body


def _seconds_to(until: float) -> float:
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


class _BoundedSocket:
    """A connection as ``HTTPResponse`` takes it, which ends at a time and after some bytes, however slowly these come."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._reader = _BoundedReader(connection, until)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._reader)


class _BoundedReader(io.RawIOBase):
    def __init__(self, connection: socket.socket, until: float) -> None:
        super().__init__()
        self._connection = connection
        self._until = until
        self._left = MAX_BYTES + _MAX_HEADER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(_seconds_to(self._until))
        count = self._connection.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise OSError(f"more than {MAX_BYTES} bytes")
        return count
