"""What a process remembers of a store, how much memory that takes, and how it never remembers wrongly."""

from __future__ import annotations

import dataclasses
import gc
import random
import threading
import timeit
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from notes import Counter, Fleeting, Note, Sought, Uncached

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import Micros
from headwater.errors import UnavailableError
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectRow, RealmId, RealmKey, RealmStore, Reference, ReferenceMove, Store, StoredObject
from headwater.store.backends.memory import MemoryBackend
from headwater.store.cache import Cache
from headwater.store.stored_objects import decode_object, encode_object
from tiers import long_but_for

REALM = RealmKey(1)
MIB = 1 << 20


def make_cache(clock: FakeClock, budget_bytes: int) -> Cache:
    return Cache(clock=clock, budget_bytes=budget_bytes, reference_ttl_seconds=60)


@pytest.fixture
def cache(clock: FakeClock) -> Cache:
    """Room for ten notes, if they have a number and nothing else."""
    probe = make_cache(clock, MIB)
    fill(probe, range(1000, 1001))
    return make_cache(clock, 10 * probe.statistics().weight)


@pytest.fixture
def remembered(cache: Cache) -> Callable[[], list[int]]:
    return lambda: [number for number in range(100) if cache.find_object(REALM, ObjectId(number)) is not None]


def fill(cache: Cache, numbers: range) -> None:
    for number in numbers:
        cache.put_object(REALM, [(ObjectId(number), Note(number=number + 1000))], cache.ticket())


def test_derived_values_take_no_more_than_their_share(clock: FakeClock) -> None:
    derived = make_cache(clock, 8 * 1000).derived

    derived.keep(REALM, ObjectId(1), "large", 251)
    for number in range(2, 9):
        derived.keep(REALM, ObjectId(number), number, 200)
        derived.find(REALM, ObjectId(2))

    found = [number for number in range(1, 9) if derived.find(REALM, ObjectId(number)) is not None]
    assert found == [2, 5, 6, 7, 8], "the latest used stay, and what alone takes a quarter is not kept"


def test_derived_value_that_is_kept_again_counts_once(clock: FakeClock) -> None:
    derived = make_cache(clock, 8 * 1000).derived

    for _ in range(100):
        derived.keep(REALM, ObjectId(1), "value", 200)
    derived.keep(REALM, ObjectId(2), "value", 200)

    assert derived.find(REALM, ObjectId(1)) == "value"


def test_forgotten_realm_has_no_derived_values(cache: Cache) -> None:
    cache.derived.keep(REALM, ObjectId(1), "value", 1)

    cache.forget_realm(REALM)

    assert cache.derived.find(REALM, ObjectId(1)) is None


def test_cache_holds_no_more_than_its_budget(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(30))

    assert remembered() == list(range(20, 30))


