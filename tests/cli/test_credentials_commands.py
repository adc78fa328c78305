"""``headwater realm rotate-credentials`` and ``reset-credentials``: the file first, then the realm, and an old file never again."""

from __future__ import annotations

import errno
import json
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.api.credentials_files import ensure_credentials
from headwater.cli import credentials_commands
from headwater.errors import RefusedError
from headwater.realms import Credentials, RealmRegistry, find_root, log_in


@pytest.fixture
def logs_in(store: Store, tmp_path: Path) -> Callable[[str], bool]:
    def logs_in(file: str) -> bool:
        data = json.loads((tmp_path / file).read_text())
        try:
            log_in(RealmRegistry(store), "acme", Credentials(data["clientId"], data["clientSecret"]))
        except RefusedError:
            return False
        return True

    return logs_in


def test_rotation_puts_other_credentials_into_a_file_of_its_owner(
    headwater: CommandLine, realm: str, tmp_path: Path, logs_in: Callable[[str], bool]
) -> None:
    shown = headwater.data("realm", "rotate-credentials", realm, "--credentials", tmp_path / "new.json")

    data = json.loads((tmp_path / "new.json").read_text())
    assert (shown["clientId"], shown["formerUntil"]) == (data["clientId"], None)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o600
    assert (logs_in("new.json"), logs_in("acme.json")) == (True, True)


def test_overlap_that_is_over_ends_the_former_credentials(
    headwater: CommandLine, realm: str, tmp_path: Path, logs_in: Callable[[str], bool]
) -> None:
    headwater.ok("realm", "rotate-credentials", realm, "--credentials", tmp_path / "new.json", "--overlap", "1ms")

    assert not logs_in("acme.json")


def test_reset_refuses_the_former_credentials_at_once(
    headwater: CommandLine, realm: str, tmp_path: Path, logs_in: Callable[[str], bool]
) -> None:
    shown = headwater.data("realm", "reset-credentials", realm, "--credentials", tmp_path / "new.json")

    assert shown["formerClientId"] is None
    assert (logs_in("new.json"), logs_in("acme.json")) == (True, False)


def test_interrupted_rotation_goes_on_with_its_file(headwater: CommandLine, store: Store, realm: str, tmp_path: Path) -> None:
    realms, file = RealmRegistry(store), tmp_path / "new.json"
    begun = ensure_credentials(file, realms.read_realm(realm), replaces=find_root(realms, realm).credentials.client_id)

    shown = headwater.data("realm", "rotate-credentials", realm, "--credentials", file)

    assert shown["clientId"] == begun.credentials.client_id


def test_rotation_that_is_repeated_changes_nothing(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    command = ("realm", "rotate-credentials", realm, "--credentials", tmp_path / "new.json")

    assert headwater.data(*command) == headwater.data(*command)


def test_reset_after_a_rotation_refuses_the_former_credentials(
    headwater: CommandLine, realm: str, tmp_path: Path, logs_in: Callable[[str], bool]
) -> None:
    headwater.ok("realm", "rotate-credentials", realm, "--credentials", tmp_path / "new.json")
    headwater.ok("realm", "reset-credentials", realm, "--credentials", tmp_path / "new.json")

    assert (logs_in("new.json"), logs_in("acme.json")) == (True, False)


@pytest.mark.parametrize("first", ["rotate-credentials", "reset-credentials"])
def test_reset_to_credentials_in_force_says_that_none_were_made(
    headwater: CommandLine, realm: str, tmp_path: Path, logs_in: Callable[[str], bool], first: str
) -> None:
    """After a leak of the file they would be taken for new ones."""
    headwater.ok("realm", first, realm, "--credentials", tmp_path / "new.json")

    again = headwater("realm", "reset-credentials", realm, "--credentials", tmp_path / "new.json")

    assert (again.exit_code, logs_in("new.json")) == (0, True)
    assert "no new credentials were made" in again.stderr and "name a new file" in again.stderr


def test_new_credentials_come_without_a_warning(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    for command in ("rotate-credentials", "reset-credentials"):
        done = headwater("realm", command, realm, "--credentials", tmp_path / f"{command}.json")

        assert (done.exit_code, "no new credentials" in done.stderr) == (0, False)


def test_old_file_never_brings_its_credentials_back(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    for name in ("second.json", "third.json"):
        headwater.ok("realm", "reset-credentials", realm, "--credentials", tmp_path / name)

    refused = headwater("realm", "rotate-credentials", realm, "--credentials", tmp_path / "second.json")

    assert refused.exit_code == 5
    assert "name another file" in refused.stderr


def test_file_of_the_realms_creation_is_no_new_one(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    assert headwater("realm", "rotate-credentials", realm, "--credentials", tmp_path / "acme.json").exit_code == 5


def test_inactive_realm_keeps_its_credentials_and_no_file_is_made(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    headwater.ok("realm", "deactivate", realm)

    refused = headwater("realm", "reset-credentials", realm, "--credentials", tmp_path / "new.json")

    assert (refused.exit_code, (tmp_path / "new.json").exists()) == (5, False)


PRINTED = [
    ("realm", "create", "other"),
    ("realm", "rotate-credentials", "acme"),
    ("realm", "reset-credentials", "acme"),
    ("principal", "create", "acme", "ann"),
    ("principal", "rotate", "acme", "root"),
]


@pytest.mark.parametrize("words", PRINTED, ids=" ".join)
@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_printed_credentials_stand_alone_on_standard_output(
    headwater: CommandLine, store: Store, realm: str, words: tuple[str, ...], output: str
) -> None:
    result = headwater(*words, "--credentials", "-", "-o", output)
    printed = json.loads(result.stdout)

    assert result.exit_code == 0
    assert printed["clientSecret"] not in result.stderr
    log_in(RealmRegistry(store), printed["realm"], Credentials(printed["clientId"], printed["clientSecret"]))


def test_credentials_that_cannot_be_printed_are_not_valid(
    headwater: CommandLine, realm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    before = headwater.data("principal", "show", "acme", "root")["clientId"]
    monkeypatch.setattr(credentials_commands, "sys", SimpleNamespace(stdout=SimpleNamespace(flush=fail)))
    result = headwater("realm", "rotate-credentials", "acme", "--credentials", "-")
    monkeypatch.undo()

    assert result.exit_code == 5
    assert headwater.data("principal", "show", "acme", "root")["clientId"] == before
