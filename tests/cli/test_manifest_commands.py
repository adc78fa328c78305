"""``headwater apply --dry-run``, ``diff``, ``delete`` and ``init``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater.cli.cli_session import CliSession
from headwater.errors import RefusedError

MANIFESTS = """\
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata:
  name: acme
  annotations: {annotations}
spec:
  deletionPolicy: {policy}
  retention: {{content: {{age: {age}}}}}
  roles: [{{name: analysts}}]
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {{name: lake}}
spec:
  realm: acme
  storage: {{baseLocation: "s3://lake/"}}
  properties: {{owner: ann}}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write(tmp_path / "manifests")
    return tmp_path / "manifests"


def write(folder: Path, *, age: str = "7d", policy: str = "Retain", annotations: str = "{}") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "acme.yaml").write_text(MANIFESTS.format(age=age, policy=policy, annotations=annotations))


@pytest.fixture
def applied(headwater: CommandLine, files: Path, tmp_path: Path) -> Path:
    headwater.ok("apply", "-f", files, "--credentials", tmp_path / "keys")
    return files


def test_dry_run_tells_all_that_applying_would_do(headwater: CommandLine, files: Path, tmp_path: Path) -> None:
    told = headwater.ok("apply", "-f", files, "--credentials", tmp_path / "keys", "--dry-run")

    assert "Realm acme: would create realm acme" in told
    assert "Realm acme: would bootstrap realm acme" in told
    assert "role analysts" in told
    assert "Catalog lake: would create catalog acme/lake" in told


def test_dry_run_writes_nothing(headwater: CommandLine, files: Path, tmp_path: Path) -> None:
    result = headwater("apply", "-f", files, "--credentials", tmp_path / "keys", "--dry-run")

    assert "it would be set up" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifests"]


def test_dry_run_on_a_store_leaves_it_alone(headwater: CommandLine, applied: Path) -> None:
    write(applied, age="8d")
    told = headwater.ok("apply", "-f", applied, "--dry-run")

    assert "Realm acme: would update realm acme: retention" in told
    assert headwater.ok("apply", "-f", applied, "--dry-run") == told


def test_dry_run_as_data_has_the_steps(headwater: CommandLine, files: Path) -> None:
    shown = headwater.data("apply", "-f", files, "--dry-run")

    assert [(one["subject"], one["dryRun"]) for one in shown] == [("Realm acme", True), ("Catalog lake", True)]
    assert shown[1]["done"] == ["create catalog acme/lake"]


def test_dry_run_ends_with_the_code_of_applying(headwater: CommandLine, realm: str, files: Path) -> None:
    headwater.ok("catalog", "create", "acme/lake", "--base-location", "s3://elsewhere/")
    codes = [headwater("apply", "-f", files, *more).exit_code for more in (["--dry-run"], [])]

    assert codes == [5, 5]


def test_manifests_come_from_standard_input(headwater: CommandLine, files: Path, tmp_path: Path) -> None:
    text = (files / "acme.yaml").read_text()
    applied = headwater.typed(text, "apply", "-f", "-", "--credentials", tmp_path / "keys")
    compared = headwater.typed(text.replace("owner: ann", "owner: bob"), "diff", "-f", "-")
    wrong = headwater.typed(text.replace("{age:", "{agee:"), "apply", "-f", "-", "--dry-run")

    assert "created catalog lake" in applied.stdout
    assert compared.stdout == 'Catalog lake:\n  properties.owner: "ann" → "bob"\n'
    assert "standard input:8: spec.retention.content.agee" in wrong.stderr


def test_no_difference_ends_with_0(headwater: CommandLine, applied: Path) -> None:
    assert headwater.ok("diff", "-f", applied) == "no differences\n"


def test_difference_tells_stored_and_declared(headwater: CommandLine, applied: Path) -> None:
    write(applied, age="8d")
    result = headwater("diff", "-f", applied)

    assert result.exit_code == 9
    assert result.stdout == 'Realm acme:\n  retention.content.age: "7d" → "8d"\n'


