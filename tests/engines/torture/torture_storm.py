"""A torture: actors on one store that are killed, stopped and woken by the seed for so long, and then come to their end."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path

from torture_actors import Actor, ActorProcess, Role, Stage
from torture_clock import Timeline
from torture_copies import ask_for_copies
from torture_keepers import collect_without_a_task, purge_and_create, work, write_late
from torture_users import FORGETFUL, LAKE, SIDE_BRANCHES, STEADY, count, look_back, move_branches, write

from forked_children import run_forked
from headwater.catalogs import Catalogs
from headwater.realms import HistoryRetention, RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials
from headwater.settings import Settings

__all__ = ["FORGETFUL_COMMITS", "SECONDS", "SEED", "SETTINGS", "torture"]

SECONDS = float(os.environ.get("HEADWATER_TORTURE_SECONDS", "20"))
"""Of the storm itself; what comes before and after takes some seconds more."""
SEED = int(os.environ.get("HEADWATER_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
SPEED = 480.0
"""20 seconds are two hours and forty minutes."""
END_SECONDS = 60.0
FORGETFUL_COMMITS = 3

SETTINGS = Settings(
    commit_timeout_seconds=720,
    commit_backoff_seconds=2.4,
    commit_backoff_limit_seconds=60,
    commit_member_seconds=10,
    index_embedded_bytes=2048,
    index_stripe_bytes=2048,
    realm_handle_ttl_seconds=60,
    writer_grace_seconds=2400,
    reader_grace_seconds=2400,
    purge_hold_seconds=800,
    catalog_hold_seconds=800,
    task_lease_seconds=1200,
    task_heartbeat_seconds=240,
    task_backoff_limit_seconds=300,
    task_attempts=1000,
    reference_commits=5,
    delete_batch=20,
)
"""All of it in the fast time: the graces are 5 seconds of the machine, a lease 2.5, a commit's time-out 1.5."""

ROLES: Mapping[str, Role] = {
    "writer-a": write,
    "writer-b": write,
    "counter-a": count,
    "counter-b": count,
    "mover": move_branches,
    "reader": look_back,
    "worker-a": work,
    "worker-b": work,
    "collector": collect_without_a_task,
    "phoenix": purge_and_create,
    "late": write_late,
    "copier": ask_for_copies,
}


def torture(url: str, folder: Path, *, seconds: float = SECONDS, seed: int = SEED, roles: Mapping[str, Role] = ROLES) -> Stage:
    """Let the actors loose on an empty store, and torment them; returns when all have ended.

    raises        AssertionError for an actor that hung, or ended as none does
    """
    print(f"HEADWATER_SEED={seed} HEADWATER_TORTURE_SECONDS={seconds:g}")  # noqa: T201 - shown with a failure
    timeline = Timeline.before_now(speed=SPEED, seconds=seconds + END_SECONDS)
    root = hash_credentials(new_credentials())
    stage = Stage(url=url, folder=folder, seed=seed, timeline=timeline, settings=SETTINGS, root=root)
    run_forked(1, lambda _: _prepare(stage))
    actors = [ActorProcess(stage, role, name) for name, role in roles.items()]
    for actor in actors:
        actor.start()
    try:
        _torment(actors, random.Random(seed), until=time.monotonic() + seconds)
    finally:
        faults = _end(actors)
    assert not faults, "\n".join(faults)
    return stage


def _prepare(stage: Stage) -> None:
    """The realms that live all the time; by a process of its own, so that the one of the tests opens no store before it forks."""
    actor = Actor(Stage(**{name: getattr(stage, name) for name in Stage.__slots__} | {"fault_share": 0.0}), "preparation.1")
    realms = RealmRegistry(actor.store)
    for realm_id, commits in ((STEADY, 1_000_000), (FORGETFUL, FORGETFUL_COMMITS)):
        retention = HistoryRetention(
            content_commits=commits, content_age_seconds=0, reference_commits=SETTINGS.reference_commits
        )
        realms.create_realm(realm_id, retention=retention)
        assert bootstrap(realms, realm_id, stage.root).state is RealmState.ACTIVE
        rows = realms.open_realm(realm_id)
        Catalogs(rows).create_catalog(LAKE, base_location="s3://lake/")
        for name in SIDE_BRANCHES:
            Catalogs(rows).open_catalog(LAKE).create_branch(name)
    # until an archive can be of no moment before: it would have, as was then, a catalog half made
    actor.clock.sleep(SETTINGS.commit_timeout_seconds + 2 * SETTINGS.clock_bound_seconds)
    actor.store.close()


def _torment(actors: list[ActorProcess], chance: random.Random, *, until: float) -> None:
    """Kill one and let another come, stop one and wake it later, or do nothing for a moment."""
    stopped: dict[ActorProcess, float] = {}
    while time.monotonic() < until:
        time.sleep(chance.uniform(0.05, 0.5))
        for actor in [actor for actor, wake in stopped.items() if time.monotonic() >= wake]:
            del stopped[actor]
            actor.wake()
        victim = chance.choice(actors)
        if victim in stopped:
            continue
        if chance.random() < 0.45:
            victim.kill()
            victim.start()
        elif len(stopped) < 2:
            victim.stop()
            stopped[victim] = time.monotonic() + chance.choice((0.3, 1.0, 3.0, 4.5))  # the last two outlast a lease
    for actor in stopped:
        actor.wake()


def _end(actors: list[ActorProcess]) -> list[str]:
    for actor in actors:
        actor.wake()
        actor.ask_to_end()
    until = time.monotonic() + END_SECONDS
    return [fault for actor in actors if (fault := actor.end(until=until))]
