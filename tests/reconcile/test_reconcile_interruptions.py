"""A pass that is killed at any call of the database: the next one, in a new process, ends where an undisturbed one would have."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest
from killed_passes import Process, until_it_lives

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import Catalogs, ImportSpec
from headwater.realms import Credentials, RealmRegistry, RealmState, find_root, verify_secret
from headwater.reconcile import CatalogManifest, FileCredentials, RealmManifest
from headwater.reconcile.manifests import CONFIRM_PURGE, DELETE, RUN_NOW
from headwater.tasks import TaskQueue, TaskState
from tiers import Sample

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.realms.client_credentials._COST", 16)


@pytest.fixture
def make_process(settings: Settings, clock: FakeClock, sink: FileCredentials) -> Callable[[], Process]:
    def make() -> Process:
        sink.remove_credentials("acme", lambda: None)
        return Process(settings, clock, sink)

    return make


def kept(sink: FileCredentials) -> Credentials:
    content = json.loads((sink.folder / "acme.json").read_text())
    return Credentials(content["clientId"], content["clientSecret"])


def test_killed_start_converges_with_one_set_of_credentials(
    sample: Sample,
    make_process: Callable[[], Process],
    make_realm: MakeRealm,
    make_catalog: MakeCatalog,
    initial_import: ImportSpec,
    sink: FileCredentials,
) -> None:
    manifests = (make_realm({RUN_NOW: "gc"}), make_catalog(imports=(initial_import,)))

    def run(killed_at: int) -> bool:
        process = make_process()
        lived = process.run(manifests, killed_at=killed_at)
        assert process.run(manifests)
        assert_is_complete(process.store, sink)
        return lived

    assert until_it_lives(run, sample) > 50


def assert_is_complete(store: Store, sink: FileCredentials) -> None:
    realms = RealmRegistry(store)
    root = find_root(realms, "acme")
    assert realms.read_realm("acme").state is RealmState.ACTIVE
    assert root is not None
    assert verify_secret(root.credentials, kept(sink))
    assert Catalogs(realms.open_realm("acme")).open_catalog("lake").branches()[0].name == "main"
    assert sorted((task.value.kind, task.value.state) for task in TaskQueue(store).list_tasks()) == [
        ("gc", "WAITING"),
        ("import", "WAITING"),
    ]


@pytest.mark.parametrize("stage", ["made inactive", "made to purge", "deleted"])
def test_killed_purge_converges(
    sample: Sample, stage: str, make_process: Callable[[], Process], make_realm: MakeRealm, sink: FileCredentials
) -> None:
    going = make_realm({DELETE: "true", CONFIRM_PURGE: "acme"}, deletion_policy="Purge", purge_hold_seconds=5.0)

    def run(killed_at: int) -> bool:
        process, lived = make_process(), True
        process.run([make_realm()])
        for step in ("made inactive", "made to purge", "deleted"):
            if step == stage:
                lived = process.run([going], killed_at=killed_at)
            assert process.run([going])
            process.clock.advance(6)
            process.purge()
        assert RealmRegistry(process.store).find_realm("acme") is None
        assert not (sink.folder / "acme.json").exists()
        return lived

    assert until_it_lives(run, sample) > 5


def test_killed_deletion_of_a_catalog_converges(
    sample: Sample,
    make_process: Callable[[], Process],
    make_realm: MakeRealm,
    make_catalog: MakeCatalog,
    initial_import: ImportSpec,
) -> None:
    going = make_catalog({DELETE: "true", CONFIRM_PURGE: "acme/lake"}, deletion_policy="Purge", imports=(initial_import,))

    def run(killed_at: int) -> bool:
        process = make_process()
        process.run([make_realm(), make_catalog(imports=(initial_import,))])
        lived = process.run([going], killed_at=killed_at)
        assert process.run([going])
        assert Catalogs(RealmRegistry(process.store).open_realm("acme")).list_catalogs() == []
        assert [task.value.state for task in TaskQueue(process.store).list_tasks(kind="import")] == [TaskState.CANCELLED]
        return lived

    assert until_it_lives(run, sample) > 10


@pytest.mark.long
def test_processes_that_start_a_realm_agree_on_one_set(
    make_process: Callable[[], Process], make_realm: MakeRealm, sink: FileCredentials
) -> None:
    for at in range(1, 60):
        process = make_process()
        process.backend.intervene("*", partial(process.beside().run, [make_realm()]), at=at)
        assert process.run([make_realm()])

        root = find_root(RealmRegistry(process.store), "acme")
        assert root is not None
        assert verify_secret(root.credentials, kept(sink))
