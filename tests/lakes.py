"""A realm with one catalog on rows that can be copied, and another process that acts between any two calls of a collection."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import iceberg
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.clock import Clock
from headwater.commits import mark_reachable
from headwater.errors import HeadwaterError
from headwater.gc import CollectionResult, collect_realm
from headwater.realms import REALM_REFERENCES, HistoryRetention, Realm, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import Backend, ObjectId, RealmStore, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend

REALM = "acme"
HOUR = 3600.0
Act = Callable[[Store], object]
FOUND = iceberg.AcceptedTable(
    directory="s3://lake/orders",
    key=("orders",),
    metadata_location="s3://lake/orders/metadata/v1.metadata.json",
    uuid=None,
    format_version=2,
    snapshot_id=1,
    schema_id=0,
    spec_id=0,
    sort_order_id=0,
    log=(),
    rule=iceberg.ChoiceRule.HIGHEST_NUMBER,
    evidence=(),
)


@dataclass(frozen=True)
class HandmadeSurvey:
    """A survey whose outcomes a test makes."""

    look: Callable[[iceberg.SurveyScope, iceberg.SurveyProgress], Iterable[iceberg.SurveyOutcome]]
    name: str = "test"

    def __call__(self, scope: iceberg.SurveyScope, progress: iceberg.SurveyProgress) -> Iterable[iceberg.SurveyOutcome]:
        return self.look(scope, progress)


def open_on(backend: Backend | FaultyBackend, settings: Settings, clock: Clock) -> Store:
    """A process of its own: its cache and its node are not shared."""
    return Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend


def make_realm(store: Store, *, commits: int = 1, reference_commits: int = 20, age_seconds: float = 0.0) -> Realm:
    """An ACTIVE realm that keeps so much history."""
    realms = RealmRegistry(store)
    wanted = HistoryRetention(content_commits=commits, content_age_seconds=age_seconds, reference_commits=reference_commits)
    realm = realms.move_realm(realms.create_realm(REALM, retention=wanted), RealmState.INITIALIZING)
    rows = realms.open_realm_for(REALM, RealmState.INITIALIZING)
    for name in REALM_REFERENCES:
        rows.ensure_reference(name)
    return realms.move_realm(realm, RealmState.ACTIVE)


def rows_of(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm(REALM)


def make_lake(store: Store) -> Catalog:
    Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/")
    return lake(store)


def lake(store: Store) -> Catalog:
    return Catalogs(rows_of(store)).open_catalog("lake")


def put(catalog: Catalog, version: int, *, branch: str = "main", table: str = "orders") -> ObjectId:
    """Commit a version of a table; returns the commit."""
    key = ContentKey.of(table)
    there = catalog.get_content(branch, key)
    content = IcebergTable(id=None if there is None else there.id, metadata_location=f"s3://lake/{table}/v{version}.json")
    done = catalog.commit(branch, [Put(key, content)], message=f"{table} v{version}")
    assert done.commit_id is not None
    return done.commit_id


def copied(backend: Backend) -> MemoryBackend:
    """The same rows in a memory of their own."""
    copy = MemoryBackend()
    for reference in backend.scan_references(ScanSplit(), None, 100_000):
        copy.create_references([row for row in backend.read_references(reference.realm, [reference.name]) if row is not None])
    for key in backend.scan_objects(ScanSplit(), None, 100_000):
        copy.write_objects([row for row in backend.read_objects(key.realm, [(key.id, key.part)]) if row is not None])
    return copy


def unreadable_heads(backend: Backend, settings: Settings, clock: Clock) -> list[str]:
    """The living references of the realm, listed or not, that do not lead to all that they should; seen by a fresh process."""
    store = open_on(backend, settings, clock)
    rows, seen, faults = rows_of(store), set[ObjectId](), []
    for row in list(rows.scan_references()):
        try:
            if row.deleted is None and row.pointer is not None:
                mark_reachable(rows, [row.pointer], lambda new, _: new not in seen and not seen.add(new))  # type: ignore[func-returns-value]
        except HeadwaterError as fault:
            faults.append(f"{row.name}: {fault}")
    return faults


@dataclass(slots=True)
class Meeting:
    """What became of a collection during which another process acted before the ``call``-th call to the database."""

    call: int
    backend: MemoryBackend
    clock: FakeClock
    settings: Settings
    collected: CollectionResult | HeadwaterError
    acted: list[object] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return unreadable_heads(self.backend, self.settings, self.clock)

    def collect_again(self) -> CollectionResult:
        """After all graces are over."""
        self.clock.advance(HOUR)
        return collect_realm(open_on(self.backend, self.settings, self.clock), REALM)

    def open(self) -> Store:
        return open_on(self.backend, self.settings, self.clock)


def meetings(prepared: Backend, settings: Settings, start: int, act: Act, calls: Iterable[int]) -> Iterator[Meeting]:
    """A collection of the prepared rows for each of its ``calls``, with ``act`` done by another process before that call."""
    for call in calls:
        backend, clock = copied(prepared), FakeClock(start)
        other = open_on(backend, settings, clock)
        faulty, acted = FaultyBackend(backend), list[object]()
        faulty.intervene("*", lambda: _run(lambda: acted.append(_outcome(act, other))), at=call)  # noqa: B023 - called before the next round
        collected = _outcome(lambda store: collect_realm(store, REALM), open_on(faulty, settings, clock))
        assert isinstance(collected, CollectionResult | HeadwaterError)
        if not acted:
            return
        yield Meeting(call, backend, clock, settings, collected, acted)


def awakenings(
    prepared: Backend, settings: Settings, start: int, act: Act, *, asleep_seconds: float = HOUR, step: int = 1
) -> Iterator[Meeting]:
    """As ``meetings``, but the other process has begun long before: it is stopped before each of its own calls in turn.

    step          every so many calls of the collection, beginning elsewhere for each call of the other process
    """
    for stopped_at in itertools.count(1):
        for call in itertools.count(1 + stopped_at % step, step):
            met = _awaken(prepared, settings, start, act, asleep_seconds, stopped_at, call)
            if met is None:
                return
            if not met.acted:
                break
            yield met


def _awaken(
    prepared: Backend, settings: Settings, start: int, act: Act, asleep_seconds: float, stopped_at: int, call: int
) -> Meeting | None:
    backend, clock, acted = copied(prepared), FakeClock(start), list[object]()
    asleep, wake, woken = threading.Event(), threading.Event(), threading.Event()
    stopped = FaultyBackend(backend)

    def fall_asleep() -> None:
        asleep.set()
        wake.wait(60)

    def run() -> None:
        acted.append(_outcome(act, open_on(stopped, settings, clock)))
        asleep.set()

    stopped.intervene("*", fall_asleep, at=stopped_at)
    other = threading.Thread(target=run)
    other.start()
    asleep.wait(60)
    if acted:  # it makes fewer calls than that
        return None
    clock.advance(asleep_seconds)

    def let_go() -> None:
        woken.set()
        wake.set()
        other.join(60)

    faulty = FaultyBackend(backend)
    faulty.intervene("*", let_go, at=call)
    collected = _outcome(lambda store: collect_realm(store, REALM), open_on(faulty, settings, clock))
    assert isinstance(collected, CollectionResult | HeadwaterError)
    is_met = woken.is_set()
    let_go()
    return Meeting(call, backend, clock, settings, collected, acted if is_met else [])


def _run(work: Callable[[], object]) -> None:
    """On a thread of its own, as another process would: the collection may be inside a commit, whose thread commits nothing else."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)


def _outcome(act: Act, store: Store) -> object:
    try:
        return act(store)
    except HeadwaterError as fault:
        return fault
