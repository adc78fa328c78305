"""How many files a reader opens who follows a journey. Only the report runs this: ``rulers.py --journeys``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_clock import FakeClock
from handmade_warehouse import make_by_hand
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_workers.pipeline import find_engine
from kubetest import Namespace
from opened_files import (
    collection,
    commit,
    import_in_own_process,
    import_task,
    make_catalog,
    merge,
    realm_resource,
    record_journey,
)


@pytest.fixture
def memory_store(settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store("memory://", settings=settings, clock=clock) as opened:
        yield opened


def test_commit(tmp_path: Path) -> None:
    with open_store("memory://") as store:
        record_journey("commit", commit(make_catalog(store, tmp_path)))


def test_merge_command(postgresql_url: str, tmp_path: Path) -> None:
    record_journey("merge command", merge(postgresql_url, tmp_path))


def test_new_realm_resource(memory_store: Store, namespace: Namespace) -> None:
    record_journey("realm resource", realm_resource(namespace, memory_store))


def test_collection(memory_store: Store, clock: FakeClock, tmp_path: Path) -> None:
    record_journey("collection", collection(memory_store, clock, tmp_path))


def test_import_in_process(tmp_path: Path) -> None:
    make_by_hand(tmp_path / "warehouse")

    record_journey("import in process", import_task(tmp_path / "warehouse", tmp_path, on_spark=False))


@pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings())))
def test_import_on_spark(tmp_path: Path) -> None:
    make_by_hand(tmp_path / "warehouse")

    record_journey("import on Spark", import_in_own_process(tmp_path / "warehouse", tmp_path))
