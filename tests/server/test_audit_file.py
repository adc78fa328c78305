"""The file of the audit log: lines are whole, follow its name, and a fault is told."""

from __future__ import annotations

import json
import resource
import signal
import stat
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from headwater.errors import RefusedError
from headwater_server.access_log import RequestRecord
from headwater_server.audit_file import AuditFile
from headwater_server.audit_log import open_audit_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"  # one of its own, which a test may move away
    folder.mkdir()
    return folder / "audit.log"


def record_of(path: str, *, is_probe: bool = False) -> RequestRecord:
    return RequestRecord(method="GET", path=path, query="", client="10.0.0.1", request_id="r1", status=200, is_probe=is_probe)


def test_lines_of_an_earlier_process_stay(path: Path) -> None:
    path.write_text("earlier\n")
    AuditFile(str(path), clock=FakeClock()).append(b"later\n")

    assert path.read_text() == "earlier\nlater\n"


def test_only_the_owner_may_read_the_file(path: Path) -> None:
    AuditFile(str(path), clock=FakeClock()).append(b"line\n")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_lines_follow_the_name_after_the_file_was_moved(path: Path) -> None:
    clock = FakeClock()
    file = AuditFile(str(path), clock=clock)
    file.append(b"one\n")
    moved = path.rename(path.with_name("audit.log.1"))
    clock.advance(2)
    file.append(b"two\n")
    file.append(b"three\n")

    assert (moved.read_text(), path.read_text()) == ("one\n", "two\nthree\n")


def test_lines_go_on_where_the_folder_was_away_for_a_while(path: Path) -> None:
    clock = FakeClock()
    file = AuditFile(str(path), clock=clock)
    away = path.parent.rename(path.parent.with_name("away"))
    clock.advance(2)

    with pytest.raises(FileNotFoundError):
        file.append(b"lost\n")
    away.rename(path.parent)
    file.append(b"kept\n")

    assert path.read_text() == "kept\n"


def test_lines_of_many_threads_stay_whole(path: Path) -> None:
    file = AuditFile(str(path), clock=FakeClock())
    threads = [
        threading.Thread(target=lambda mark=mark: [file.append(mark * 300 + b"\n") for _ in range(50)])  # type: ignore[misc]
        for mark in (b"a", b"b", b"c", b"d")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(path.read_bytes().split()) == sorted([mark * 300 for mark in (b"a", b"b", b"c", b"d")] * 50)


def test_requests_have_a_line_each_and_probes_none(path: Path) -> None:
    write = open_audit_log(str(path), clock=FakeClock()).write
    for record in (record_of("/one"), record_of("/healthz", is_probe=True), record_of("/two")):
        write(record)

    assert [json.loads(line)["path"] for line in path.read_text().splitlines()] == ["/one", "/two"]


def test_line_that_cannot_be_written_is_logged(path: Path) -> None:
    clock = FakeClock()
    write = open_audit_log(str(path), clock=clock).write
    path.parent.rename(path.parent.with_name("away"))
    clock.advance(2)
    with capture_logs() as lines:
        write(record_of("/one"))

    assert [line["event"] for line in lines] == ["a line of the audit log was not written"]


def test_file_that_cannot_be_opened_is_refused(path: Path) -> None:
    with pytest.raises(RefusedError, match=r"HEADWATER_SERVER_AUDIT_FILE: .*no-folder/audit\.log: No such file or directory"):
        open_audit_log(str(path.parent / "no-folder" / path.name), clock=FakeClock())


def test_line_after_a_torn_one_begins_anew(path: Path) -> None:
    """A disk that is full in the middle of a line: here, a file that may not grow beyond a size."""
    file = AuditFile(str(path), clock=FakeClock())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(OSError):
            file.append(b"a line of more than ten bytes\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    file.append(b"whole\n")

    assert path.read_bytes() == b"a line of \nwhole\n"
