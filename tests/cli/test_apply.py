"""``headwater apply``: manifests carried out in one pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.commits import read_head
from headwater.realms import RealmRegistry
from headwater.tasks import TaskQueue

MANIFESTS = """\
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata: {name: acme}
spec: {properties: {team: lake}}
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {name: lake}
spec: {realm: acme, name: lake, storage: {baseLocation: "s3://lake/"}}
"""


REALM_WITH_PATTERNS = """
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata: {name: acme}
spec:
  retention:
    patterns:
      - {pattern: lake/release-*, commits: 50, age: 90d}
      - {pattern: grants, commits: 5}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "manifests.yaml"
    path.write_text(MANIFESTS)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where credentials go."""
    return tmp_path / "credentials"


def test_manifests_are_carried_out(headwater: CommandLine, file: Path, folder: Path) -> None:
    headwater.ok("apply", "-f", file, "--credentials", folder)

    assert headwater.data("realm", "show", "acme")["state"] == "ACTIVE"
    assert headwater.data("catalog", "show", "acme/lake")["baseLocation"].startswith("s3://lake")


def test_folder_without_manifests_says_so(headwater: CommandLine, tmp_path: Path) -> None:
    assert headwater.ok("apply", "-f", tmp_path) == ""


def test_changed_fields_are_told_in_the_words_of_manifests(headwater: CommandLine, file: Path, folder: Path) -> None:
    headwater.ok("apply", "-f", file, "--credentials", folder)
    file.write_text(MANIFESTS.replace("{team: lake}", "{team: lake}, driftPolicy: Report"))

    assert "Realm acme: updated realm acme: driftPolicy\n" in headwater.ok("apply", "-f", file, "--credentials", folder)


def test_policies_are_declared_corrected_and_taken_back(headwater: CommandLine, file: Path, folder: Path) -> None:
    def apply(policies: str) -> str:
        file.write_text(MANIFESTS.replace("realm: acme, name", f"realm: acme, policies: {policies}, name"))
        return headwater.ok("apply", "-f", file, "--credentials", folder)

    declared = "{snapshots: [{maxAge: 5d}], fileCollection: {grace: 14d}}"
    assert "updated catalog lake of realm acme: policies.snapshots, policies.fileCollection\n" in apply(declared)
    assert "Catalog lake: as it should be" in apply(declared)
    headwater.ok("policy", "set", "acme/lake", "snapshots", "--max-age", "1d")
    headwater.ok("policy", "set", "acme/lake", "metadata-files", "--keep", "9")
    assert "updated catalog lake of realm acme: policies.snapshots\n" in apply(declared)
    assert headwater.data("policy", "show", "acme/lake", "snapshots")["snapshots"] == [{"branches": "*", "maxAge": "5d"}]
    apply("{}")
    assert [each["kind"] for each in headwater.data("policy", "list", "acme/lake")] == ["metadata-files"]


def test_history_kept_by_name_is_carried_out_and_shown(headwater: CommandLine, file: Path, folder: Path) -> None:
    file.write_text(REALM_WITH_PATTERNS)
    headwater.ok("apply", "-f", file, "--credentials", folder)

    assert headwater.data("realm", "show", "acme")["retention"]["patterns"] == [
        {"pattern": "lake/release-*", "commits": 50, "age": "90d"},
        {"pattern": "grants", "commits": 5, "age": "0s"},
    ]


def test_each_step_is_told(headwater: CommandLine, file: Path, folder: Path) -> None:
    lines = headwater.ok("apply", "-f", file, "--credentials", folder).splitlines()

    assert "Realm acme: created realm acme" in lines
    assert "Catalog lake: created catalog lake of realm acme" in lines


def test_same_manifests_again_make_no_commit_and_no_task(
    headwater: CommandLine, store: Store, file: Path, folder: Path
) -> None:
    headwater.ok("apply", "-f", file, "--credentials", folder)
    before = [read_head(store.system, name, fresh=True).id for name in ("realms", "tasks")]

    lines = headwater.ok("apply", "-f", file, "--credentials", folder).splitlines()

    assert [read_head(store.system, name, fresh=True).id for name in ("realms", "tasks")] == before
    assert lines == ["Realm acme: as it should be", "Catalog lake: as it should be"]


def test_json_has_an_outcome_for_every_manifest(headwater: CommandLine, file: Path, folder: Path) -> None:
    shown = headwater.data("apply", "-f", file, "--credentials", folder)

    assert [outcome["subject"] for outcome in shown] == ["Realm acme", "Catalog lake"]
    assert all(outcome["error"] is None and not outcome["refused"] for outcome in shown)


def test_wrong_manifest_is_refused_with_its_line_before_anything(
    headwater: CommandLine, store: Store, file: Path, folder: Path
) -> None:
    file.write_text(MANIFESTS.replace("spec: {realm: acme", "spec: {realmm: acme"))

    result = headwater("apply", "-f", file, "--credentials", folder)

    assert result.exit_code == 5
    assert f"headwater: {file}:9: spec.realmm: unknown field" in result.stderr
    assert RealmRegistry(store).list_realms() == []


def test_file_that_is_not_there_is_not_found(headwater: CommandLine, tmp_path: Path) -> None:
    assert headwater("apply", "-f", tmp_path / "nothing.yaml").exit_code == 3


def test_manifest_that_waits_is_told_and_is_no_failure(headwater: CommandLine, store: Store, file: Path, folder: Path) -> None:
    headwater.ok("apply", "-f", file, "--credentials", folder)
    file.write_text(MANIFESTS.replace("spec: {properties: {team: lake}}", "spec: {state: Inactive}"))

    printed = headwater.ok("apply", "-f", file, "--credentials", folder)

    assert "Catalog lake: waits: catalog acme/lake waits for its realm to be ACTIVE; it is INACTIVE" in printed


def test_manifest_that_is_refused_is_told_and_fails(headwater: CommandLine, realm: str, file: Path, folder: Path) -> None:
    result = headwater("-o", "json", "apply", "-f", file, "--credentials", folder)

    assert result.exit_code == 5
    assert [outcome["refused"][0]["reason"] for outcome in json.loads(result.stdout)] == [
        "ManagedByAnother",
        "RealmManagedByAnother",
    ]
    assert "headwater: Realm acme: realm acme is managed by nobody" in result.stderr


def test_long_work_is_left_to_workers(headwater: CommandLine, store: Store, file: Path, folder: Path) -> None:
    headwater.ok("apply", "-f", file, "--credentials", folder)

    assert TaskQueue(store).active_tasks("gc", "acme") is not None
