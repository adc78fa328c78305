"""Collections of files on an object store, by pyarrow's client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow.fs
import pytest
from collected_tables import HOUR, CollectedTable, reference_to

from fake_clock import FakeClock
from headwater.files import TrackedFile
from headwater.files.data_folder import DataFolder, DeletionResult, FileDeletion
from servers.s3 import access_to, s3_server

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def system(s3: str, monkeypatch: pytest.MonkeyPatch) -> pyarrow.fs.FileSystem:
    for name, value in access_to(s3).items():
        monkeypatch.setenv(name, value)
    opened, _ = pyarrow.fs.FileSystem.from_uri("s3://lake?allow_bucket_creation=true")
    opened.create_dir("lake")
    return opened


def test_files_on_s3_are_collected_like_others(table: CollectedTable, system: pyarrow.fs.FileSystem, clock: FakeClock) -> None:
    folder = DataFolder("s3://lake/orders/data")
    written = [name.rpartition("/")[2] for name in (table.write_file(), table.write_file(hours_ago=30), table.write_file())]
    for name in (*written, "notes.txt"):
        system.open_output_stream(f"lake/orders/data/{name}").close()
    kept, stray, unreferenced = (f"{folder.location}/{name}" for name in written)
    remote = replace(table, folder=folder)
    table.references.add_files(
        [TrackedFile(filename=kept, references=(reference_to(kept),)), TrackedFile(filename=unreferenced)]
    )
    first = remote.collect()
    clock.advance(4 * HOUR)
    second = remote.collect()

    assert (first.listed, first.unknown, first.strays, first.marked) == (4, 1, 1, 2)
    assert (second.deleted, second.missing, second.failed) == (2, 0, 0)
    assert sorted(folder.list_files()) == sorted([kept, f"{folder.location}/notes.txt"])
    assert not table.is_tracked(stray)


def test_missing_object_is_success(system: pyarrow.fs.FileSystem) -> None:
    folder = DataFolder("s3://lake/other/data")
    missing = f"{folder.location}/0123456789abcdef-0.parquet"

    assert list(folder.delete_files([missing], pause=lambda seconds: None)) == [FileDeletion(missing, DeletionResult.MISSING)]
    assert not folder.has_stored(missing)


SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class SlowStorage(BaseHTTPRequestHandler):
    """Answers as S3 does under load: looks are allowed, deletions are not as long as it is busy."""

    protocol_version = "HTTP/1.1"
    is_busy = True

    def do_HEAD(self) -> None:
        self._answer(200, b"")

    def do_DELETE(self) -> None:
        self._answer(*((503, SLOW_DOWN) if self.is_busy else (204, b"")))

    def do_PUT(self) -> None:
        self._answer(200, b"")

    def do_GET(self) -> None:
        self._answer(200, b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def slow_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SlowStorage]]:
    SlowStorage.is_busy = True
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowStorage)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name, value in access_to(f"http://127.0.0.1:{server.server_port}").items():
        monkeypatch.setenv(name, value)
    yield SlowStorage
    server.shutdown()
    thread.join()
    server.server_close()


def test_object_store_that_asks_to_slow_down_is_understood(slow_s3: type[SlowStorage]) -> None:
    folder, pauses = DataFolder("s3://lake/slow/data"), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        slow_s3.is_busy = False

    (deletion,) = folder.delete_files([f"{folder.location}/0123456789abcdef-0.parquet"], pause=pause)

    assert (deletion.result, pauses) == (DeletionResult.DELETED, [1])
