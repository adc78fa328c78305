"""What a resource waits for is noticed as soon as it is there: a store that is back, another's consent, a name that became free."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from desks import Desk, make_catalog, make_realm

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import CorruptionError
from headwater.realms import RealmRegistry
from headwater.reconcile import release_realm
from headwater.store import Store
from headwater_operator.resource.reconciler import SECRET_SECONDS
from headwater_operator.resource.waiting_resources import ASK_SECONDS, KEPT_OFF_SECONDS, STORE, Contention, StoreOutage
from headwater_operator.runtime.informer_cache import ResourceKey
from headwater_operator.runtime.workqueue import WorkQueue

pytestmark = pytest.mark.long

ACME, OTHER = ResourceKey("Realm", "default", "acme"), ResourceKey("Realm", "default", "other")
REALMS = [f"realm-{number}" for number in range(5)]


@pytest.fixture
def faults(memory_store: Store) -> FaultyBackend:
    return FaultyBackend(memory_store.backend)


@pytest.fixture
def faulty_desk(faults: FaultyBackend, memory_store: Store, make_desk: Callable[..., Desk]) -> Desk:
    """Realms that are ready, on a store whose backend fails when told to."""
    desk = make_desk(Store(faults, url=memory_store.url, settings=memory_store.settings, clock=memory_store.clock))
    desk.apply(*map(make_realm, REALMS))
    desk.work()
    return desk


@pytest.fixture
def rival(desk: Desk, make_desk: Callable[..., Desk]) -> Desk:
    """Who applies resources in another namespace that the same operator looks after."""
    there = make_desk()
    there.namespace = desk.namespace.cluster.make_namespace("other")
    desk.others = (there.namespace,)
    return there


def passes(desk: Desk, *, kind: str = "Realm") -> list[ResourceKey]:
    return [key for key in desk.worked if key.kind == kind]


def manager_of(desk: Desk, realm_id: str = "acme") -> tuple[str, str]:
    manager = RealmRegistry(desk.store).read_realm(realm_id).manager
    return (manager.namespace, manager.name) if manager else ("", "")


# The store


def test_resources_are_looked_at_once_the_store_is_back(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faults.fail(times=10_000)
    faulty_desk.go_on(900, step=5)
    assert {faulty_desk.reason("Realm", name) for name in REALMS} == {("Unknown", "StoreUnavailable")}

    faults.heal()
    faulty_desk.go_on(ASK_SECONDS)

    assert all(faulty_desk.is_ready("Realm", name) for name in REALMS)


def test_store_that_is_away_is_asked_by_one_alone(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faulty_desk.go_on(300, step=60)
    faults.fail(times=10_000)
    faulty_desk.go_on(330, step=5)
    faulty_desk.worked.clear()

    faulty_desk.go_on(600, step=5)

    assert passes(faulty_desk, kind="Store") == [STORE] * round(600 / ASK_SECONDS)


def test_store_that_holds_damage_is_not_away(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faults.fail(times=10_000, fault=CorruptionError("a row is damaged"))
    faulty_desk.go_on(400, step=20)

    assert {faulty_desk.reason("Realm", name)[1] for name in REALMS} == {"Unreadable"}
    assert STORE not in faulty_desk.worked


def test_store_that_answers_is_not_asked(faulty_desk: Desk) -> None:
    faulty_desk.go_on(900, step=30)

    assert STORE not in faulty_desk.worked


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[ResourceKey]:
    return WorkQueue[ResourceKey](clock)


@pytest.fixture
def outage(faults: FaultyBackend, memory_store: Store, queue: WorkQueue[ResourceKey], clock: FakeClock) -> StoreOutage:
    store = Store(faults, url=memory_store.url, settings=memory_store.settings, clock=clock)
    return StoreOutage(store, queue)


def ready_keys(queue: WorkQueue[ResourceKey]) -> list[ResourceKey]:
    return list(iter(lambda: taken(queue), None))


def taken(queue: WorkQueue[ResourceKey]) -> ResourceKey | None:
    if (key := queue.take_key(timeout=0)) is not None:
        queue.mark_done(key)
    return key


def test_resource_that_fails_alone_goes_by_its_own_pauses(outage: StoreOutage, queue: WorkQueue[ResourceKey]) -> None:
    outage.record_outage(ACME, is_away=True, began=0.0)
    assert ready_keys(queue) == [STORE]

    outage.ask()

    assert ready_keys(queue) == []


def test_look_from_before_the_stores_return_is_repeated(
    outage: StoreOutage, queue: WorkQueue[ResourceKey], faults: FaultyBackend, clock: FakeClock
) -> None:
    began = clock.monotonic()
    faults.fail(times=10_000)
    outage.record_outage(OTHER, is_away=True, began=began)
    outage.ask()
    faults.heal()
    clock.advance(ASK_SECONDS)
    outage.ask()
    ready_keys(queue)

    outage.record_outage(ACME, is_away=True, began=began)
    outage.record_outage(OTHER, is_away=True, began=clock.monotonic())

    assert ready_keys(queue) == [ACME, STORE]


# What another one has


def test_realm_released_to_another_namespace_is_taken_at_once(desk: Desk, rival: Desk) -> None:
    desk.apply(make_realm())
    rival.apply(make_realm("taker", realmId="acme", annotations={"headwater.dev/adopt": "acme"}))
    desk.go_on(60)
    assert manager_of(desk) == (desk.namespace.name, "acme")

    desk.annotate("Realm", "acme", release_to=f"{rival.namespace.name}/taker")
    desk.work()

    assert manager_of(desk) == (rival.namespace.name, "taker")
    assert rival.is_ready("Realm", "taker")


def test_realm_that_lost_its_realm_says_so_at_once(desk: Desk) -> None:
    desk.apply(make_realm())
    desk.work()

    desk.apply(make_realm("rival", realmId="acme", annotations={"headwater.dev/adopt": "acme"}))
    desk.work()

    assert desk.is_ready("Realm", "rival")
    assert desk.reason("Realm", "acme") == ("False", "ManagedByAnother")


def test_catalog_that_another_one_leaves_behind_is_adopted_at_once(desk: Desk) -> None:
    second = make_catalog("second", annotations={"headwater.dev/adopt": "acme/sales"})
    second["spec"]["name"] = "sales"
    desk.apply(make_realm(), make_catalog())
    desk.work()
    desk.apply(second)
    desk.work()
    assert desk.reason("Catalog", "second") == ("False", "ManagedByAnother")

    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.is_ready("Catalog", "second")


def test_change_during_the_look_of_one_kept_off_counts() -> None:
    contention = Contention()
    with contention.record_look() as since:
        assert contention.change(ACME, "acme") == []
        assert contention.record_contention(OTHER, "acme", is_kept_off=True, since=since)
    with contention.record_look() as since:
        assert not contention.record_contention(OTHER, "acme", is_kept_off=True, since=since)
    assert contention.change(ACME, "acme") == [OTHER]


def test_changes_are_forgotten_with_the_looks_that_began_before_them() -> None:
    contention = Contention()
    with contention.record_look() as before:
        contention.change(ACME, "acme")
        with contention.record_look():
            contention.change(ACME, "other")
        assert contention.record_contention(OTHER, "acme", is_kept_off=True, since=before)
        assert contention.record_contention(OTHER, "other", is_kept_off=True, since=before)

    assert not contention._changed


def test_two_that_keep_each_other_off_do_not_spin(desk: Desk) -> None:
    desk.apply(make_realm(), make_realm("rival", realmId="acme"))
    desk.work()
    desk.worked.clear()

    desk.go_on(240, step=2)

    assert 240 / (1.2 * KEPT_OFF_SECONDS) <= len(passes(desk)) <= 240 / (0.9 * KEPT_OFF_SECONDS)
    assert {key.name for key in passes(desk)} == {"rival"}


def test_many_that_are_kept_off_are_looked_at_less_often() -> None:
    contention = Contention()
    for number in range(4000):
        contention.record_contention(
            ResourceKey("Realm", "default", f"realm-{number}"), f"realm-{number}", is_kept_off=True, since=0
        )

    assert contention.seconds_between_looks == 2000


def test_realm_released_by_the_command_line_is_taken_soon(desk: Desk, rival: Desk) -> None:
    desk.apply(make_realm())
    rival.apply(make_realm("taker", realmId="acme", annotations={"headwater.dev/adopt": "acme"}))
    desk.work()
    release_realm(desk.store, "acme")

    desk.go_on(1.2 * KEPT_OFF_SECONDS)

    assert manager_of(desk) == (rival.namespace.name, "taker")


# A Secret in the way


@pytest.fixture
def hindered(desk: Desk) -> Desk:
    """A Realm whose Secret has a name that somebody else uses."""
    desk.put_in_the_way()
    desk.apply(make_realm())
    desk.work()
    assert desk.reason("Realm", "acme", "Stalled") == ("True", "Refused")
    return desk


def test_secret_out_of_the_way_is_noticed_within_seconds(hindered: Desk) -> None:
    hindered.go_on(400, step=10)
    hindered.delete("Secret", "acme-root-credentials")

    hindered.go_on(1.1 * SECRET_SECONDS)

    assert hindered.is_ready("Realm", "acme")


def test_secret_in_the_way_is_told_of_once(hindered: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    hindered.http.fail(None)

    hindered.go_on(200, step=10)

    assert [reason for reason, _ in hindered.namespace.events("acme")].count("Refused") == 1
    assert not [line for line in capsys.readouterr().out.splitlines() if "[debug" not in line]
