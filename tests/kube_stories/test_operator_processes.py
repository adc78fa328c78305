"""The operator as a process: killed, stopped, doubled, cut off, and started again."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis_server import Redis
from stories import Story, catalog_body, kept_credentials, realm_body

from headwater.catalogs import Catalogs
from headwater.realms import RealmRegistry, RealmState, find_root, verify_secret
from headwater.store import Store
from kube_fixtures import Installation
from kubetest import Namespace, Operator, Worker, wait_for

pytestmark = [pytest.mark.long, pytest.mark.rare(2)]
QUICK_LEASE = {
    "OPERATOR_LEASE_DURATION": "5s",
    "OPERATOR_LEASE_RENEW_DEADLINE": "4s",
    "OPERATOR_LEASE_RENEW": "1s",
    "OPERATOR_LEASE_RETRY": "500ms",
}


@pytest.fixture(autouse=True)
def quick_lease(installation: Installation) -> None:
    installation.changes.update(QUICK_LEASE)


@pytest.fixture
def store(installation: Installation) -> Iterator[Store]:
    with installation.open_store() as opened:
        yield opened


@pytest.fixture
def own(namespace: Namespace, store: Store) -> Story:
    """A story in a namespace where nothing runs yet."""
    return Story(namespace, store, "acme")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis that does not run yet."""
    made = Redis.on_a_free_port(tmp_path)
    yield made
    made.stop()


def test_operator_that_is_killed_is_replaced_with_nothing_half_done(
    own: Story, operator: Callable[..., Operator], store: Store
) -> None:
    dice = random.Random(dice_seed := random.randrange(10_000))
    names = [f"realm-{number}" for number in range(8)]
    own.namespace.apply(*map(realm_body, names), *(catalog_body(f"lake-{name}", name) for name in names))
    for _ in range(4):
        started = operator(wait=False, OPERATOR_LEADER_ELECTION="false")  # no Lease to be waited for
        wait_for(lambda started=started: started.is_leader(), why=started.last_words)
        time.sleep(dice.random() * 0.8)  # wherever it is by then
        started.kill()
    operator(OPERATOR_LEADER_ELECTION="false")
    for name in names:
        own.wait("Catalog", "Ready", name=f"lake-{name}")

    assert [realm.state for realm in RealmRegistry(store).list_realms()] == [RealmState.ACTIVE] * len(names), dice_seed
    for name in names:
        root = find_root(RealmRegistry(store), name)
        assert root is not None and verify_secret(root.credentials, kept_credentials(own.namespace, name)), (name, dice_seed)
        assert [catalog.name for catalog in Catalogs(RealmRegistry(store).open_realm(name)).list_catalogs()] == [
            f"lake-{name}"
        ], dice_seed


def test_operator_that_is_started_again_writes_nothing(own: Story, operator: Callable[..., Operator]) -> None:
    first = operator()
    names = [f"realm-{number}" for number in range(5)]
    own.namespace.apply(*map(realm_body, names))
    for name in names:
        own.wait("Realm", "Ready", name=name)
        own.namespace.wait_until("Realm", name, lambda body: body["status"]["maintenance"].get("nextTime"))
    first.stop()
    before = {name: own.namespace.read("Realm", name) for name in names}
    second = operator()
    wait_for(lambda: second.passes() >= len(names), why=second.last_words)

    assert {name: own.namespace.read("Realm", name) for name in names} == before


def test_operator_that_is_asked_to_end_does_so_in_order(operator: Callable[..., Operator]) -> None:
    started = operator()

    assert started.stop() == 0


def test_standby_goes_on_when_the_leader_ends(own: Story, operator: Callable[..., Operator]) -> None:
    leader = operator()
    standby = operator(wait=False)
    wait_for(standby.alive, why=standby.last_words)
    own.make_realm()
    assert (leader.is_leader(), standby.is_leader()) == (True, False)
    leader.stop()
    own.namespace.apply(realm_body("later"))

    assert own.wait("Realm", "Ready", name="later")
    assert standby.is_leader()


