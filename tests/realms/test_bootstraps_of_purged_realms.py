"""A bootstrap whose realm is purged under its hands, at any call to the database, is refused with that reason, or beaten."""

from __future__ import annotations

import itertools

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import HeadwaterError, RefusedError, SwapConflictError
from headwater.realms import CredentialsHash, RealmRegistry, RealmState, bootstrap
from headwater.settings import Settings
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend

HASH = CredentialsHash(client_id="c", salt=b"s", digest=b"d")


def fault_of_bootstrap(settings: Settings, *, purged_before: int) -> HeadwaterError | None:
    """What a bootstrap raises when its realm is purged before so many calls; None: it makes fewer, or comes to its end."""
    backend, clock = FaultyBackend(MemoryBackend()), FakeClock()
    stores = [
        Store(each, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend
        for each in (backend, backend.backend)
    ]
    ours, others = (RealmRegistry(store) for store in stores)
    others.create_realm("acme")

    def purge() -> None:
        realm = others.read_realm("acme")
        if realm.state in (RealmState.CREATED, RealmState.INITIALIZING):
            others.move_realm(realm, RealmState.PURGING)
            while others.open_realm_for("acme", RealmState.PURGING).delete_rows(1000):
                continue

    backend.intervene("*", purge, at=purged_before)
    try:
        bootstrap(ours, "acme", HASH)
    except HeadwaterError as fault:
        return fault
    return None


def test_bootstrap_is_refused_or_beaten_wherever_the_purge_begins(settings: Settings) -> None:
    refused = 0
    for call in itertools.count(1):
        fault = fault_of_bootstrap(settings, purged_before=call)
        if fault is None:
            break
        assert isinstance(fault, RefusedError | SwapConflictError), (call, fault)
        refused += 1
    assert refused > 10
