"""Two stores on one database: one that writes, through a backend that fails on demand, and one that reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from backend_model import wipe
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import Backend, RealmId, RealmKey, Store

__all__ = ["BEATEN", "DONE", "NOT_DONE", "UNKNOWN", "Outcome", "Spoiling", "TwoStores", "spoilings"]

DONE, BEATEN, NOT_DONE, UNKNOWN = "done", "beaten", "not done", "unknown"
TTL_SECONDS = 60.0
REALM, OTHER = RealmKey(77), RealmKey(78)


class Spoiling(NamedTuple):
    """What happens to the next writes: nothing, or so many of them fail in one way."""

    how: str
    times: int


spoilings = st.one_of(
    st.just(Spoiling("not at all", 0)),
    st.builds(Spoiling, st.sampled_from(["not at all", "away", "request lost", "answer lost"]), st.integers(1, 3)),
)


class Outcome(NamedTuple):
    how: str
    result: Any = None


class Kept:
    """A backend that outlives the stores on it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def close(self) -> None:
        """Others go on with it."""


class TwoStores(RuleBasedStateMachine):
    """``writer`` and ``reader`` are handles on one realm; in ``other``, rows of the same names must stay as they are."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        wipe(backend)
        self.backend = backend
        self.clock = FakeClock()
        self.faults = FaultyBackend(Kept(backend))
        self.settings = Settings(reference_ttl_seconds=TTL_SECONDS, cache_bytes=50_000)
        self.stores = [
            Store(one, url="memory://", settings=self.settings, clock=self.clock) for one in (self.faults, Kept(backend))
        ]
        self.writer, self.reader = (store.rows(RealmId("acme"), REALM) for store in self.stores)
        self.other = self.stores[0].rows(RealmId("other"), OTHER)
        for store in self.stores:
            store.new_id()  # leases its node, which is not what shall fail

    @rule(seconds=st.sampled_from([0.001, 1, TTL_SECONDS / 2, TTL_SECONDS + 1, 20_000]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for store in self.stores:
            store.new_id()  # renews its lease

    def attempt(self, methods: tuple[str, ...], spoiling: Spoiling, act: Callable[[], Any]) -> Outcome:
        """What came of a call whose writes were spoiled; no fault comes from nothing."""
        ways: dict[str, dict[str, Any]] = {
            "away": {},
            "request lost": {"fault": UnknownOutcomeError("lost on its way")},
            "answer lost": {"before": False},
        }
        for method in methods if spoiling.how in ways else ():
            self.faults.fail(method, times=spoiling.times, **ways[spoiling.how])
        try:
            return Outcome(DONE, act())
        except SwapConflictError:
            return Outcome(BEATEN)
        except UnavailableError:
            assert spoiling.how == "away"
            return Outcome(NOT_DONE)
        except UnknownOutcomeError:
            assert spoiling.how in ("request lost", "answer lost")
            return Outcome(UNKNOWN)
        finally:
            self.faults.heal()

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
