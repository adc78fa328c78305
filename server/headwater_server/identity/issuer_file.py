"""The OpenID Connect issuers whose tokens the server accepts, as the owner of this process names them in a JSON file.

    {"issuers": [
        {"issuer": "https://login.example.org/realms/acme", "realms": ["acme"], "audiences": ["headwater"],
         "principal-claim": "preferred_username", "roles-claim": "realm_access.roles", "roles": {"lake-readers": "reader"}}]}

The file is that of the setting ``server_issuers``, and is read again when it changes. It holds no secret.
"""

from __future__ import annotations

import ipaddress
import ssl
import stat
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import structlog

from headwater.errors import RefusedError
from headwater.realms import SERVICE_ADMIN
from headwater.store.ids import checked_realm_id
from headwater.typed_values import json_decoder

log = structlog.get_logger(__name__)

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""All are asymmetric: with a symmetric one, whoever can check a token could write one."""
_MAX_FILE_BYTES = 1 << 20
_MAX_LEEWAY_SECONDS = 120
_OF_CONNECTIONS = "connection."
"""How the roles begin that the operator makes for the connections of Catalogs."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys of an issuer are read. Issuers that are equal in this share their keys."""

    issuer: str
    jwks_uri: str
    ca_file: str


class TrustedIssuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """An issuer, which of its tokens count, and who they speak for.

    issuer                  the ``iss`` of its tokens, to the letter
    realms                  the realms that its tokens are for
    audiences               a token has to name one of them in its ``aud``
    jwks_uri                where its keys are; empty: where its discovery document says
    algorithms              what its tokens may be signed by, of ``ALGORITHMS``
    ca_file                 the certificates to trust for its servers, a file in PEM; empty: the system's
    principal_claim         the claim with the principal's name; dots lead into claims of claims
    roles_claim             the claim with the roles; empty: none
    roles                   principal roles by the value of that claim, which count instead of it; None: the values are their names
    default_roles           the principal roles of everybody whom this issuer speaks for
    uses_stored_principals  whether the realm's own principal of the same name counts too, which is never root
    leeway_seconds          by how much its clock may differ from this one
    max_age_seconds         how long ago a token may have been issued; None: its own end counts alone
    """

    issuer: str
    realms: tuple[str, ...]
    audiences: tuple[str, ...]
    jwks_uri: str = ""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    ca_file: str = ""
    principal_claim: str = "sub"
    roles_claim: str = ""
    roles: dict[str, str | list[str]] | None = None
    default_roles: tuple[str, ...] = ()
    uses_stored_principals: bool = False
    leeway_seconds: int = 30
    max_age_seconds: int | None = None

    @property
    def source(self) -> KeySource:
        return KeySource(self.issuer, self.jwks_uri, self.ca_file)

    def issuer_faults(self) -> list[str]:
        """Everything that is wrong with it, each with what would be right."""
        return [*self._faults_of_lists(), *self._faults_of_addresses(), *self._faults_of_claims(), *self._faults_of_times()]

    def _faults_of_lists(self) -> Iterator[str]:
        for field in ("realms", "audiences", "algorithms"):
            if not getattr(self, field):
                yield f"{field} is empty"
        for realm in self.realms:
            try:
                checked_realm_id(realm)
            except RefusedError as fault:
                yield f"realms: {fault}"
        if not all(self.audiences):
            yield "audiences has an empty name"
        for algorithm in self.algorithms:
            if algorithm not in ALGORITHMS:
                yield f"algorithms: {algorithm[:100]!r} is none of {', '.join(ALGORITHMS)}"

    def _faults_of_addresses(self) -> Iterator[str]:
        if not is_safe_url(self.issuer) or urlsplit(self.issuer).query:
            yield "issuer is no URL with https (http for a loopback address alone), without a login, a query or a fragment"
        if self.jwks_uri and not is_safe_url(self.jwks_uri):
            yield "jwks-uri is no URL with https (http for a loopback address alone), without a login or a fragment"
        if self.ca_file:
            try:
                ssl.create_default_context(cafile=self.ca_file)
            except (OSError, ValueError) as fault:
                yield f"ca-file {self.ca_file!r} cannot be used: {fault}"

    def _faults_of_claims(self) -> Iterator[str]:
        for field, path in (("principal-claim", self.principal_claim), ("roles-claim", self.roles_claim or "none")):
            if not all(path.split(".")):
                yield f"{field} {path!r} is no path of claims such as realm_access.roles"
        if self.roles is not None and not self.roles_claim:
            yield "roles needs roles-claim"
        if not all(self.default_roles):
            yield "default-roles has an empty name"
        for value in self.roles or {}:
            if not self.mapped_roles(value) or not all(self.mapped_roles(value)):
                yield f"roles: {value!r} has an empty name, or none"

    def _faults_of_times(self) -> Iterator[str]:
        if not 0 <= self.leeway_seconds <= _MAX_LEEWAY_SECONDS:
            yield f"leeway-seconds {self.leeway_seconds} is not from 0 to {_MAX_LEEWAY_SECONDS}"
        if self.max_age_seconds is not None and self.max_age_seconds < 1:
            yield f"max-age-seconds {self.max_age_seconds} is not positive"

    def mapped_roles(self, value: str) -> Sequence[str]:
        """The principal roles that a value of the claim stands for.

        Whoever names groups at the issuer does not make administrators here by that, nor gets what a connection may do: these roles are
        only given where the file says so.
        """
        if self.roles is None:
            return [] if value == SERVICE_ADMIN or value.startswith(_OF_CONNECTIONS) else [value]
        mapped = self.roles.get(value, [])
        return [mapped] if isinstance(mapped, str) else mapped


