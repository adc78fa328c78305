"""A catalog's storage over S3, by options and with nothing in the environment: moto, and SeaweedFS as a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import botocore.session
import pyarrow.fs
import pytest

from headwater.errors import ConflictError, HeadwaterError, RefusedError, UnavailableError
from headwater.iceberg import FileInfo, MissingFileError, StorageFile, TableStorage
from servers.s3 import S3_LOGIN, s3_server
from servers.seaweedfs import seaweedfs_server

pytestmark = pytest.mark.long

SECRET = S3_LOGIN["secret-access-key"]
SERVERS = {"moto": s3_server, "seaweedfs": seaweedfs_server}
MakeStorage = Callable[..., TableStorage]


@pytest.fixture(scope="module", params=list(SERVERS))
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server with the bucket ``lake``."""
    with SERVERS[request.param]() as url:
        system = pyarrow.fs.S3FileSystem(
            access_key=S3_LOGIN["access-key-id"],
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=url,
            allow_bucket_creation=True,
        )
        system.create_dir("lake")
        yield url


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credential, and no address, of the environment: none may be needed."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def make_storage(tmp_path: Path) -> MakeStorage:
    """The storage of the catalog ``lake`` with one entry: ``make_storage(endpoint=...)``."""

    def make(**fields: Any) -> TableStorage:
        entry = {"location": "s3://lake"} | S3_LOGIN | {name.replace("_", "-"): value for name, value in fields.items()}
        file = tmp_path / "storage.json"
        file.write_text(json.dumps({"storages": [entry]}))
        return TableStorage(StorageFile(str(file)), realm="acme", catalog="lake")

    return make


@pytest.fixture
def storage(make_storage: MakeStorage, endpoint: str) -> TableStorage:
    return make_storage(endpoint=endpoint)


@pytest.fixture
def place() -> str:
    return f"s3://lake/sales/orders_{uuid4().hex}"


def test_file_is_written_read_and_deleted(storage: TableStorage, place: str) -> None:
    file = f"{place}/metadata/00001-a.metadata.json"
    before = storage.exists(file)
    storage.write_new(file, b"text")
    read, there = storage.read_bytes(file), storage.exists(file)
    for _ in range(2):
        storage.delete(file)

    assert (before, read, there, storage.exists(file)) == (False, b"text", True, False)


def test_deletion_leaves_no_object_behind(storage: TableStorage, endpoint: str, place: str) -> None:
    """pyarrow's own deletion stores an empty object in the place of the folder."""
    files = [f"{place}/data/{name}" for name in ("a.parquet", "ü [b]*%20.parquet")]
    for file in files:
        storage.write_new(file, b"text")
    assert len(keys_below(endpoint, place)) == 2
    for file in files:
        storage.delete(file)

    assert keys_below(endpoint, place) == []


def keys_below(endpoint: str, place: str) -> list[str]:
    client = botocore.session.Session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id=S3_LOGIN["access-key-id"],
        aws_secret_access_key=SECRET,
    )
    listed = client.list_objects_v2(Bucket="lake", Prefix=place.removeprefix("s3://lake/"))
    return [entry["Key"] for entry in listed.get("Contents", ())]


def test_large_file_is_written_whole(storage: TableStorage, place: str) -> None:
    text = b"0123456789abcdef" * (1 << 20)  # more than one part of an upload
    storage.write_new(f"{place}/large.json", text)

    assert storage.read_bytes(f"{place}/large.json") == text
    with pytest.raises(RefusedError, match="at most 100 are read"):
        storage.read_bytes(f"{place}/large.json", limit=100)


def test_file_is_not_overwritten(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/v1.json", b"text")
    storage.write_new(f"{place}/v1.json", b"text")

    with pytest.raises(ConflictError, match="nothing is overwritten"):
        storage.write_new(f"{place}/v1.json", b"else")
    assert storage.read_bytes(f"{place}/v1.json") == b"text"


def test_missing_file_is_told(storage: TableStorage, place: str) -> None:
    with pytest.raises(MissingFileError):
        storage.read_bytes(f"{place}/v1.json")


@pytest.mark.parametrize("endpoint", ["moto"], indirect=True)  # SeaweedFS makes a bucket that is written to
def test_missing_bucket_is_told(make_storage: MakeStorage, endpoint: str) -> None:
    storage = make_storage(endpoint=endpoint, location="s3://nothing")

    with pytest.raises(RefusedError, match=r"cannot write s3://nothing/v1\.json: its bucket does not exist"):
        storage.write_new("s3://nothing/v1.json", b"text")
    assert not storage.exists("s3://nothing/v1.json")


@pytest.mark.parametrize("name", ["with space", "50%", "a+b", "<é>", "a=b", "a,b"])
def test_names_are_taken_as_they_are(storage: TableStorage, place: str, name: str) -> None:
    storage.write_new(f"{place}/{name}/v1.json", name.encode())

    assert storage.read_bytes(f"{place}/{name}/v1.json") == name.encode()
    assert [file.path for file in storage.lake.list_folder(f"{place}/{name}")] == [f"{place}/{name}/v1.json"]


def test_two_schemes_name_one_bucket(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/v1.json", b"text")

    assert storage.read_bytes(f"{place}/v1.json".replace("s3://", "s3a://")) == b"text"


def test_threads_share_a_storage(storage: TableStorage, place: str) -> None:
    def write_and_read(number: int) -> bytes:
        storage.write_new(f"{place}/{number}.json", b"%d" % number)
        return storage.lake.read_file(FileInfo(f"{place}/{number}.json", 0))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write_and_read, range(16))) == [b"%d" % number for number in range(16)]


def test_renewed_credentials_take_effect(make_storage: MakeStorage, endpoint: str, place: str) -> None:
    storage = make_storage(endpoint="http://127.0.0.1:9")
    with pytest.raises(UnavailableError):
        storage.write_new(f"{place}/v1.json", b"text")
    make_storage(endpoint=endpoint, region="eu-central-1")

    storage.write_new(f"{place}/v1.json", b"text")
    assert storage.client_config(place)["s3.endpoint"] == endpoint


class Refusal(BaseHTTPRequestHandler):
    """A storage that answers everything with what it was sent, as none should."""

    def _answer(self) -> None:
        body = f"<Error><Code>Strange</Code><Message>{self.headers} {SECRET}</Message></Error>".encode()
        self.send_response(400)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815  # names of the standard library

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def refusing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_errors_tell_no_credential(make_storage: MakeStorage, refusing: str, place: str) -> None:
    storage = make_storage(endpoint=refusing)
    uses = (storage.read_bytes, storage.exists, storage.delete, lambda file: storage.write_new(file, b"text"))

    for use in uses:
        with pytest.raises(HeadwaterError) as error:
            use(f"{place}/v1.json")
        assert not [secret for secret in (SECRET, S3_LOGIN["access-key-id"]) if secret in str(error.value)]
        assert error.value.__cause__ is None and error.value.__suppress_context__