def test_difference_as_data_has_the_fields(headwater: CommandLine, applied: Path) -> None:
    file = applied / "acme.yaml"
    file.write_text(file.read_text().replace("owner: ann", "owner: bob"))
    result = headwater("diff", "-f", applied, "-o", "json")
    shown = json.loads(result.stdout)[1]

    assert result.exit_code == 9
    assert shown["fields"] == [{"field": "properties.owner", "stored": '"ann"', "declared": '"bob"'}]


def test_difference_of_roles_is_told(headwater: CommandLine, applied: Path) -> None:
    file = applied / "acme.yaml"
    changed = "{name: analysts, privileges: [CATALOG_LIST]}, {name: writers}]\n  principals: [{name: ann, roles: [writers]}"
    file.write_text(file.read_text().replace("{name: analysts}", changed))
    result = headwater("diff", "-f", applied)

    assert result.exit_code == 9
    assert result.stdout.splitlines() == [
        "Realm acme:",
        "  principals.ann.disabled: (nothing) → false",
        '  principals.ann.roles: (nothing) → ["writers"]',
        "  roles.analysts.privileges:",
        "    + CATALOG_LIST",
        "  roles.writers.privileges: (nothing) → []",
        "  would provide principal ann of realm acme with credentials",
    ]


def test_difference_of_a_catalogs_roles_and_policies_is_told(headwater: CommandLine, applied: Path, tmp_path: Path) -> None:
    def declare(policies: str, grants: str) -> None:
        more = f"  policies: {{{policies}}}\n  roles: [{{name: reader, grantedTo: [analysts], grants: [{{{grants}}}]}}]\n"
        write(applied)
        (applied / "acme.yaml").write_text((applied / "acme.yaml").read_text() + more)

    declare("snapshots: [{maxAge: 5d}], metadataFiles: {keep: 9}", "privileges: [TABLE_LIST]")
    headwater.ok("apply", "-f", applied, "--credentials", tmp_path / "keys")
    headwater.ok("policy", "set", "acme/lake", "file-collection", "--mode", "report")
    declare(
        "snapshots: [{branches: etl/*, minToKeep: 2}, {maxAge: 7d}], fileCollection: {mode: report}",
        "privileges: [TABLE_LIST], namespace: [sales]",
    )

    assert headwater("diff", "-f", applied).stdout.splitlines() == [
        "Catalog lake:",
        "  policies.metadataFiles.keep: 9 → (nothing)",
        '  policies.snapshots[*].maxAge: "5d" → "7d"',
        '  policies.snapshots[].branches: ["*"] → ["etl/*","*"]',
        "  policies.snapshots[etl/*].minToKeep: (nothing) → 2",
        "  roles.reader.grants:",
        "    - TABLE_LIST on catalog acme/lake",
        "    + TABLE_LIST on namespace sales of catalog acme/lake",
        "  would update catalog acme/lake: policies.snapshots, policies.metadataFiles, policies.fileCollection",
    ]


def test_missing_realm_is_a_difference(headwater: CommandLine, files: Path) -> None:
    result = headwater("diff", "-f", files)

    assert result.exit_code == 9
    assert "Catalog lake: is not there" in result.stdout


def test_delete_without_an_answer_shows_the_plan(headwater: CommandLine, applied: Path) -> None:
    result = headwater("delete", "-f", applied)

    assert result.exit_code == 5
    assert "Realm acme: would leave realm acme as it is, without a manager" in result.stdout
    assert "nothing was deleted: give --yes" in result.stderr
    assert headwater.ok("diff", "-f", applied) == "no differences\n"


@pytest.mark.parametrize(("answer", "code", "is_managed"), [("y\n", 0, False), ("n\n", 5, True)])
def test_delete_asks_at_a_terminal(
    headwater: CommandLine, applied: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, is_managed: bool
) -> None:
    monkeypatch.setattr(CliSession, "can_ask", True)
    result = headwater.typed(answer, "delete", "-f", applied)

    assert result.exit_code == code
    assert "Go ahead?" in result.stderr
    assert (headwater.data("realm", "show", "acme")["manager"] is not None) == is_managed


