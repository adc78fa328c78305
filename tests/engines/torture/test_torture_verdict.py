"""The verdict itself: what a storm may leave to those who come after it is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from torture_actors import Actor, Stage
from torture_keepers import PHOENIX
from torture_storm import torture
from torture_users import FORGETFUL, lake
from torture_verdict import faults_of

from forked_children import run_forked
from headwater.catalogs import Catalogs
from headwater.commits import read_collection
from headwater.errors import UnavailableError, UnknownOutcomeError
from headwater.gc import collect_realm
from headwater.realms import RealmRegistry, bootstrap


def leave_interrupted_sweep(stage: Stage) -> None:
    """Delete a few tags, and end a collection in its sweep: it is too early for it to remove their names."""
    actor = Actor(stage, "interrupted.1")
    rows = RealmRegistry(actor.store).open_realm(FORGETFUL)

    def fence() -> None:
        record = read_collection(rows)
        if record is not None and record.value.sweep is not None:
            raise UnavailableError("the database is away")

    catalog = lake(actor, FORGETFUL)
    for tag in ("one", "two", "three", "four"):
        catalog.create_tag(tag)
        catalog.delete_tag(tag)
    with pytest.raises(UnavailableError, match="away"):
        collect_realm(actor.store, FORGETFUL, fence=fence)
    actor.store.close()


def test_sweep_that_a_storm_interrupted_is_no_fault(tmp_path: Path) -> None:
    stage = torture(f"sqlite:///{tmp_path}/store.db", tmp_path, seconds=0, roles={})
    run_forked(1, lambda _: leave_interrupted_sweep(stage))

    assert faults_of(stage) == []


def leave_interrupted_catalog(stage: Stage) -> None:
    """List a catalog in the realm that comes and goes, and make none of its references."""
    actor = Actor(stage, "interrupted.1")
    realms = RealmRegistry(actor.store)
    realms.create_realm(PHOENIX)
    bootstrap(realms, PHOENIX, stage.root)
    catalogs = Catalogs(realms.open_realm(PHOENIX))
    for swap in ("write_and_swap", "swap_reference"):  # by the seed it is one or the other that an actor's commits call
        actor.faults.fail(swap, at=2, times=1000)
    with pytest.raises(UnknownOutcomeError, match="may be incomplete"):
        catalogs.create_catalog("lake", base_location="s3://lake/")
    actor.faults.heal()
    actor.store.close()


def test_catalog_that_a_storm_interrupted_is_no_fault(tmp_path: Path) -> None:
    stage = torture(f"sqlite:///{tmp_path}/store.db", tmp_path, seconds=0, roles={})
    run_forked(1, lambda _: leave_interrupted_catalog(stage))

    assert faults_of(stage) == []
