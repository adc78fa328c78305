"""Root credentials in files: durable before the bootstrap, one set for each realm, seen by nobody else."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.errors import CorruptionError, UnavailableError
from headwater.realms import Credentials, new_credentials
from headwater.reconcile import FileCredentials
from headwater.store import RealmId

ACME = RealmId("acme")


def test_credentials_are_kept_in_a_file_of_their_realm(sink: FileCredentials) -> None:
    credentials = new_credentials()

    assert sink.write_credentials(ACME, credentials) == credentials
    assert json.loads(Path(sink.place(ACME)).read_text()) == {
        "realm": "acme",
        "clientId": credentials.client_id,
        "clientSecret": credentials.client_secret,
        "credential": f"acme.{credentials.client_id}:{credentials.client_secret}",
    }


def test_credentials_file_is_read_by_its_owner_alone(sink: FileCredentials) -> None:
    sink.write_credentials(ACME, new_credentials())

    assert stat.S_IMODE(Path(sink.place(ACME)).stat().st_mode) == 0o600
    assert stat.S_IMODE(sink.folder.stat().st_mode) == 0o700


def test_first_set_is_kept(sink: FileCredentials) -> None:
    first = sink.write_credentials(ACME, new_credentials())

    assert sink.write_credentials(ACME, new_credentials()) == first


def test_credentials_file_by_many_writers_has_one_set(sink: FileCredentials) -> None:
    with ThreadPoolExecutor(8) as pool:
        kept = set(pool.map(lambda _: sink.write_credentials(ACME, new_credentials()), range(40)))

    assert len(kept) == 1
    assert [file.name for file in sink.folder.iterdir()] == ["acme.json"]


def test_removed_credentials_are_gone_and_may_be_removed_again(sink: FileCredentials) -> None:
    first = sink.write_credentials(ACME, new_credentials())

    sink.remove_credentials(ACME, confirm)
    sink.remove_credentials(ACME, confirm)

    assert sink.write_credentials(ACME, new_credentials()) != first


def test_file_put_there_since_stays(sink: FileCredentials) -> None:
    sink.write_credentials(ACME, new_credentials())
    later = new_credentials()

    sink.remove_credentials(ACME, lambda: write_anew(sink, later))

    assert sink.write_credentials(ACME, new_credentials()) == later


def write_anew(sink: FileCredentials, credentials: Credentials) -> None:
    sink.remove_credentials(ACME, confirm)
    sink.write_credentials(ACME, credentials)


def confirm() -> None:
    """They are still those that are to be removed."""


def test_damaged_file_is_told_without_what_is_in_it(sink: FileCredentials) -> None:
    sink.write_credentials(ACME, new_credentials())
    Path(sink.place(ACME)).write_text('{"clientId": "a", "clientSecret": "hunter2"')

    with pytest.raises(CorruptionError, match="holds no credentials") as refused:
        sink.write_credentials(ACME, new_credentials())

    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UnavailableError, match="credentials of realm 'acme' cannot be written to"):
        FileCredentials(tmp_path / "file" / "folder").write_credentials(ACME, new_credentials())
