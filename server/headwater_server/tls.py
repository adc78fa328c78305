"""TLS whose certificate follows its files: connections that come after a change get the new one, and those that there are stay."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from pathlib import Path

import structlog

from headwater.errors import RefusedError
from headwater_server.key_files import warn_of_readable_key

log = structlog.get_logger(__name__)

_Signature = tuple[tuple[int, int, int], ...]


class CertificateFiles:
    """The context for a listener, made from a certificate with its chain and from a private key.

    Files are loaded into a context of their own, and connections get it only once it is whole: a certificate that is replaced while
    its key still is the old one would leave a context that can serve nobody.

    raises        RefusedError when the files cannot be read or do not belong together
    """

    def __init__(self, certificate: Path, private_key: Path) -> None:
        self._certificate = certificate
        self._private_key = private_key
        self._signature = self._read_signature()
        self._told: _Signature | None = None
        self._current = self._load()
        warn_of_readable_key(private_key)
        self.context = self._load()
        self.context.sni_callback = self._use_current

    def reread(self) -> bool:
        """Take the files' certificate if they have changed. Returns whether it was taken; what cannot be used is logged once."""
        try:
            signature = self._read_signature()
            if signature == self._signature:
                return False
            current = self._load()
        except RefusedError as fault:
            self._tell(fault)
            return False
        self._current, self._signature = current, signature
        log.info("the certificate was read again", file=str(self._certificate))
        return True

    def _use_current(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> None:
        """Called for each connection when its first message came, whether it names a server or not."""
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._certificate, self._private_key, password=_refuse_password)
        except (OSError, ValueError) as fault:  # ssl.SSLError is an OSError
            raise RefusedError(
                f"the certificate {self._certificate} and the private key {self._private_key} cannot be used"
                f" ({_reason(fault)}): give PEM files that belong together, the key without a password"
            ) from fault
        return context

    def _read_signature(self) -> _Signature:
        try:
            return tuple(_stamp(path.stat()) for path in (self._certificate, self._private_key))
        except OSError as fault:
            raise RefusedError(f"{fault.filename} cannot be read: {fault.strerror}") from fault

    def _tell(self, fault: RefusedError) -> None:
        """Log each fault once, as it is looked for again and again."""
        try:
            signature: _Signature | None = self._read_signature()
        except RefusedError:
            signature = ()
        if signature != self._told:
            log.warning("the certificate was not read again; the old one stays in use", why=str(fault))
        self._told = signature


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _refuse_password() -> str:
    """Without it OpenSSL would ask at the terminal, and the server would wait there."""
    raise ValueError("the private key has a password")


def _reason(fault: Exception) -> str:
    words: Sequence[str | None] = (getattr(fault, "reason", None), getattr(fault, "strerror", None), str(fault))
    return next(word for word in words if word)
