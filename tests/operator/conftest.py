"""What tests of the operator share: a cluster with our resources, and an operator's insides to be led by hand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from desks import Desk

from fake_clock import FakeClock
from headwater.realms import client_credentials as credentials
from headwater.settings import Settings
from headwater.store import Store, open_store
from kube_fixtures import cluster, controlled_cluster, namespace
from kubetest import Namespace

__all__ = ["cluster", "controlled_cluster", "namespace"]


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash carries its own cost, and hundreds are made here."""
    monkeypatch.setattr(credentials, "_COST", 2)


@pytest.fixture
def memory_store(settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """An empty store in memory; what a store is kept in is other tests' business."""
    with open_store("memory://", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def make_desk(namespace: Namespace, memory_store: Store) -> Callable[..., Desk]:
    """``make_desk(fence=...)`` is another operator on the same store and namespace."""

    def make(store: Store | None = None, **others: Any) -> Desk:
        return Desk(namespace, store or memory_store, **others)

    return make


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A key and a certificate that vouches for itself, for 127.0.0.1; used for the server, the client and as the authority."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    names = {"key": str(folder / "key.pem"), "certificate": str(folder / "certificate.pem")}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", names["key"], "-out", names["certificate"]],
        check=True, capture_output=True,
    )  # fmt: skip
    return names
