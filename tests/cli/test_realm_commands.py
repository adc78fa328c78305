"""``headwater realm``: from creation to deletion."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.clock import Micros
from headwater.realms import Credentials, RealmManager, RealmRegistry, RealmState, find_root, verify_secret
from headwater.tasks import TaskQueue


def test_created_realm_is_active(headwater: CommandLine, tmp_path: Path) -> None:
    shown = headwater.data("realm", "create", "acme", "--credentials", tmp_path / "root.json")

    assert (shown["id"], shown["state"]) == ("acme", "ACTIVE")


def test_credentials_file_is_its_owners_only_and_logs_in(headwater: CommandLine, store: Store, tmp_path: Path) -> None:
    headwater.ok("realm", "create", "acme", "--credentials", tmp_path / "root.json")

    file = tmp_path / "root.json"
    data = json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert verify_secret(
        find_root(RealmRegistry(store), "acme").credentials, Credentials(data["clientId"], data["clientSecret"])
    )


def test_secret_is_never_printed(headwater: CommandLine, tmp_path: Path) -> None:
    result = headwater("-o", "yaml", "realm", "create", "acme", "--credentials", tmp_path / "root.json")

    assert json.loads((tmp_path / "root.json").read_text())["clientSecret"] not in result.output


def test_credentials_file_is_never_overwritten(headwater: CommandLine, store: Store, tmp_path: Path) -> None:
    (tmp_path / "root.json").write_text("precious")

    result = headwater("realm", "create", "acme", "--credentials", tmp_path / "root.json")

    assert (result.exit_code, (tmp_path / "root.json").read_text()) == (5, "precious")
    assert RealmRegistry(store).find_realm("acme") is None


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((RealmState.LOADING,), "it is LOADING, an import fills it"),
        ((RealmState.PURGING,), "it is PURGING, everything in it is being deleted"),
        ((RealmState.PURGING, RealmState.PURGED), "it is PURGED; delete it, then create it anew"),
    ],
    ids=["loading", "purging", "purged"],
)
def test_realm_being_loaded_or_purged_is_not_bootstrapped(
    headwater: CommandLine, store: Store, tmp_path: Path, steps: tuple[RealmState, ...], reason: str
) -> None:
    realms = RealmRegistry(store)
    found = realms.create_realm("acme")
    for step in steps:
        found = realms.move_realm(found, step)

    refused = headwater("realm", "create", "acme", "--credentials", tmp_path / "root.json")

    assert (refused.exit_code, (tmp_path / "root.json").exists()) == (5, False)
    assert reason in refused.stderr


def test_credentials_into_a_missing_folder_are_refused_first(headwater: CommandLine, store: Store, tmp_path: Path) -> None:
    assert headwater("realm", "create", "acme", "--credentials", tmp_path / "no" / "root.json").exit_code == 5
    assert RealmRegistry(store).list_realms() == []


def test_creation_without_its_bootstrap_goes_on_with_its_file(headwater: CommandLine, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "root.json"
    headwater.ok("realm", "create", "other", "--credentials", file)
    created = RealmRegistry(store).create_realm("acme")
    data = json.loads(file.read_text()) | {"realm": "acme", "realmKey": f"{created.key:016x}"}
    file.write_text(json.dumps(data))

    headwater.ok("realm", "create", "acme", "--credentials", file)

    assert find_root(RealmRegistry(store), "acme").credentials.client_id == data["clientId"]


def test_file_of_another_realm_is_refused(headwater: CommandLine, store: Store, realm: str, tmp_path: Path) -> None:
    RealmRegistry(store).create_realm("other")

    result = headwater("realm", "create", "other", "--credentials", tmp_path / f"{realm}.json")

    assert result.exit_code == 5
    assert "belongs to another realm" in result.stderr


def test_second_realm_of_the_same_id_is_a_conflict(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    result = headwater("realm", "create", realm, "--credentials", tmp_path / "again.json")

    assert result.exit_code == 6
    assert result.stderr == "headwater: there is a realm 'acme' already; it is ACTIVE\n"
    assert not (tmp_path / "again.json").exists()


def test_realms_are_listed_with_their_states(headwater: CommandLine, make_realm: Callable[[str], str]) -> None:
    make_realm("b")
    make_realm("a")

    lines = headwater.ok("realm", "list").splitlines()

    assert [line.split()[:2] for line in lines] == [["REALM", "STATE"], ["a", "ACTIVE"], ["b", "ACTIVE"]]


def test_realm_goes_inactive_and_back(headwater: CommandLine, realm: str) -> None:
    assert headwater.data("realm", "deactivate", realm)["state"] == "INACTIVE"
    assert headwater.data("realm", "activate", realm)["state"] == "ACTIVE"


def test_released_realm_is_managed_by_nobody(headwater: CommandLine, store: Store, realm: str) -> None:
    RealmRegistry(store).update_realm(
        RealmRegistry(store).read_realm(realm), manager=RealmManager(cluster="c", namespace="team", name="acme")
    )

    assert headwater.data("realm", "show", realm)["manager"]["namespace"] == "team"
    assert headwater.data("realm", "release", realm)["manager"] is None


def test_realm_that_was_never_bootstrapped_is_not_activated(headwater: CommandLine, store: Store) -> None:
    RealmRegistry(store).create_realm("acme")

    assert headwater("realm", "activate", "acme").exit_code == 5


def test_missing_realm_is_not_found(headwater: CommandLine, store: Store) -> None:
    result = headwater("realm", "show", "nobody")

    assert (result.exit_code, result.stderr) == (3, "headwater: there is no realm 'nobody'\n")


def test_purge_without_confirmation_shows_what_would_go(headwater: CommandLine, catalog: str) -> None:
    result = headwater("-o", "json", "realm", "purge", "acme")

    assert result.exit_code == 5
    assert json.loads(result.stdout)["catalogs"] == ["lake"]
    assert "--confirm acme" in result.stderr


def test_purge_with_another_confirmation_is_refused(hasty: CommandLine, realm: str) -> None:
    hasty.ok("realm", "deactivate", realm)

    assert hasty("realm", "purge", realm, "--confirm", "acne").exit_code == 5
    assert hasty.data("realm", "show", realm)["state"] == "INACTIVE"


def test_active_realm_is_not_purged(hasty: CommandLine, realm: str) -> None:
    result = hasty("realm", "purge", realm, "--confirm", realm)

    assert result.exit_code == 5
    assert "headwater realm deactivate acme" in result.stderr


def test_purge_within_the_hold_says_until_when(headwater: CommandLine, realm: str) -> None:
    until = headwater.data("realm", "deactivate", realm)["heldUntil"]

    result = headwater("realm", "purge", realm, "--confirm", realm)

    assert result.exit_code == 5
    assert until in result.stderr


def test_purge_that_is_left_to_a_worker_is_a_task(hasty: CommandLine, store: Store, realm: str) -> None:
    hasty.ok("realm", "deactivate", realm)

    shown = hasty.data("realm", "purge", realm, "--confirm", realm, "--detach")

    assert (shown["kind"], shown["state"]) == ("purge", "WAITING")
    assert TaskQueue(store).active_tasks("purge", realm).realm_key == RealmRegistry(store).read_realm(realm).key
    assert RealmRegistry(store).read_realm(realm).state is RealmState.PURGING


def test_purge_cancels_what_else_was_asked_for_in_the_realm(hasty: CommandLine, store: Store, realm: str) -> None:
    waiting = TaskQueue(store).submit_task("gc", realm=realm, due=Micros(store.clock.now() + 3_600_000_000)).id
    hasty.ok("realm", "deactivate", realm)
    hasty.ok("realm", "purge", realm, "--confirm", realm)

    assert TaskQueue(store).read_task(waiting).value.state == "CANCELLED"


def test_purged_and_deleted_realm_is_gone(hasty: CommandLine, store: Store, catalog: str) -> None:
    key = RealmRegistry(store).read_realm("acme").key
    hasty.ok("realm", "deactivate", "acme")
    assert hasty.data("realm", "purge", "acme", "--confirm", "acme")["state"] == "PURGED"

    hasty.ok("realm", "delete", "acme", "--confirm", "acme")

    assert hasty.ok("realm", "list") == ""
    assert list(RealmRegistry(store).purged_keys()) == [key]


def test_realm_that_is_not_purged_is_not_deleted(headwater: CommandLine, store: Store, realm: str) -> None:
    assert headwater("realm", "delete", realm, "--confirm", realm).exit_code == 5
    assert RealmRegistry(store).read_realm(realm).state is RealmState.ACTIVE


def test_realm_is_not_deleted_without_confirmation(hasty: CommandLine, store: Store) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.move_realm(realms.create_realm("acme"), RealmState.PURGING), RealmState.PURGED)

    assert hasty("realm", "delete", "acme").exit_code == 5
    assert realms.find_realm("acme") is not None
