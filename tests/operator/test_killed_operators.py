"""Operators as processes, killed wherever they are, several times over."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from desks import make_catalog, make_realm

from headwater.catalogs import Catalogs
from headwater.realms import RealmRegistry
from headwater.store import RealmId
from headwater.tasks import TaskQueue
from kube_fixtures import Installation
from kubetest import Namespace
from kubetest.waits import wait_for

REALMS = [f"realm-{n}" for n in range(4)]
ROUNDS = 6


@pytest.fixture
def installation(namespace: Namespace, tmp_path: Path) -> Iterator[Installation]:
    """Its operators do not wait for the Lease of one that was killed."""
    changes = {"OPERATOR_LEADER_ELECTION": "false"}
    made = Installation(namespace.cluster, tmp_path, home=namespace.name, watched=(namespace.name,), changes=changes)
    yield made
    made.end()


@pytest.mark.rare(2)
@pytest.mark.long
def test_operators_killed_at_random_leave_everything_as_declared(installation: Installation, namespace: Namespace) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    for round_ in range(ROUNDS):
        operator = installation.start_operator(wait=False)
        wait_for(lambda said=operator: "everything was listed" in said.said, seconds=60)
        name = REALMS[round_ % len(REALMS)]
        namespace.apply(
            make_realm(name, properties={"round": str(round_)}),
            make_catalog(f"{name}-a", name),
            make_catalog(f"{name}-b", name),
        )
        threading.Event().wait(chance.uniform(0.0, 0.5))  # anywhere in the passes over them
        operator.kill()

    installation.start_operator()
    for name in REALMS:
        namespace.wait_for_condition("Realm", name, "Ready", seconds=60)
        namespace.wait_for_condition("Catalog", f"{name}-a", "Ready", seconds=60)
        namespace.wait_for_condition("Catalog", f"{name}-b", "Ready", seconds=60)

    with installation.open_store() as store:
        realms = RealmRegistry(store)
        assert sorted(realm.id for realm in realms.list_realms() if not realm.id.startswith("::")) == REALMS
        assert [len(Catalogs(realms.open_realm(RealmId(name))).list_catalogs()) for name in REALMS] == [2] * len(REALMS)
        waiting = [(seen.value.realm, seen.value.kind) for seen in TaskQueue(store).list_tasks() if seen.value.is_active]
        assert sorted(waiting) == [(name, "gc") for name in REALMS]
    secrets = namespace.cluster.api.list_resources(namespace.path("Secret"))
    assert sorted(one["metadata"]["name"] for one in secrets) == [f"{name}-root-credentials" for name in REALMS]
