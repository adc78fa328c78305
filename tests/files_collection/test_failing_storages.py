"""A storage that fails keeps the records of its files, and one that asks to slow down is asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from collected_tables import HOUR, CollectedTable, make_collected_table
from fsspec.implementations.local import LocalFileSystem

from fake_clock import FakeClock
from headwater import Store


class UnsteadyFileSystem(LocalFileSystem):
    """Local files, whose deletion fails as often as ``failures`` says, by name; with the text that a storage would say."""

    protocol = "unsteady"
    failures: Counter[str] = Counter()
    text = "Please reduce your request rate (SlowDown)"
    calls: Counter[str] = Counter()

    def rm_file(self, path: str) -> None:
        name = path.rpartition("/")[2]
        self.calls[name] += 1
        if self.failures[name] > 0:
            self.failures[name] -= 1
            raise OSError(self.text)
        super().rm_file(path)


@pytest.fixture
def storage() -> Iterator[type[UnsteadyFileSystem]]:
    fsspec.register_implementation("unsteady", UnsteadyFileSystem, clobber=True)
    UnsteadyFileSystem.failures = Counter()
    UnsteadyFileSystem.calls = Counter()
    UnsteadyFileSystem.text = "Please reduce your request rate (SlowDown)"
    yield UnsteadyFileSystem


@pytest.fixture
def table(store: Store, tmp_path: Path, storage: object) -> CollectedTable:
    path = tmp_path / "orders" / "data"
    return make_collected_table(store, path, location=f"unsteady://{path}")


@pytest.fixture
def due(table: CollectedTable, clock: FakeClock) -> list[str]:
    """Three files that may be deleted."""
    unreferenced = table.make_unreferenced(3)
    table.collect()
    clock.advance(4 * HOUR)
    return unreferenced


def name_of(filename: str) -> str:
    return filename.rpartition("/")[2]


def test_storage_that_asks_to_slow_down_gets_its_pauses(
    table: CollectedTable, due: list[str], storage: type[UnsteadyFileSystem], clock: FakeClock
) -> None:
    storage.failures[name_of(due[1])] = 3
    before = clock.monotonic()
    collected = table.collect()

    assert (collected.deleted, collected.failed) == (3, 0)
    assert clock.monotonic() - before == pytest.approx(1 + 2 + 4)
    assert storage.calls[name_of(due[0])] == 1


def test_storage_that_is_slow_for_ever_keeps_its_records(
    table: CollectedTable, due: list[str], storage: type[UnsteadyFileSystem]
) -> None:
    storage.failures[name_of(due[1])] = 1000
    collected = table.collect()

    assert (collected.deleted, collected.failed, collected.postponed) == (2, 1, 0)
    assert table.is_tracked(due[1]) and not table.is_tracked(due[0])
    assert "slow down, again and again" in collected.failures[0]["reason"]
    assert storage.calls[name_of(due[1])] == 8


def test_failed_file_is_reported_and_stops_no_other(
    table: CollectedTable, due: list[str], storage: type[UnsteadyFileSystem]
) -> None:
    storage.text = "the disk is on fire"
    storage.failures[name_of(due[0])] = 1
    collected = table.collect()

    assert collected.failures == [{"file": due[0], "reason": "OSError: the disk is on fire"}]
    assert (collected.deleted, collected.failed, table.is_tracked(due[0])) == (2, 1, True)


def test_failed_file_goes_with_the_next_collection(
    table: CollectedTable, due: list[str], storage: type[UnsteadyFileSystem]
) -> None:
    storage.text = "the disk is on fire"
    storage.failures[name_of(due[0])] = 1
    table.collect()

    assert (table.collect().deleted, table.is_tracked(due[0])) == (1, False)
