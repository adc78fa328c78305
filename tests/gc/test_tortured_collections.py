"""Everything at once, on a real clock and a real file, with graces far too short: no acknowledged commit is lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater import Settings, Store, open_store
from headwater.catalogs import ContentKey, IcebergTable, Put
from headwater.errors import HeadwaterError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from lakes import lake, make_lake, make_realm, put

SECONDS, MOST_SECONDS = 4.0, 40.0
ENOUGH = 3
GRACE = 0.25
SETTINGS = Settings(unsafe_short_graces=True, writer_grace_seconds=GRACE, reader_grace_seconds=GRACE, delete_batch=20)
BRANCHES = ("red", "green", "blue")


class Torture:
    """Threads that each act as a process of their own, until the time is up."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.seed = seed
        self.acknowledged: set[ContentKey] = set()
        self.done: Counter[str] = Counter()
        self.deleted = 0
        self.crashes: list[BaseException] = []
        self._begun = time.monotonic()

    @contextmanager
    def store(self) -> Iterator[Store]:
        with open_store(self.url, settings=SETTINGS) as opened:
            yield opened

    def happened(self) -> int:
        """How often the rarest of what matters happened."""
        return min(self.done["_commit"], self.done["collection"], self.deleted)

    def _is_over(self) -> bool:
        """On a busy machine it goes on until enough has happened."""
        passed = time.monotonic() - self._begun
        return passed > MOST_SECONDS or (passed > SECONDS and self.happened() > ENOUGH)

    def run(self) -> None:
        threads = [threading.Thread(target=self._keep_acting, args=(number,)) for number in range(3)]
        threads.append(threading.Thread(target=self._keep_collecting))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    def _keep_acting(self, number: int) -> None:
        chance = random.Random(self.seed * 10 + number)
        with self.store() as store:
            for turn in range(100_000):
                if self._is_over():
                    return
                act = chance.choice((self._commit, self._commit, self._branch, self._move, self._delete))
                try:
                    act(store, chance, ContentKey.of(f"table-{number}-{turn}"))
                    self.done[act.__name__] += 1
                except HeadwaterError:  # refused, beaten, or read what such short graces do not keep
                    self.done["refused"] += 1
                except BaseException as crash:  # noqa: BLE001 - told by the test
                    self.crashes.append(crash)
                    return

    def _keep_collecting(self) -> None:
        with self.store() as store:
            while not self._is_over():
                try:
                    self.deleted += collect_realm(store, "acme").deleted
                    self.done["collection"] += 1
                except HeadwaterError as fault:
                    self.crashes.append(fault)
                    return

    def _commit(self, store: Store, chance: random.Random, key: ContentKey) -> None:
        branch = chance.choice(("main", "main", *BRANCHES))
        lake(store).commit(branch, [Put(key, IcebergTable(metadata_location=f"s3://lake/{key}.json"))])
        if branch == "main":
            self.acknowledged.add(key)

    def _branch(self, store: Store, chance: random.Random, _: ContentKey) -> None:
        catalog = lake(store)
        history = [entry.id for entry in catalog.log(limit=6)]
        catalog.create_branch(chance.choice(BRANCHES), at=chance.choice(history))

    def _move(self, store: Store, chance: random.Random, _: ContentKey) -> None:
        catalog = lake(store)
        history = [entry.id for entry in catalog.log(limit=6)]
        catalog.assign_branch(chance.choice(BRANCHES), chance.choice(history))

    def _delete(self, store: Store, chance: random.Random, _: ContentKey) -> None:
        lake(store).delete_branch(chance.choice(BRANCHES))


@pytest.mark.long
def test_acknowledged_commit_is_there_after_everything_at_once(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    torture = Torture(f"sqlite:///{tmp_path}/store.db", seed)
    with torture.store() as store:
        make_realm(store, commits=3)
        put(make_lake(store), 1)
    torture.run()

    assert torture.crashes == []
    assert torture.happened() > ENOUGH, torture.done
    with torture.store() as store:
        collect_realm(store, "acme")
        assert torture.acknowledged == set(lake(store).get_contents("main", torture.acknowledged))
        assert [finding for finding in check_store(store) if finding.code != "NAME_WITHOUT_ROW"] == []
