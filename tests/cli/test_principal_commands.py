"""``headwater principal``: made with a file of its credentials, renewed, locked and dropped; and no secret anywhere else."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.api.credentials_files import ensure_credentials
from headwater.errors import RefusedError
from headwater.realms import Credentials, RealmRegistry, create_principal, find_principal, hash_credentials, log_in


@pytest.fixture
def alice(headwater: CommandLine, realm: str, tmp_path: Path) -> Path:
    """The credentials file of a principal that may do nothing."""
    headwater.ok("principal", "create", realm, "alice", "--credentials", tmp_path / "alice.json")
    return tmp_path / "alice.json"


@pytest.fixture
def name_of(store: Store) -> Callable[[Path], str | None]:
    def name_of(file: Path) -> str | None:
        """Who logs in with the credentials of a file; None: nobody."""
        data = json.loads(file.read_text())
        try:
            return log_in(RealmRegistry(store), "acme", Credentials(data["clientId"], data["clientSecret"])).name
        except RefusedError:
            return None

    return name_of


def test_file_of_a_principal_has_what_engines_are_given(alice: Path, name_of: Callable[[Path], str | None]) -> None:
    data = json.loads(alice.read_text())

    assert (data["realm"], data["principal"]) == ("acme", "alice")
    assert data["credential"] == f"acme.{data['clientId']}:{data['clientSecret']}"
    assert stat.S_IMODE(alice.stat().st_mode) == 0o600
    assert name_of(alice) == "alice"


def test_file_of_root_has_it_too(realm: str, tmp_path: Path, name_of: Callable[[Path], str | None]) -> None:
    data = json.loads((tmp_path / "acme.json").read_text())

    assert data["credential"] == f"acme.{data['clientId']}:{data['clientSecret']}"
    assert name_of(tmp_path / "acme.json") == "root"


def test_secret_is_shown_nowhere(headwater: CommandLine, realm: str, alice: Path, tmp_path: Path) -> None:
    lines = [
        ("principal", "create", realm, "alice", "--credentials", alice),
        ("principal", "rotate", realm, "alice", "--credentials", tmp_path / "next.json"),
        ("principal", "show", realm, "alice"),
        ("principal", "list", realm),
        ("principal", "rotate", realm, "alice", "--credentials", tmp_path / "acme.json"),
    ]
    told = "".join(headwater(*options, *line).output for line in lines for options in ((), ("-o", "json"), ("--debug",)))

    for file in (alice, tmp_path / "next.json", tmp_path / "acme.json"):
        assert json.loads(file.read_text())["clientSecret"] not in told


def test_file_of_an_older_release_is_roots(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    file = tmp_path / "acme.json"
    older = {name: value for name, value in json.loads(file.read_text()).items() if name not in ("principal", "credential")}
    file.write_text(json.dumps(older))

    refused = headwater("realm", "rotate-credentials", realm, "--credentials", file)
    assert "holds the credentials that root has now" in refused.stderr


def test_creation_that_was_interrupted_goes_on_with_its_file(
    headwater: CommandLine, store: Store, realm: str, tmp_path: Path, name_of: Callable[[Path], str | None]
) -> None:
    file = tmp_path / "alice.json"
    begun = ensure_credentials(file, RealmRegistry(store).read_realm(realm), principal="alice")

    done = headwater("principal", "create", realm, "alice", "--credentials", file)

    assert (done.exit_code, name_of(file)) == (0, "alice")
    assert "was there, as after an interruption" in done.stderr
    assert find_principal(RealmRegistry(store), realm, "alice").credentials.client_id == begun.credentials.client_id


def test_creation_that_is_repeated_changes_nothing(headwater: CommandLine, realm: str, alice: Path) -> None:
    again = headwater.data("principal", "create", realm, "alice", "--credentials", alice)

    assert [again] == [row for row in headwater.data("principal", "list", realm) if row["name"] == "alice"]


def test_name_that_is_taken_makes_no_file(headwater: CommandLine, realm: str, alice: Path, tmp_path: Path) -> None:
    refused = headwater("principal", "create", realm, "alice", "--credentials", tmp_path / "other.json")

    assert (refused.exit_code, (tmp_path / "other.json").exists()) == (6, False)
    assert "`headwater principal rotate acme alice`" in refused.stderr


def test_name_of_somebody_elses_making_is_not_taken_over(
    headwater: CommandLine, store: Store, realm: str, tmp_path: Path
) -> None:
    """Somebody made it between the file and the realm."""
    realms, file = RealmRegistry(store), tmp_path / "alice.json"
    ensure_credentials(file, realms.read_realm(realm), principal="alice")
    create_principal(realms, realm, "alice", hash_credentials(Credentials("other", "secret")))

    assert headwater("principal", "create", realm, "alice", "--credentials", file).exit_code == 6
    assert headwater.data("principal", "show", realm, "alice")["clientId"] == "other"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("create", "acme", "a b"), 5),
        (("create", "acme", "bob", "--role", "nobody"), 3),
        (("create", "nobody", "bob"), 3),
        (("rotate", "acme", "bob"), 3),
        (("reset", "acme", "bob"), 3),
    ],
)
def test_command_that_is_refused_makes_no_file(
    headwater: CommandLine, realm: str, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    refused = headwater("principal", *words, "--credentials", tmp_path / "new.json")

    assert (refused.exit_code, (tmp_path / "new.json").exists()) == (code, False)


def test_file_of_another_principal_is_refused(headwater: CommandLine, realm: str, alice: Path) -> None:
    created = headwater("principal", "create", realm, "bob", "--credentials", alice)
    rotated = headwater("realm", "rotate-credentials", realm, "--credentials", alice)

    assert (created.exit_code, rotated.exit_code) == (5, 5)
    assert "holds the credentials of principal 'alice', and not those of 'bob'" in created.stderr
    assert "and not those of 'root'" in rotated.stderr


def test_rotation_keeps_the_former_credentials_and_reset_does_not(
    headwater: CommandLine, realm: str, alice: Path, tmp_path: Path, name_of: Callable[[Path], str | None]
) -> None:
    second, third = tmp_path / "second.json", tmp_path / "third.json"
    headwater.ok("principal", "rotate", realm, "alice", "--credentials", second, "--overlap", "1h")
    assert [name_of(file) for file in (alice, second)] == ["alice", "alice"]

    headwater.ok("principal", "reset", realm, "alice", "--credentials", third)
    assert [name_of(file) for file in (alice, second, third)] == [None, None, "alice"]


def test_file_of_a_rotation_creates_nobody(headwater: CommandLine, realm: str, alice: Path, tmp_path: Path) -> None:
    headwater.ok("principal", "rotate", realm, "alice", "--credentials", tmp_path / "next.json")
    headwater.ok("principal", "drop", realm, "alice")

    refused = headwater("principal", "create", realm, "alice", "--credentials", tmp_path / "next.json")

    assert (refused.exit_code, "were to replace others" in refused.stderr) == (5, True)


def test_disabled_principal_is_shown_and_enabled_again(
    headwater: CommandLine, realm: str, alice: Path, name_of: Callable[[Path], str | None]
) -> None:
    disabled = headwater.data("principal", "disable", realm, "alice")
    assert disabled["disabled"] is not None
    assert name_of(alice) is None

    assert headwater.data("principal", "enable", realm, "alice")["disabled"] is None
    assert name_of(alice) == "alice"


def test_dropped_principal_is_gone_with_its_roles(
    headwater: CommandLine, realm: str, alice: Path, name_of: Callable[[Path], str | None]
) -> None:
    headwater.ok("role", "create", realm, "analysts", "--to", "alice")
    assert headwater.data("principal", "drop", realm, "alice")["roles"] == ["analysts"]

    assert name_of(alice) is None
    assert headwater.data("role", "show", realm, "analysts")["assignedTo"] == []
    assert [row["name"] for row in headwater.data("principal", "list", realm)] == ["root"]
    assert headwater("principal", "drop", realm, "alice").exit_code == 3


def test_root_is_not_dropped(headwater: CommandLine, realm: str) -> None:
    refused = headwater("principal", "drop", realm, "root")

    assert (refused.exit_code, "disable it if nobody should use it" in refused.stderr) == (5, True)


def test_new_principal_may_be_given_roles(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    headwater.ok("role", "create", realm, "analysts")
    made = headwater.data("principal", "create", realm, "bob", "--credentials", tmp_path / "bob.json", "--role", "analysts")

    assert made["roles"] == ["analysts"]
