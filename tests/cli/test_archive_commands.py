"""Exporting and importing realms from the command line."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from commandline import CommandLine

from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.catalogs import Catalogs, ContentKey, Namespace, Put
from headwater.clock import as_text
from headwater.commits import COLLECTION_ID, CollectionRecord
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.tasks import TaskQueue

OLD = 2 * 3600
"""Seconds: older than clocks may differ, and younger than what is remembered of deletions."""


@pytest.fixture
def acme(url: str) -> str:
    """A realm that was filled two hours ago, by two commits to its catalog."""
    with open_store(url, clock=FakeClock((int(time.time()) - OLD) * 1_000_000)) as store:
        realms = RealmRegistry(store)
        realms.create_realm("acme")
        bootstrap(realms, "acme", hash_credentials(new_credentials()))
        catalogs = Catalogs(realms.open_realm("acme"))
        catalogs.create_catalog("lake", base_location="s3://lake/")
        for name in ("hr", "sales"):
            catalogs.open_catalog("lake").commit(None, [Put(ContentKey.of(name), Namespace())])
    return "acme"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "acme.realm"


@pytest.mark.usefixtures("acme")
def test_realm_is_exported_and_imported_under_another_id(headwater: CommandLine, file: Path) -> None:
    exported = headwater.data("realm", "export", "acme", file)
    imported = headwater.data("realm", "import", file, "copy")

    assert (imported["realm"], imported["state"], imported["exportedRealm"]) == ("copy", "ACTIVE", "acme")
    assert imported["digest"] == exported["digest"]
    assert headwater.data("catalog", "list", "copy")[0]["name"] == "lake"


@pytest.mark.usefixtures("acme")
def test_log_of_an_imported_realm_says_where_the_rest_stayed(headwater: CommandLine, file: Path) -> None:
    headwater.ok("realm", "export", "acme", file)
    headwater.ok("realm", "import", file, "copy")

    assert "stayed out of the archive" in headwater("catalog", "log", "copy/lake").stderr


@pytest.mark.usefixtures("acme")
def test_archive_can_be_read_by_its_owner_alone(headwater: CommandLine, file: Path) -> None:
    headwater.ok("realm", "export", "acme", file)

    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("acme")
def test_export_overwrites_no_file(headwater: CommandLine, file: Path) -> None:
    file.write_text("precious")

    assert headwater("realm", "export", "acme", file).exit_code == 5
    assert file.read_text() == "precious"


@pytest.mark.usefixtures("acme")
def test_moment_that_cannot_be_read_yet_is_refused_until_when(headwater: CommandLine, file: Path) -> None:
    now = int(time.time())
    result = headwater("realm", "export", "acme", file, "--as-of", as_text(now * 1_000_000))

    assert result.exit_code == 5
    assert as_text((now + 5400 + 15) * 1_000_000) in result.stderr


@pytest.mark.usefixtures("acme")
def test_export_that_waits_is_left_to_a_worker(headwater: CommandLine, file: Path, url: str) -> None:
    task = headwater.data("realm", "export", "acme", file, "--wait", "--detach")

    with open_store(url) as store:
        found = next(seen.value for seen in TaskQueue(store).list_tasks(kind="export"))
    assert found.due - found.arguments["asOf"] == (5400 + 15) * 1_000_000
    assert task["state"] == "WAITING"


@pytest.mark.usefixtures("acme")
def test_export_waits_here_for_the_end_of_a_sweep(headwater: CommandLine, file: Path, url: str) -> None:
    with open_store(url) as store:
        rows = RealmRegistry(store).open_realm("acme")
        sweeping = rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))
        ending = threading.Timer(0.3, lambda: rows.update_object(sweeping, CollectionRecord()))
        ending.start()
        result = headwater("realm", "export", "acme", file)
        ending.join()

    assert (result.exit_code, file.exists()) == (0, True)
    assert "waiting for its end" in result.stderr


@pytest.mark.usefixtures("acme")
def test_archive_is_not_imported_over_a_realm(headwater: CommandLine, file: Path) -> None:
    headwater.ok("realm", "export", "acme", file)

    result = headwater("realm", "import", file, "acme")
    assert (result.exit_code, "ACTIVE" in result.stderr) == (5, True)
    assert [task["kind"] for task in headwater.data("task", "list")] == ["export"]


def test_file_that_is_no_archive_is_refused_before_a_task(headwater: CommandLine, file: Path, url: str) -> None:
    file.write_text("a letter")

    result = headwater("realm", "import", file, "copy")
    assert (result.exit_code, "not an archive" in result.stderr) == (5, True)
    with open_store(url, settings=Settings()) as store:
        assert not TaskQueue(store).list_tasks(kind="load")


@pytest.mark.usefixtures("acme")
def test_damaged_archive_leaves_no_task_that_waits(headwater: CommandLine, file: Path) -> None:
    headwater.ok("realm", "export", "acme", file)
    file.write_bytes(file.read_bytes()[:-40])

    result = headwater("realm", "import", file, "copy")

    assert (result.exit_code, "waits" in result.stderr) == (8, False)
    assert [task["state"] for task in headwater.data("task", "list", "--kind", "load")] == ["FAILED"]


def test_second_import_of_another_file_into_the_realm_is_refused(headwater: CommandLine, tmp_path: Path) -> None:
    headwater.ok("realm", "import", tmp_path / "one", "copy", "--detach")

    assert headwater("realm", "import", tmp_path / "two", "copy", "--detach").exit_code == 5


def test_time_is_written_with_its_zone_or_meant_in_utc(headwater: CommandLine, file: Path) -> None:
    assert headwater("realm", "export", "acme", file, "--as-of", "yesterday").exit_code == 2


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:00", "1969-12-31", "9999-12-31T23:59:59-23:00"])
def test_moment_beyond_every_store_is_a_wrong_command_line(headwater: CommandLine, file: Path, moment: str) -> None:
    refused = headwater("realm", "export", "acme", file, "--as-of", moment)

    assert refused.exit_code == 2
    assert "from 1970 to 9999" in refused.output
