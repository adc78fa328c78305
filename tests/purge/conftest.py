"""A shop whose table has a few versions on disk, in a store whose graces end when the clock says so, and a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog, Catalogs
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.gc import collect_realm
from headwater.jobs import PURGE_TABLE
from headwater.realms import REALM_REFERENCES, HistoryRetention, RealmRegistry, RealmState
from headwater.tasks import LeaseExpiry, Task, TaskQueue
from headwater_workers.task_executor import execute_task

HOUR = 3600.0
Work = Callable[..., Task]


@pytest.fixture
def store(clock: FakeClock, tmp_path: Path) -> Iterator[Store]:
    graces = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60)
    url = f"sqlite:///{tmp_path}/headwater.db"
    with open_store(url, settings=graces, clock=clock) as opened:
        yield opened


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return (tmp_path / "warehouse").as_uri()


@pytest.fixture
def lake(store: Store, warehouse: str) -> Catalog:
    """In a realm that keeps no more history than the heads."""
    realms = RealmRegistry(store)
    kept = HistoryRetention(content_age_seconds=0, content_commits=1, reference_commits=1)
    realms.move_realm(realms.create_realm("acme", retention=kept), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    catalogs = Catalogs(realms.open_realm("acme"))
    catalogs.create_catalog("lake", base_location=warehouse)
    return catalogs.open_catalog("lake")


@pytest.fixture
def open_shop(store: Store, lake: Catalog) -> Callable[..., HeadwaterCatalog]:
    """A client of a branch: ``open_shop("dev")``."""
    return lambda branch="main": HeadwaterCatalog.on(store, realm="acme", catalog="lake", branch=branch)


@pytest.fixture
def shop(open_shop: Callable[..., HeadwaterCatalog], rows: pa.Table) -> HeadwaterCatalog:
    """With the table ``sales.orders`` of three snapshots, one of which deletes a row."""
    client = open_shop()
    client.create_namespace("sales")
    table = client.create_table("sales.orders", rows.schema)
    table.append(rows)
    table.append(rows)
    table.delete("id = 1")
    return client


@pytest.fixture
def rows() -> pa.Table:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("customer", pa.string())])
    return pa.table({"id": [1, 2], "customer": ["ann", "bob"]}, schema=columns)


@pytest.fixture
def place(shop: HeadwaterCatalog) -> Path:
    """The folder of ``sales.orders``."""
    return Path(shop.load_table("sales.orders").location().removeprefix("file://"))


@pytest.fixture
def pass_time(store: Store, shop: HeadwaterCatalog, clock: FakeClock) -> Callable[[], None]:
    """Another commit, then all graces end, and a collection runs."""
    numbers = iter(range(100))

    def act() -> None:
        shop.create_namespace(f"later{next(numbers)}")
        clock.advance(HOUR)
        collect_realm(store, "acme")

    return act


@pytest.fixture
def work(store: Store, clock: FakeClock) -> Work:
    """A worker does the one purge that there is; returns its task."""

    def act(**options: Any) -> Task:
        (seen,) = TaskQueue(store).list_tasks(kind=PURGE_TABLE, limit=1)
        clock.advance(max(seen.value.due - clock.now(), 0) / 1_000_000)
        with capture_logs():
            execute_task(store, seen.id, LeaseExpiry(None), owner="here", is_stopping=lambda: False, **options)
        return TaskQueue(store).read_task(seen.id).value

    return act


@pytest.fixture
def files(place: Path) -> Callable[[], set[str]]:
    """The names of all files that lie in the table's folder now."""
    return lambda: {file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file()}