def test_leader_that_slept_too_long_ends_before_it_does_anything(own: Story, operator: Callable[..., Operator]) -> None:
    leader = operator()
    own.make_realm()
    standby = operator(wait=False)
    wait_for(standby.alive, why=standby.last_words)
    leader.pause()
    wait_for(standby.is_leader, why=standby.last_words)
    own.apply_realm(properties={"owner": "sales"})
    own.wait("Realm", "Ready")
    leader.resume()

    wait_for(lambda: not leader.is_running, why=leader.last_words)
    assert leader.popen.returncode != 0
    assert standby.is_leader()
    assert own.realm().properties == {"owner": "sales"}


def test_deletion_while_no_operator_ran_is_done_afterwards(own: Story, operator: Callable[..., Operator]) -> None:
    first = operator()
    own.make_realm()
    first.stop()
    own.kubectl("delete", "realm", own.name, "--wait=false")
    assert own.namespace.find("Realm", own.name) is not None
    operator()

    own.namespace.wait_until_gone("Realm", own.name)
    assert own.realm().manager is None


def test_protected_realm_cannot_be_deleted_while_no_operator_runs(own: Story) -> None:
    own.apply_realm(deletionProtection=True)

    assert "is protected from deletion" in own.kubectl("delete", "realm", own.name, "--wait=false", check=False)
    assert own.namespace.find("Realm", own.name) is not None


def test_purge_outlives_its_operator_and_its_worker(
    own: Story, operator: Callable[..., Operator], worker: Callable[..., Worker]
) -> None:
    first = operator(OPERATOR_LEADER_ELECTION="false")
    own.make_realm({"headwater.dev/confirm-purge": own.name}, deletionPolicy="Purge")
    own.kubectl("delete", "realm", own.name, "--wait=false")
    own.namespace.wait_until("Realm", own.name, lambda body: body["status"]["state"] == "PURGING")
    first.kill()
    worker()
    wait_for(lambda: own.realm().state is RealmState.PURGED)
    operator(OPERATOR_LEADER_ELECTION="false")

    own.namespace.wait_until_gone("Realm", own.name)
    assert own.find_realm() is None


def test_store_that_cannot_be_written_is_told_and_waited_for(
    own: Story, operator: Callable[..., Operator], tmp_path: Path
) -> None:
    operator()
    own.make_realm()
    lock = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    own.apply_realm(properties={"owner": "sales"})
    told = own.namespace.wait_until(
        "Realm",
        own.name,
        lambda body: any(one["status"] != "True" for one in body["status"]["conditions"] if one["type"] == "Ready"),
        seconds=60,
    )
    lock.execute("ROLLBACK")
    lock.close()

    assert told["status"]["message"]
    own.wait("Realm", "Ready", seconds=60)
    assert own.realm().properties == {"owner": "sales"}


def test_api_server_that_does_not_answer_is_waited_for(own: Story, operator: Callable[..., Operator]) -> None:
    started = operator(OPERATOR_LEASE_DURATION="15s", OPERATOR_LEASE_RENEW_DEADLINE="10s")
    own.make_realm()
    with own.namespace.cluster.is_silent():
        time.sleep(4)
    own.apply_realm(properties={"owner": "sales"})

    own.namespace.wait_until("Realm", own.name, lambda _: own.realm().properties == {"owner": "sales"})
    assert started.is_running


def test_collection_waits_for_a_broker_that_is_away(
    own: Story, operator: Callable[..., Operator], worker: Callable[..., Worker], redis: Redis
) -> None:
    redis.start()
    operator()
    worker(BROKER=redis.url)
    own.make_realm()
    redis.stop()
    own.kubectl("annotate", "realm", own.name, "headwater.dev/run-now=gc")
    waits = own.namespace.wait_until(
        "Realm", own.name, lambda body: [t for t in body["status"].get("tasks", []) if t["kind"] == "gc"]
    )
    redis.start()

    assert waits["status"]["tasks"][0]["state"] == "WAITING"
    own.namespace.wait_until("Realm", own.name, lambda body: body["status"]["maintenance"].get("lastSuccessTime"))