def is_safe_url(text: str) -> bool:
    """Whether a URL may be fetched for keys: nobody between can change what ``https`` brings, nor what never leaves the machine."""
    if not (text.isascii() and text.isprintable()) or any(sign in text for sign in ' "<>\\^`{|}'):
        return False
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return False
    if not url.hostname or url.username is not None or "#" in text:
        return False
    return url.scheme == "https" or is_loopback_url(text)


def is_loopback_url(text: str) -> bool:
    """Whether it is an ``http`` URL of this machine."""
    url = urlsplit(text)
    if url.scheme != "http":
        return False
    try:
        return url.hostname == "localhost" or ipaddress.ip_address(url.hostname or "").is_loopback
    except ValueError:
        return False


class _IssuersDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    issuers: list[TrustedIssuer]


_DOCUMENT = json_decoder(_IssuersDocument)
_Signature = tuple[int, int, int] | None


class IssuerFile:
    """The issuers in a file, read again when it changes. Thread-safe.

    A change that cannot be read is logged, and what was read before stays in force: a Secret may be mounted while it is wrong.

    raises        RefusedError for a file that is missing or wrong at the start
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._signature = self._seen()
        self._issuers = read_issuers(self._path)

    def current_issuers(self) -> tuple[TrustedIssuer, ...]:
        """The issuers that are in force."""
        with self._lock:
            signature = self._seen()
            if signature == self._signature:
                return self._issuers
            self._signature = signature  # also of a broken one: it is told once
            try:
                self._issuers = read_issuers(self._path)
            except RefusedError as fault:
                log.error("the issuers were not read again: those from before stay in force", fault=str(fault))
            else:
                log.info("the issuers were read again", file=str(self._path), issuers=len(self._issuers))
            return self._issuers

    def _seen(self) -> _Signature:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def read_issuers(path: Path) -> tuple[TrustedIssuer, ...]:
    """Read the issuers in a file.

    raises        RefusedError that names the file, and each issuer and field that is wrong
    """
    try:
        issuers = _DOCUMENT.decode(_read_bounded(path)).issuers
    except OSError as fault:
        raise RefusedError(f"issuers: {path} cannot be read: {fault.strerror or fault}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        told = str(fault) if isinstance(fault, msgspec.DecodeError) else "it is no JSON in UTF-8"
        raise RefusedError(f'issuers: {path} is not {{"issuers": [...]}} as the docs have it: {told}') from None
    faults = [f"{issuer.issuer!r}: {fault}" for issuer in issuers for fault in issuer.issuer_faults()]
    if faults := [*faults, *_doubled(issuers)]:
        raise RefusedError(f"issuers in {path}: {'; '.join(faults)}")
    return tuple(issuers)


def _read_bounded(file: Path) -> bytes:
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for a writer
        raise OSError("no regular file")
    if status.st_size > _MAX_FILE_BYTES:
        raise OSError(f"{status.st_size} bytes, which is too large for issuers")
    return file.read_bytes()


def _doubled(issuers: Sequence[TrustedIssuer]) -> Iterator[str]:
    """Which of two issuers a token means could not be told."""
    counts = Counter((issuer.issuer, realm) for issuer in issuers for realm in issuer.realms)
    return (f"{issuer!r} stands there twice for realm {realm!r}" for (issuer, realm), count in counts.items() if count > 1)
