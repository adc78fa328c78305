"""Credentials for clients, made once for each grant and handed out again until half of their life is over."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from headwater.clock import Clock
from headwater.errors import HeadwaterError, RefusedError, UnavailableError
from headwater.iceberg import ClientKey, StorageOptions
from headwater_server.call import ServedStore
from headwater_server.storage_credentials.storage_grant import (
    CredentialIssuer,
    IssuedCredentials,
    RoleRefusedError,
    StorageGrant,
)
from headwater_server.storage_credentials.sts_issuer import StsIssuer

_log = structlog.get_logger()
_KEPT_LIMIT: Final = 10_000
"""Grants: some 20 MB, for a token has about a kilobyte."""
_STRIPES: Final = 64
_LAST_SECONDS: Final = 60
"""Credentials that end sooner are of no use."""
_REST_SECONDS: Final = 5
"""How long after a failure nobody asks again: all threads of the server would wait for a service that does not answer."""

_Key = tuple[StorageOptions, StorageGrant]


@dataclass(frozen=True, slots=True)
class _Kept:
    """Credentials, by the monotonic clock: ``renewed`` from when others are made, ``gone`` from when these are not given any more."""

    credentials: IssuedCredentials
    renewed: float
    gone: float


@dataclass(frozen=True, slots=True)
class _Failure:
    until: float
    fault: HeadwaterError


class CredentialVendor:
    """Gives credentials for grants, and keeps them within a bound. Thread-safe: for one grant they are made once, however many ask.

    issuers       by the storages that they make credentials for
    """

    def __init__(self, clock: Clock, issuers: Mapping[str, CredentialIssuer], *, limit: int = _KEPT_LIMIT) -> None:
        self._clock = clock
        self._issuers = issuers
        self._limit = limit
        self._lock = threading.Lock()
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._failures: OrderedDict[_Key | StorageOptions, _Failure] = OrderedDict()

    def vend(
        self, options: StorageOptions, grant: StorageGrant, *, check: Callable[[], None] | None = None
    ) -> IssuedCredentials | None:
        """The credentials for a grant; None where its storage has none for clients.

        check         is called before credentials are made, and raises RefusedError where the grant must not be given
        raises        as ``CredentialIssuer.issue`` does
        """
        if options.client_key is not None:
            return _static_credentials(options.client_key)
        if options.client_role is None:
            return None
        key = (options, grant)
        kept = self._find(key)
        if kept is not None and self._clock.monotonic() < kept.renewed:
            return kept.credentials
        with self._stripes[hash(key) % _STRIPES]:
            kept = self._find(key)  # another thread may have made them meanwhile
            now = self._clock.monotonic()
            if kept is not None and now < kept.renewed:
                return kept.credentials
            try:
                return self._renew(key, now, check)
            except UnavailableError:
                if kept is None or now >= kept.gone:
                    raise
                return kept.credentials  # they hold for a while yet

    def _find(self, key: _Key) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            return kept

    def _renew(self, key: _Key, now: float, check: Callable[[], None] | None) -> IssuedCredentials:
        options, grant = key
        self._check_rested(key, now)
        wall_ms = self._clock.wall() // 1000
        try:
            if check is not None:
                check()
            credentials = self._issuers[options.area].issue(options, grant)
        except (RefusedError, RoleRefusedError) as fault:
            self._rest(key, fault)  # a role may trust some callers, and not others
            raise
        except UnavailableError as fault:
            self._rest(options, fault)  # whichever table is asked for next, the service is the same
            raise
        life = _life_seconds(options, credentials, wall_ms)
        with self._lock:
            self._kept[key] = _Kept(credentials, now + life / 2, now + life - _LAST_SECONDS)
            self._kept.move_to_end(key)
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return credentials

    def _check_rested(self, key: _Key, now: float) -> None:
        with self._lock:
            failures = [failure for each in (key, key[0]) if (failure := self._failures.get(each)) is not None]
        for failure in failures:
            if now < failure.until:
                raise type(failure.fault)(str(failure.fault))

    def _rest(self, key: _Key | StorageOptions, fault: HeadwaterError) -> None:
        _log.warning("no credentials for clients could be made", fault=str(fault))
        with self._lock:
            self._failures[key] = _Failure(self._clock.monotonic() + _REST_SECONDS, fault)
            self._failures.move_to_end(key)
            while len(self._failures) > self._limit:
                self._failures.popitem(last=False)


def credential_vendor(served: ServedStore) -> CredentialVendor:
    """The vendor that all calls of a process share."""
    return CredentialVendor(served.store.clock, {"s3": StsIssuer()})


def _life_seconds(options: StorageOptions, credentials: IssuedCredentials, wall_ms: int) -> float:
    """How long credentials hold: as asked, or less where the service says so."""
    asked = float(_LAST_SECONDS if options.client_role is None else options.client_role.lifetime_seconds)
    return asked if credentials.expires_ms is None else min(asked, (credentials.expires_ms - wall_ms) / 1000)


def _static_credentials(key: ClientKey) -> IssuedCredentials:
    config = {"s3.access-key-id": key.access_key_id, "s3.secret-access-key": key.secret_access_key}
    return IssuedCredentials(config | ({"s3.session-token": key.session_token} if key.session_token else {}))
