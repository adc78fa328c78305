"""The keys that sign the server's own tokens: files in a folder, as a mounted Secret is one. No database, backup or export has them.

The key whose name is last signs; all verify, so a new key is added, and the one before it is removed once its tokens have expired. A key
that appears while others are there signs only after a while: until then another replica may not have been given it.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from headwater.clock import Clock
from headwater.errors import RefusedError
from headwater_server.call import ServedStore
from headwater_server.key_files import warn_of_readable_key

log = structlog.get_logger(__name__)

_LEAST_BYTES = 32
_MOST_BYTES = 64 * 1024
_READ_SECONDS = 5.0
_SPREAD_SECONDS = 120.0
"""How long a new key verifies before it signs: the kubelet brings a changed Secret to all pods within about a minute and a half."""
_PURPOSE = b"headwater access token, HS256, 1"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key, by its name. What tokens are signed with is derived from the file: a key that another program uses, too, gives other ones."""

    name: str
    secret: bytes = field(repr=False)


class SigningKeys:
    """The keys in a folder, read again every few seconds. Thread-safe."""

    def __init__(self, folder: str, clock: Clock) -> None:
        """raises RefusedError for a folder without a key, and for a file that cannot be one"""
        self._folder = Path(folder)
        self._clock = clock
        self._lock = threading.Lock()
        self._keys = self._read()
        for name in self._keys:
            warn_of_readable_key(self._folder / name)
        self._appeared: dict[str, float] = {}
        self._looked = clock.monotonic()

    def newest(self) -> SigningKey:
        """The key that signs now."""
        keys, now = self._current(), self._clock.monotonic()
        ripe = [name for name in keys if now - self._appeared.get(name, -_SPREAD_SECONDS) >= _SPREAD_SECONDS]
        return keys[max(ripe or keys)]

    def all(self) -> list[SigningKey]:
        """The keys that verify now."""
        return list(self._current().values())

    def find(self, name: str) -> SigningKey | None:
        """The key of a name. One that is not known is looked for in the folder, at most once a second."""
        return self._current().get(name) or self._current(older_than_seconds=1.0).get(name)

    def _current(self, *, older_than_seconds: float = _READ_SECONDS) -> Mapping[str, SigningKey]:
        now = self._clock.monotonic()
        if now - self._looked <= older_than_seconds:
            return self._keys
        with self._lock:
            if now - self._looked <= older_than_seconds:
                return self._keys
            self._looked = now
            try:
                keys = self._read()
            except RefusedError as fault:
                log.error("the signing keys cannot be read again; those from before stay in force", why=str(fault))
                return self._keys
            for name in keys.keys() - self._keys.keys():
                self._appeared[name] = now
                log.info("a signing key was added", key=name)
                warn_of_readable_key(self._folder / name)
            for name in self._keys.keys() - keys.keys():
                self._appeared.pop(name, None)
                log.info("a signing key was removed; what it has signed is refused", key=name)
            self._keys = keys
        return self._keys

    def _read(self) -> dict[str, SigningKey]:
        try:
            files = sorted(file for file in self._folder.iterdir() if not file.name.startswith(".") and file.is_file())
            keys = {file.name: SigningKey(file.name, _derived(file)) for file in files}
        except OSError as fault:
            raise RefusedError(f"HEADWATER_SERVER_SIGNING_KEYS: {self._folder}: {fault.strerror or fault}") from fault
        if not keys:
            raise RefusedError(
                f"HEADWATER_SERVER_SIGNING_KEYS: {self._folder} has no key: write 32 random bytes or more into a file there, such as"
                " `openssl rand -base64 48 > FOLDER/2026-01-31`"
            )
        return keys


def shared_keys(served: ServedStore) -> SigningKeys | None:
    """The keys of a process, which all that is signed and sealed in it shares; None where it has none."""
    folder = served.store.settings.server_signing_keys
    return SigningKeys(folder, served.store.clock) if folder else None


def _derived(file: Path) -> bytes:
    content = file.read_bytes().strip()
    if not _LEAST_BYTES <= len(content) <= _MOST_BYTES:
        raise RefusedError(
            f"HEADWATER_SERVER_SIGNING_KEYS: {file} holds {len(content)} bytes, and a key has at least {_LEAST_BYTES} and at most"
            f" {_MOST_BYTES}: `openssl rand -base64 48` makes one"
        )
    return hmac.digest(content, _PURPOSE, hashlib.sha256)
