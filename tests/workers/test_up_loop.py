"""The loop of `up` goes on, whatever the store does."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.realms import RealmRegistry
from headwater.reconcile import FileCredentials, known_realms
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_workers.up_loop import Convergence, ManifestFolder
from headwater_workers.worker_process import WorkerProcess

MANIFEST = "apiVersion: headwater.dev/v1alpha1\nkind: Realm\nmetadata: {name: acme}\n"


class EnoughError(Exception):
    """The test has seen enough passes."""


class FewPasses(WorkerProcess):
    """A worker that never starts, and that ends the loop after a number of passes."""

    def __init__(self, passes: int) -> None:
        self.left = passes

    def keep_alive(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise EnoughError


@pytest.mark.parametrize("call", range(1, 12))
def test_up_goes_on_when_the_store_is_silent(call: int, tmp_path: Path, settings: Settings, clock: FakeClock) -> None:
    (tmp_path / "acme.yaml").write_text(MANIFEST)
    faults = FaultyBackend(open_store("memory://").backend)
    store = Store(faults, url="memory://", settings=settings, clock=clock)
    folder = ManifestFolder(tmp_path, settings, lambda: known_realms(store))
    told: list[str] = []
    convergence = Convergence(store, folder, FileCredentials(tmp_path / "keys"), FewPasses(5), told.append)
    faults.fail(at=call)
    with pytest.raises(EnoughError):
        convergence.stay()

    assert RealmRegistry(store).read_realm("acme").state == "ACTIVE", told


def test_outage_is_told_when_it_begins_and_ends(tmp_path: Path, settings: Settings, clock: FakeClock) -> None:
    (tmp_path / "acme.yaml").write_text(MANIFEST)
    faults = FaultyBackend(open_store("memory://").backend)
    store = Store(faults, url="memory://", settings=settings, clock=clock)
    folder = ManifestFolder(tmp_path, settings, lambda: known_realms(store))
    told: list[str] = []
    convergence = Convergence(store, folder, FileCredentials(tmp_path / "keys"), FewPasses(6), told.append)
    faults.fail("read_references", times=3)
    with pytest.raises(EnoughError):
        convergence.stay()

    of_the_store = [line for line in told if not line.startswith("Realm acme:")]
    assert of_the_store == ["injected: trying again", "the store answers again"]