def test_delete_keeps_what_is_to_be_retained(headwater: CommandLine, applied: Path) -> None:
    told = headwater.ok("delete", "-f", applied, "--yes")

    assert "Realm acme: detached realm acme, which stays ACTIVE" in told
    assert headwater.data("catalog", "show", "acme/lake")["manager"] is None


def test_delete_done_twice_does_nothing(headwater: CommandLine, applied: Path) -> None:
    headwater.ok("delete", "-f", applied, "--yes")

    assert "Realm acme: nothing is left to delete" in headwater.ok("delete", "-f", applied, "--yes")


def test_purge_waits_for_the_confirmation_of_its_manifest(headwater: CommandLine, applied: Path) -> None:
    write(applied, policy="Purge")
    headwater.ok("apply", "-f", applied)

    assert "headwater.dev/confirm-purge: acme" in headwater.ok("delete", "-f", applied, "--yes")
    assert headwater.data("realm", "show", "acme")["state"] == "ACTIVE"


def test_confirmed_purge_begins(headwater: CommandLine, applied: Path) -> None:
    write(applied, policy="Purge", annotations="{headwater.dev/confirm-purge: acme}")
    headwater.ok("apply", "-f", applied)
    headwater.ok("delete", "-f", applied, "--yes")

    assert headwater.data("realm", "show", "acme")["state"] == "INACTIVE"


def test_first_manifest_is_accepted_as_it_is(headwater: CommandLine, tmp_path: Path) -> None:
    told = headwater.ok("init", tmp_path / "first", "--realm", "sales", "--catalog", "orders")
    headwater.ok("apply", "-f", tmp_path / "first", "--credentials", tmp_path / "keys")

    assert f"headwater apply -f {tmp_path}/first" in told
    assert headwater.data("catalog", "show", "sales/orders")["baseLocation"] == f"file://{tmp_path}/first/warehouse"


def test_first_manifest_with_all_its_comments_taken_away_is_sound(headwater: CommandLine, tmp_path: Path) -> None:
    headwater.ok("init", tmp_path / "first")
    file = tmp_path / "first" / "headwater.yaml"
    file.write_text(re.sub("^  # ", "  ", file.read_text(), flags=re.MULTILINE))

    assert "would create catalog acme/lake" in headwater.ok("apply", "-f", tmp_path / "first", "--dry-run")


def test_first_manifest_overwrites_nothing(headwater: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "headwater.yaml").write_text("mine")
    result = headwater("init", tmp_path)

    assert result.exit_code == 5
    assert "is not overwritten" in result.stderr
    assert (tmp_path / "headwater.yaml").read_text() == "mine"


@pytest.mark.parametrize("name", ["", "Acme", "a b", "a/b", "-x"])
def test_first_manifest_needs_a_name_that_may_be(headwater: CommandLine, tmp_path: Path, name: str) -> None:
    assert headwater("init", tmp_path / "first", f"--realm={name}").exit_code == 2
    assert not (tmp_path / "first").exists()


@pytest.mark.parametrize("words", [["apply", "--dry-run"], ["diff"]])
def test_empty_standard_input_is_refused(headwater: CommandLine, words: list[str]) -> None:
    result = headwater.typed(" \n", *words, "-f", "-")

    assert result.exit_code == 5
    assert "standard input is empty: there is no manifest in it" in result.stderr


def test_closed_standard_input_is_refused(headwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(RefusedError, match="standard input is closed"):
        CliSession().standard_input  # noqa: B018 - reading it is what is tried


def test_file_named_as_a_dash_is_read(
    headwater: CommandLine, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-").write_text((files / "acme.yaml").read_text())

    assert "would" in headwater.ok("apply", "--dry-run", "-f", "./-")
