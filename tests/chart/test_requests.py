"""The operator lives a whole life against an API server that writes down who asks for what: that is what the chart's roles grant."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rendered_chart import render

from headwater.realms import RealmRegistry, RealmState
from headwater_operator.permissions import LEASE_PERMISSIONS, PERMISSIONS, SCHEMA_PERMISSIONS, Permission
from kube_fixtures import Installation
from kubetest import Cluster, Namespace, start_cluster, wait_for

pytestmark = pytest.mark.long
NAME = "acme"
BEATEN = [
    {"action": "409", "verb": "patch", "resource": plural, "subresource": "", "user_agent": "headwater-operator"}
    for plural in ("realms", "catalogs")
]
"""Somebody else is faster when the finalizers are put on: the operator has to look again."""
MANIFESTS = """\
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata: {name: acme}
spec: {deletionPolicy: Purge}
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {name: lake}
spec:
  realm: acme
  deletionPolicy: Purge
  storage: {baseLocation: "s3://acme/lake/"}
"""


class Life:
    """A Realm and a Catalog from their first day to their last, with everything on the way that takes a right of its own.

    Only kubectl speaks for the person, so that all other requests are the operator's.
    """

    def __init__(self, installation: Installation, home: Namespace, watched: Namespace) -> None:
        self.installation = installation
        self.home = home
        self.watched = watched

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        return self.watched.kubectl(*arguments, text=text).stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of the operator's image."""
        command = [str(Path(sys.executable).with_name("headwater-operator")), *arguments]
        return subprocess.run(command, env=self.installation.environment, capture_output=True, text=True, check=False)

    def live(self) -> None:
        operator = self.installation.start_operator()
        self.installation.start_worker()
        control(self.watched.cluster, "faults", BEATEN)
        self.kubectl("apply", "-f", "-", text=MANIFESTS)
        self.kubectl("wait", "--for=condition=Ready", f"realm/{NAME}", "catalog/lake", "--timeout=30s")
        self._drift()
        self._drift()  # the same event a second time is counted, not posted
        self._rotate()
        self._leave()
        assert operator.stop() == 0

    def _drift(self) -> None:
        with self.installation.open_store() as store:
            realms = RealmRegistry(store)
            realms.move_realm(realms.read_realm(NAME), RealmState.INACTIVE)
            wait_for(lambda: realms.read_realm(NAME).state is RealmState.ACTIVE)
        self.kubectl("wait", "--for=condition=Ready", f"realm/{NAME}", "--timeout=30s")

    def _rotate(self) -> None:
        self.kubectl("annotate", "realm", NAME, "headwater.dev/rotate-credentials=2026-11")
        path = r"jsonpath={.metadata.annotations.headwater\.dev/rotation}"
        wait_for(lambda: self.kubectl("get", "secret", f"{NAME}-root-credentials", "-o", path) == "2026-11")

    def _leave(self) -> None:
        for kind, name, word in (("catalog", "lake", f"{NAME}/lake"), ("realm", NAME, NAME)):
            self.kubectl("annotate", kind, name, f"headwater.dev/confirm-purge={word}")
            self.kubectl("delete", kind, name, "--timeout=60s")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        if started.server.control is None:
            pytest.skip("a real API server does not tell what it was asked")
        yield started


@pytest.fixture(scope="module")
def life(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """A life that has been lived."""
    home, watched = cluster.make_namespace("home"), cluster.make_namespace("watched")
    installation = Installation(cluster, tmp_path_factory.mktemp("life"), home=home.name, watched=(watched.name,))
    made = Life(installation, home, watched)
    try:
        made.live()
        yield made
    finally:
        installation.end()


def control(cluster: Cluster, what: str, body: Any = None) -> Any:
    """Ask the server beside its API."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(f"{cluster.server.control}/_control/{what}", data, timeout=10) as answer:
        return json.load(answer)


def asked(cluster: Cluster, namespace: str) -> set[Permission]:
    """What somebody else than kubectl asked for in a namespace."""
    return {
        Permission(one["group"], "/".join(filter(None, (one["resource"], one["subresource"]))), one["verb"])
        for one in control(cluster, "requests")["requests"]
        if one.get("resource") and one["namespace"] == namespace and not one["user_agent"].startswith("kubectl")
    }


def test_every_right_is_used_and_every_request_is_granted(cluster: Cluster, life: Life) -> None:
    assert asked(cluster, life.watched.name) == set(PERMISSIONS)


def test_operator_asks_in_its_namespace_for_its_lease_alone(cluster: Cluster, life: Life) -> None:
    assert asked(cluster, life.home.name) == set(LEASE_PERMISSIONS)


def test_no_request_goes_beyond_the_namespaces(cluster: Cluster, life: Life) -> None:
    """Except for the definitions: without a right to them the published schema is read."""
    reviews = Permission("authorization.k8s.io", "selfsubjectaccessreviews", "create")
    assert asked(cluster, "") <= {reviews, *SCHEMA_PERMISSIONS}


def test_charts_hooks_run_with_the_same_rights(cluster: Cluster, life: Life) -> None:
    before = {namespace: asked(cluster, namespace) for namespace in (life.home.name, life.watched.name)}
    checked, left = life.run(*render().pod("-check").container["args"]), life.run(*render().pod("-guard").container["args"])

    assert (checked.returncode, left.returncode) == (0, 0), checked.stdout + checked.stderr + left.stderr
    assert {namespace: asked(cluster, namespace) for namespace in before} == before


def test_uninstalling_is_refused_while_there_is_something_to_let_go(life: Life) -> None:
    held = "{apiVersion: headwater.dev/v1alpha1, kind: Realm, metadata: {name: held, finalizers: [headwater.dev/operator]}, spec: {}}"
    life.kubectl("apply", "-f", "-", text=held)
    refused = life.run("leftovers")
    life.kubectl("patch", "realm", "held", "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    life.kubectl("delete", "realm", "held", "--timeout=20s")

    assert refused.returncode == 5
    assert f"Realm {life.watched.name}/held" in refused.stderr
    assert "helm uninstall --no-hooks" in refused.stderr