def test_object_used_last_stays_longest(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    cache.find_object(REALM, ObjectId(0))
    fill(cache, range(10, 12))

    assert remembered() == [0, 3, 4, 5, 6, 7, 8, 9, 10, 11]


def test_object_used_longest_ago_goes_where_all_were_used(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    remembered()
    fill(cache, range(10, 12))

    assert remembered() == list(range(2, 12))


def test_object_larger_than_the_budget_pushes_nothing_out(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    cache.put_object(REALM, [(ObjectId(50), Note(data=b"x" * 20_000))], cache.ticket())

    assert remembered() == list(range(10))


def test_object_put_again_weighs_once(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    for _ in range(20):
        fill(cache, range(10))

    assert remembered() == list(range(10))


def test_forgotten_objects_make_room(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    cache.forget_object(REALM, [ObjectId(number) for number in range(5)])
    fill(cache, range(20, 25))

    assert remembered() == [*range(5, 10), *range(20, 25)]


def test_realms_do_not_share_objects(cache: Cache) -> None:
    fill(cache, range(1))

    assert cache.find_object(RealmKey(2), ObjectId(0)) is None


def test_statistics_count_what_happened(cache: Cache) -> None:
    fill(cache, range(12))
    cache.put_object(REALM, [(ObjectId(50), Note(data=b"x" * 20_000))], cache.ticket())
    for number in (0, 11, 11):
        cache.find_object(REALM, ObjectId(number))

    for _ in range(2):
        told = cache.statistics()
        assert (told.hits, told.misses, told.puts, told.evictions, told.refused) == (2, 1, 12, 2, 1)
        assert (told.entries, told.weight) == (10, told.budget)


def test_threads_that_read_fill_and_forget_leave_the_books_right(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    stop = threading.Event()

    def until_stopped(act: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            while not stop.is_set():
                act()

        return run

    acts = (
        cache.clear,
        remembered,
        lambda: fill(cache, range(40)),
        lambda: cache.forget_object(REALM, [ObjectId(3), ObjectId(20)]),
    )
    threads = [threading.Thread(target=until_stopped(act)) for act in acts]
    for thread in threads:
        thread.start()
    for _ in range(100):
        fill(cache, range(20))
    stop.set()
    for thread in threads:
        thread.join()
    for number in range(40):
        cache.forget_object(REALM, [ObjectId(number)])

    assert (cache.statistics().weight, cache.statistics().entries) == (0, 0)
    fill(cache, range(30))
    assert remembered() == list(range(20, 30))


def test_hits_of_many_threads_are_all_counted(cache: Cache) -> None:
    fill(cache, range(1))
    threads = [threading.Thread(target=lambda: [cache.find_object(REALM, ObjectId(0)) for _ in range(5000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert cache.statistics().hits == 20_000


def test_hit_takes_less_than_two_microseconds(rows: RealmStore) -> None:
    rows.write_objects([(ObjectId(5), Note(text="hello"))])
    seconds = min(timeit.repeat(lambda: rows.read_object(ObjectId(5), Note), number=1000, repeat=30)) / 1000

    assert seconds < 2e-6


SHAPES: dict[str, Callable[[int], StoredObject]] = {
    "a number": lambda n: Note(number=n),
    "a large field of bytes": lambda n: Note(data=bytes([n % 256]) * 100_000),
    "text beyond Latin": lambda n: Note(text=f"h\xe9llo \U0001f600 {n}" * 300),
    "many small values": lambda n: Note(more={f"key {i} of {n}": i + 1000 for i in range(1000)}),
    "few small values": lambda n: Note(more={f"key {i}": i for i in range(20)}),
    "dictionaries and lists": lambda n: Note(
        more={f"{i}": {"a": i, "b": [n, i * 1.5, "x" * 10], "c": None} for i in range(99)}
    ),
}


def filled_with(cache: Cache, make: Callable[[int], StoredObject]) -> None:
    for number in range(1000, 1_000_000):
        made = make(number)
        name, envelope = encode_object(ObjectId(number), made)
        read = decode_object(ObjectId(number), name, envelope, type(made), realm="acme")
        cache.put_object(REALM, [(ObjectId(number), read)], cache.ticket())
        if cache.statistics().evictions:
            return


@pytest.fixture
def traced() -> Iterator[Callable[[], int]]:
    """What was allocated since the test began and is still there."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    yield lambda: (gc.collect(), tracemalloc.get_traced_memory()[0] - before)[1]
    tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize("shape", long_but_for({"a large field of bytes", "few small values"}, SHAPES))
def test_full_cache_takes_a_quarter_to_a_tenth_more(clock: FakeClock, traced: Callable[[], int], shape: str) -> None:
    full = make_cache(clock, 16 * MIB)
    filled_with(full, SHAPES[shape])

    assert 0.25 < traced() / full.statistics().budget < 1.1


@pytest.mark.long
@pytest.mark.parametrize("every", long_but_for({20}, [2, 20]))
def test_small_objects_do_not_make_large_ones_seem_small(clock: FakeClock, traced: Callable[[], int], every: int) -> None:
    full = make_cache(clock, 4 * MIB)
    number = 0
    while full.statistics().evictions < 300:
        number += 1
        made = Note(more={"": [{} for _ in range(450)]}) if random.random() * every < 1 else Note(text="ab")
        name, envelope = encode_object(ObjectId(number), made)
        read = decode_object(ObjectId(number), name, envelope, Note, realm="acme")
        full.put_object(REALM, [(ObjectId(number), read)], full.ticket())

    assert 0.25 < traced() / full.statistics().budget < 1.2


@pytest.mark.parametrize("moves", long_but_for({0}, [0, 100]))
def test_cache_full_of_references_keeps_its_budget_too(clock: FakeClock, traced: Callable[[], int], moves: int) -> None:
    full = make_cache(clock, 4 * MIB)
    number = 1000
    while not full.statistics().evictions:
        number += 1
        left = tuple(ReferenceMove(ObjectId((number << 22) + i), Micros((number << 30) + i)) for i in range(moves))
        pointer, version, created = ObjectId(number << 20), number << 21, Micros(number << 22)
        row = Reference(realm=REALM, name=f"{number}", pointer=pointer, version=version, created=created, moves=left)
        full.put_reference(row, full.ticket())

    assert 0.7 < traced() / full.statistics().budget < 1.1


def test_object_is_asked_for_anew_once_its_type_forbids_remembering(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock
) -> None:
    faulty.write_objects([(ObjectId(5), Fleeting())])
    faults.calls.clear()
    clock.advance(10)
    faulty.read_object(ObjectId(5), Fleeting)
    assert faults.calls == []
    clock.advance(0.1)
    for _ in range(3):
        faulty.read_object(ObjectId(5), Fleeting)

    assert faults.calls == ["read_objects"]


def test_object_of_a_type_never_remembered_is_always_asked_for(faulty: RealmStore, faults: FaultyBackend) -> None:
    faulty.write_objects([(ObjectId(5), Uncached())])
    faults.calls.clear()
    for _ in range(3):
        faulty.read_object(ObjectId(5), Uncached)

    assert faults.calls == ["read_objects"] * 3


def test_absence_is_not_remembered_unless_the_type_says_so(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.calls.clear()
    for _ in range(3):
        faulty.find_object(ObjectId(5), Note)

    assert faults.calls == ["read_objects"] * 3


def test_absence_is_remembered_as_long_as_its_type_says(faulty: RealmStore, faults: FaultyBackend, clock: FakeClock) -> None:
    faults.calls.clear()
    for _ in range(3):
        assert faulty.find_object(ObjectId(5), Sought) is None
        assert faulty.read_many([ObjectId(5)], Sought) == [None]
    assert faults.calls == ["read_objects"]

    faulty.find_object(ObjectId(5), Note)
    assert faults.calls == ["read_objects"] * 2
    clock.advance(10.1)
    faulty.find_object(ObjectId(5), Sought)
    assert faults.calls == ["read_objects"] * 3


@pytest.mark.parametrize("value", [Sought(), Uncached()], ids=["remembered", "not remembered"])
def test_write_is_seen_in_spite_of_a_remembered_absence(rows: RealmStore, value: StoredObject) -> None:
    rows.find_object(ObjectId(5), Sought)
    rows.write_objects([(ObjectId(5), value)])

    assert rows.store.cache.is_absent(rows.key, ObjectId(5), within_seconds=10) is False


def test_insert_is_seen_in_spite_of_a_remembered_absence(rows: RealmStore) -> None:
    rows.find_object(ObjectId(5), Sought)
    rows.insert_object(ObjectId(5), Counter())

    assert rows.store.cache.is_absent(rows.key, ObjectId(5), within_seconds=10) is False


@pytest.mark.parametrize("before", [True, False], ids=["not applied", "applied"])
def test_write_of_unclear_outcome_drops_a_remembered_absence(faulty: RealmStore, faults: FaultyBackend, before: bool) -> None:
    faulty.find_object(ObjectId(5), Sought)
    faults.fail("write_objects", before=before)
    with pytest.raises(Exception, match="injected"):
        faulty.write_objects([(ObjectId(5), Sought())])

    assert (faulty.find_object(ObjectId(5), Sought) is None) is before


def test_handle_without_the_cache_does_not_believe_a_remembered_absence(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.calls.clear()
    faulty.find_object(ObjectId(5), Sought)
    judge = faulty.without_cache(budget_bytes=MIB)
    for _ in range(2):
        judge.find_object(ObjectId(5), Sought)

    assert faults.calls == ["read_objects"] * 3


def test_reference_is_asked_for_once_within_its_time_to_live(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock
) -> None:
    made = faulty.create_reference("branch")
    faults.calls.clear()
    clock.advance(faulty.settings.reference_ttl_seconds)

    assert faulty.find_reference("branch") == made
    assert faults.calls == []
    clock.advance(1)
    assert faulty.find_reference("branch") == made
    assert faults.calls == ["read_references"]


def test_fresh_read_goes_past_the_cache(faulty: RealmStore, faults: FaultyBackend) -> None:
    faulty.create_reference("branch")
    faults.calls.clear()
    faulty.find_reference("branch", fresh=True)

    assert faults.calls == ["read_references"]


def test_absence_of_a_reference_is_never_remembered(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.calls.clear()
    for _ in range(2):
        faulty.find_reference("branch")

    assert faults.calls == ["read_references"] * 2


def test_older_version_never_replaces_a_newer_one(rows: RealmStore) -> None:
    old = rows.create_reference("branch", ObjectId(1))
    new = rows.advance_reference(old, ObjectId(2))
    rows.store.cache.put_reference(old, rows.store.cache.ticket())

    assert rows.find_reference("branch") == new


class LateBackend(MemoryBackend):
    """What others do between the moment that the database answers a read and the moment that the answer arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def _arrive(self) -> None:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()

    def read_references(self, realm: RealmKey, names: object) -> list[Reference | None]:
        rows = super().read_references(realm, names)  # type: ignore[arg-type]
        self._arrive()
        return rows

    def read_objects(self, realm: RealmKey, keys: object) -> list[ObjectRow | None]:
        rows = super().read_objects(realm, keys)  # type: ignore[arg-type]
        self._arrive()
        return rows


@pytest.fixture
def late() -> LateBackend:
    return LateBackend()


@pytest.fixture
def late_faults(late: LateBackend) -> FaultyBackend:
    return FaultyBackend(late)


@pytest.fixture
def late_rows(late_faults: FaultyBackend, settings: Settings, clock: FakeClock) -> Iterator[RealmStore]:
    """A realm with a reference that nobody remembers, read by somebody whose answer takes its time. The cache is small: tests fill it."""
    small = dataclasses.replace(settings, cache_bytes=1 << 20)
    with Store(late_faults, url="memory://", settings=small, clock=clock) as store:  # type: ignore[arg-type]
        rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        rows.create_reference("branch", ObjectId(1))
        store.cache.clear()
        yield rows


def evict_all(cache: Cache) -> None:
    before = cache.statistics()
    for number in range(1, 100):
        cache.put_object(RealmKey(99), [(ObjectId(number), Note(data=b"x" * (before.budget // 4)))], cache.ticket())
    assert cache.statistics().evictions >= before.entries


def advance(rows: RealmStore) -> Reference:
    seen = rows.store.backend.read_references(rows.key, ["branch"])[0]
    assert seen is not None
    return rows.advance_reference(seen, ObjectId(2))


def test_reader_who_comes_late_does_not_hide_a_later_swap(late_rows: RealmStore, late: LateBackend) -> None:
    late.meanwhile = lambda: advance(late_rows)
    late_rows.find_reference("branch")

    assert late_rows.find_reference("branch").pointer == 2  # type: ignore[union-attr]


def test_reader_after_an_evicted_swap_brings_no_old_value(late_rows: RealmStore, late: LateBackend) -> None:
    late.meanwhile = lambda: (advance(late_rows), evict_all(late_rows.store.cache))
    late_rows.find_reference("branch")

    assert late_rows.find_reference("branch").pointer == 2  # type: ignore[union-attr]


def test_reader_after_anothers_evicted_swap_brings_no_old_value(
    late_rows: RealmStore, late: LateBackend, settings: Settings, clock: FakeClock
) -> None:
    other = Store(late, url="memory://", settings=settings, clock=clock).rows(late_rows.realm, late_rows.key)
    late.meanwhile = lambda: (advance(other), late_rows.find_row("branch"), evict_all(late_rows.store.cache))
    late_rows.find_reference("branch")

    assert late_rows.find_reference("branch").pointer == 2  # type: ignore[union-attr]


def test_reader_after_an_unclear_swap_brings_no_old_value(
    late_rows: RealmStore, late: LateBackend, late_faults: FaultyBackend
) -> None:
    def swap_unclearly() -> None:
        late_faults.fail("swap_reference", before=False)
        with pytest.raises(Exception, match="injected"):
            advance(late_rows)

    late.meanwhile = swap_unclearly
    late_rows.find_reference("branch")

    assert late_rows.find_reference("branch").pointer == 2  # type: ignore[union-attr]


def test_object_read_while_a_swap_fails_is_dropped(late_rows: RealmStore, late_faults: FaultyBackend) -> None:
    def fail_after_a_read() -> None:
        late_rows.find_row("branch")
        raise UnavailableError("injected")

    seen = late_rows.find_row("branch")
    assert seen is not None
    late_faults.intervene("swap_reference", fail_after_a_read)
    with pytest.raises(UnavailableError):
        late_rows.advance_reference(seen, ObjectId(2))

    assert late_rows.store.cache.find_reference(late_rows.key, "branch") is None


def test_swap_that_is_late_itself_brings_no_old_value_back(late_rows: RealmStore) -> None:
    cache = late_rows.store.cache
    seen = late_rows.find_row("branch")
    assert seen is not None
    ticket = cache.ticket()
    newer = late_rows.advance_reference(late_rows.advance_reference(seen, ObjectId(2)), ObjectId(3))
    evict_all(cache)
    cache.put_reference(dataclasses.replace(seen, version=seen.version + 1, pointer=ObjectId(2)), ticket, is_written=True)

    assert late_rows.find_reference("branch") == newer


def test_time_to_live_of_a_reference_begins_with_the_question(
    late_rows: RealmStore, late: LateBackend, late_faults: FaultyBackend, clock: FakeClock
) -> None:
    ttl = late_rows.settings.reference_ttl_seconds
    late.meanwhile = lambda: clock.advance(ttl / 2)
    late_rows.find_reference("branch")
    late_faults.calls.clear()
    clock.advance(ttl / 2 + 1)
    late_rows.find_reference("branch")

    assert late_faults.calls == ["read_references"]


def test_reader_after_a_deletion_does_not_bring_it_back(late_rows: RealmStore, late: LateBackend) -> None:
    keys = late_rows.write_objects([(ObjectId(5), Note())])
    late_rows.store.cache.clear()
    late.meanwhile = lambda: late_rows.delete_unchanged(keys)
    late_rows.find_object(ObjectId(5), Note)

    assert late_rows.find_object(ObjectId(5), Note) is None


@pytest.mark.parametrize("value", [Sought(), Uncached()], ids=["remembered", "not remembered"])
def test_absence_read_before_a_write_is_not_remembered_after(
    late_rows: RealmStore, late: LateBackend, value: StoredObject
) -> None:
    late.meanwhile = lambda: late_rows.write_objects([(ObjectId(5), value)])
    late_rows.find_object(ObjectId(5), Sought)

    assert late_rows.find_object(ObjectId(5), StoredObject) == value
    assert late_rows.store.cache.is_absent(late_rows.key, ObjectId(5), within_seconds=10) is False


def test_absence_read_before_an_evicted_write_is_not_remembered(late_rows: RealmStore, late: LateBackend) -> None:
    late.meanwhile = lambda: (late_rows.write_objects([(ObjectId(5), Sought())]), evict_all(late_rows.store.cache))
    late_rows.find_object(ObjectId(5), Sought)

    assert late_rows.find_object(ObjectId(5), Sought) == Sought()


def test_absence_read_before_an_insert_is_not_remembered_after(late_rows: RealmStore, late: LateBackend) -> None:
    late.meanwhile = lambda: late_rows.insert_object(ObjectId(5), Counter())
    late_rows.find_object(ObjectId(5), Sought)

    assert late_rows.store.cache.is_absent(late_rows.key, ObjectId(5), within_seconds=10) is False


def test_object_read_before_a_clearing_is_not_remembered(late_rows: RealmStore, late: LateBackend) -> None:
    late.meanwhile = late_rows.store.cache.clear
    late_rows.find_reference("branch")

    assert late_rows.store.cache.statistics().entries == 0


def test_realm_is_forgotten_without_the_others(store: Store, rows: RealmStore) -> None:
    other = store.rows(RealmId("other"), RealmKey(store.new_id()))
    rows.create_reference("branch", ObjectId(1))
    other.create_reference("branch", ObjectId(2))
    store.cache.forget_realm(rows.key)

    assert store.cache.find_reference(rows.key, "branch") is None
    assert store.cache.find_reference(other.key, "branch") is not None


def test_object_read_before_its_realm_was_forgotten_is_not_remembered(late_rows: RealmStore, late: LateBackend) -> None:
    late.meanwhile = lambda: late_rows.store.cache.forget_realm(late_rows.key)  # type: ignore[attr-defined]  # a store has one
    late_rows.find_reference("branch")

    assert late_rows.store.cache.find_reference(late_rows.key, "branch") is None
