"""A dropped table's files in a bucket: the client reaches them by its own properties, and the worker by its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.fs
import pytest

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.tasks import Task, TaskState
from servers.s3 import S3_LOGIN, access_to, s3_server

pytestmark = pytest.mark.long

Work = Callable[..., Task]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an S3 server, to which nothing in the environment leads."""
    with s3_server() as url:
        for name in access_to(url):
            monkeypatch.delenv(name, raising=False)
        yield url


@pytest.fixture
def bucket(endpoint: str) -> pyarrow.fs.S3FileSystem:
    """A client of the server with the bucket ``lake``."""
    key, secret = S3_LOGIN.values()
    system = pyarrow.fs.S3FileSystem(
        access_key=key, secret_key=secret, region="us-east-1", endpoint_override=endpoint, allow_bucket_creation=True
    )
    system.create_dir("lake")
    return system


@pytest.fixture
def options(endpoint: str, tmp_path: Path) -> Path:
    """The file with the options of the bucket, for this catalog alone."""
    entry = {"location": "s3://lake", "realm": "acme", "catalog": "lake", "endpoint": endpoint} | S3_LOGIN
    file = tmp_path / "storage.json"
    file.write_text(json.dumps({"storages": [entry]}))
    return file


@pytest.fixture
def store(clock: FakeClock, tmp_path: Path, options: Path) -> Iterator[Store]:
    settings = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60, storage_file=str(options))
    with open_store(f"sqlite:///{tmp_path}/headwater.db", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def warehouse() -> str:
    return "s3://lake/warehouse"


@pytest.fixture
def open_shop(store: Store, lake: Catalog, bucket: pyarrow.fs.S3FileSystem, endpoint: str) -> Callable[..., HeadwaterCatalog]:
    reached = {f"s3.{name}": value for name, value in S3_LOGIN.items()} | {"s3.endpoint": endpoint, "s3.region": "us-east-1"}
    return lambda branch="main": HeadwaterCatalog.on(store, realm="acme", catalog="lake", branch=branch, **reached)


def names(bucket: pyarrow.fs.S3FileSystem) -> list[str]:
    return [info.path for info in bucket.get_file_info(pyarrow.fs.FileSelector("lake", recursive=True)) if info.is_file]


def test_dropped_table_in_a_bucket_is_purged(
    shop: HeadwaterCatalog, bucket: pyarrow.fs.S3FileSystem, pass_time: Callable[[], None], work: Work
) -> None:
    before = names(bucket)
    shop.purge_table("sales.orders")
    pass_time()
    task = work()

    assert task.state is TaskState.SUCCEEDED, task.error
    assert len(before) > 10 and names(bucket) == []
    assert bucket.get_file_info(pyarrow.fs.FileSelector("lake", recursive=True)) == [], "no object in the place of a folder"


def test_worker_without_options_deletes_nothing(
    shop: HeadwaterCatalog, bucket: pyarrow.fs.S3FileSystem, options: Path, pass_time: Callable[[], None], work: Work
) -> None:
    before = names(bucket)
    shop.purge_table("sales.orders")
    pass_time()
    options.unlink()
    task = work()

    assert task.state is not TaskState.SUCCEEDED
    assert names(bucket) == before
    assert S3_LOGIN["secret-access-key"] not in str(task)
