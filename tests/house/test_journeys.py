"""How many files a reader opens who follows a journey through the house. The one on Spark is among the pipeline's tests."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_clock import FakeClock
from handmade_warehouse import make_by_hand
from headwater.catalogs import ContentKey
from headwater.settings import Settings
from headwater.store import Store, open_store
from kubetest import Namespace
from opened_files import FOLDER, Journey, check_limit, collection, commit, import_task, make_catalog, merge, realm_resource


@pytest.fixture
def memory_store(settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store("memory://", settings=settings, clock=clock) as opened:
        yield opened


@pytest.mark.parametrize("is_in_thread", [False, True])
def test_journey_has_the_files_of_all_calls(is_in_thread: bool) -> None:
    journey = Journey()

    with journey.traced():
        if is_in_thread:
            thread = threading.Thread(target=ContentKey.of, args=("sales",))
            thread.start()
            thread.join()
        else:
            ContentKey.of("sales")

    assert [str(FOLDER / file) for file in journey.files] == [inspect.getsourcefile(ContentKey)]


def test_commit_opens_few_files(tmp_path: Path) -> None:
    with open_store("memory://") as store:
        check_limit("commit", commit(make_catalog(store, tmp_path)))


def test_merge_command_opens_few_files(postgresql_url: str, tmp_path: Path) -> None:
    check_limit("merge command", merge(postgresql_url, tmp_path))


@pytest.mark.long
def test_new_realm_resource_opens_few_files(memory_store: Store, namespace: Namespace) -> None:
    check_limit("realm resource", realm_resource(namespace, memory_store))


@pytest.mark.long
def test_collection_opens_few_files(memory_store: Store, clock: FakeClock, tmp_path: Path) -> None:
    check_limit("collection", collection(memory_store, clock, tmp_path))


@pytest.mark.long
def test_import_in_process_opens_few_files(tmp_path: Path) -> None:
    make_by_hand(tmp_path / "warehouse")

    check_limit("import in process", import_task(tmp_path / "warehouse", tmp_path, on_spark=False))
