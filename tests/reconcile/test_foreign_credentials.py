"""A realm whose bootstrap was broken off with the credentials of somebody else: it ends with those of its manager, or says the way out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Store
from headwater.realms import Credentials, RealmRegistry, RealmState, find_root, verify_secret
from headwater.reconcile import FileCredentials, ManagerIdentity, RealmManifest, ReconcileOutcome, reconcile_realm
from headwater.reconcile.manifests import ADOPT, DELETE, ROTATE_CREDENTIALS, ManifestMetadata, RealmSpec
from headwater.settings import Settings
from headwater.store import RealmId
from headwater.store.backends.memory import MemoryBackend


class KilledError(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.realms.client_credentials._COST", 16)


class Cluster:
    """One database, and credentials that are kept in a folder for each who applies the realm."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.backend = FaultyBackend(MemoryBackend(), is_atomic=True)
        self.folder = folder
        self._settings = settings

    @property
    def store(self) -> Store:
        """As a new process sees it."""
        return Store(self.backend, url="memory://", settings=self._settings, clock=FakeClock())  # type: ignore[arg-type]

    @property
    def state(self) -> RealmState:
        return RealmRegistry(self.store).read_realm("acme").state

    def apply(
        self, annotations: dict[str, str] | None = None, *, name: str = "acme", uid: str = "1", folder: str = "acme-1"
    ) -> ReconcileOutcome:
        metadata = ManifestMetadata(name=name, annotations=annotations or {})
        manifest = RealmManifest(metadata=metadata, spec=RealmSpec(realm_id=RealmId("acme")))
        sink = FileCredentials(self.folder / folder)
        return reconcile_realm(self.store, manifest, credentials=sink, manager=ManagerIdentity(cluster="here", uid=uid))

    def is_open_to(self, folder: str = "acme-1") -> bool:
        """Whether the credentials that are kept there open the realm."""
        kept = json.loads((self.folder / folder / "acme.json").read_text())
        root = find_root(RealmRegistry(self.store), "acme")
        return root is not None and verify_secret(root.credentials, Credentials(kept["clientId"], kept["clientSecret"]))


@pytest.fixture
def broken_off(settings: Settings, tmp_path: Path) -> Iterator[Cluster]:
    """One for each call of the database at which the process may be killed that makes the realm."""
    return _broken_off(settings, tmp_path)


def _broken_off(settings: Settings, folder: Path) -> Iterator[Cluster]:
    for call in count(1):
        cluster = Cluster(settings, folder / str(call))
        cluster.backend.fail("*", at=call, fault=KilledError())
        try:
            cluster.apply()
        except KilledError:
            cluster.backend.heal()
            if RealmRegistry(cluster.store).find_realm("acme") is not None:
                yield cluster
            continue
        return


@pytest.mark.long
def test_resource_made_again_gives_a_begun_realm_its_credentials(broken_off: Iterator[Cluster]) -> None:
    for cluster in broken_off:
        folder = "acme-1" if cluster.state is RealmState.ACTIVE else "acme-2"
        outcome = cluster.apply(uid="2", folder="acme-2")

        assert outcome.is_settled
        assert cluster.state is RealmState.ACTIVE
        assert cluster.is_open_to(folder)


@pytest.mark.long
def test_begun_realm_passes_to_another_only_when_whole(broken_off: Iterator[Cluster]) -> None:
    for cluster in broken_off:
        is_whole = cluster.state is RealmState.ACTIVE
        [refusal] = cluster.apply({ADOPT: "acme"}, name="rival", folder="rival").refused or (None,)
        cluster.apply()
        again = cluster.apply({ADOPT: "acme"}, name="rival", folder="rival")

        assert (refusal is None) == is_whole
        assert again.is_settled
        assert cluster.is_open_to()


@pytest.mark.long
def test_begun_realm_let_go_ends_when_applied_again(broken_off: Iterator[Cluster]) -> None:
    for cluster in broken_off:
        cluster.apply({DELETE: "true"})

        assert cluster.apply(uid="2", folder="acme-2").is_settled
        assert cluster.state is RealmState.ACTIVE


@pytest.mark.long
def test_bootstrap_that_was_told_has_the_credentials_that_hold(settings: Settings, tmp_path: Path) -> None:
    for call in range(1, 60):
        cluster, others = Cluster(settings, tmp_path / str(call)), []
        cluster.backend.intervene("*", lambda: others.append(cluster.apply(folder="theirs")), at=call)  # noqa: B023
        outcomes = {"ours": cluster.apply(folder="ours"), "theirs": others[0] if others else ReconcileOutcome(subject="")}

        told = [folder for folder, one in outcomes.items() if "RealmBootstrapped" in [step.reason for step in one.steps]]
        beaten = [str(one.error) for one in outcomes.values() if one.error]
        assert cluster.state is RealmState.ACTIVE
        assert [cluster.is_open_to(folder) for folder in told] == [True]
        assert all(ROTATE_CREDENTIALS in text for text in beaten)
