"""The checker of histories finds each thing that can be wrong, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines.model import (
    COMMIT,
    LOOK,
    Event,
    Journal,
    Kept,
    Outcome,
    faults_of_histories,
    garbage_is_gone,
    heads_can_be_read,
    marker_of,
    purged_realms_have_no_rows,
    read_journals,
)
from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put, RefKind
from headwater.catalogs.registry import content_reference
from headwater.commits import commit_change, read_head
from headwater.errors import CorruptionError
from headwater.gc import collect_realm
from headwater.index import IndexValue
from headwater.realms import REALM_REFERENCES, HistoryRetention, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import ObjectId, Store
from headwater.store.backends.memory import MemoryBackend

HOUR = 3600.0


class Small:
    """One client and one realm, whose branch ``main`` gets a few commits."""

    def __init__(self, settings: Settings) -> None:
        self.clock = FakeClock()
        self.store = Store(MemoryBackend(), url="memory://", settings=settings, clock=self.clock)
        realms = RealmRegistry(self.store)
        wanted = HistoryRetention(content_commits=2, content_age_seconds=1, reference_commits=2)
        realm = realms.move_realm(realms.create_realm("acme", retention=wanted), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        self.realm = realms.move_realm(realm, RealmState.ACTIVE)
        self.rows = realms.open_realm("acme")
        Catalogs(self.rows).create_catalog("lake")
        self.main = content_reference(self.lake.definition.id, RefKind.BRANCH, "main")
        self.journal = Journal(now=self.clock.now)

    @property
    def lake(self) -> Catalog:
        return Catalogs(self.rows).open_catalog("lake")

    def commit(self, number: int) -> None:
        marker = marker_of("a", number)
        self.clock.advance(60)

        def work(found: dict[str, Any]) -> None:
            done = self.lake.commit("main", [Put(ContentKey.of(marker), IcebergTable(metadata_location=f"s3://{marker}"))])
            self.clock.advance(1)
            found["commit"] = done.commit_id

        self.journal.act("a", COMMIT, work, key=self.realm.key, reference=self.main, marker=marker)

    def look(self, *, seq: int, markers: int) -> None:
        def work(found: dict[str, Any]) -> None:
            self.clock.advance(1)
            found |= {"seq": seq, "markers": markers}

        self.clock.advance(1)
        self.journal.act("b", LOOK, work, key=self.realm.key, reference=self.main)

    def faults(self) -> list[str]:
        return faults_of_histories(self.store, self.journal.events, lasting={self.main: 0})

    @property
    def events(self) -> list[Event]:
        return self.journal.events


@pytest.fixture
def small(settings: Settings) -> Small:
    made = Small(settings)
    for number in range(3):
        made.commit(number)
    return made


def test_history_that_is_as_told_has_no_faults(small: Small) -> None:
    small.look(seq=3, markers=3)

    assert small.faults() == []
    assert heads_can_be_read(small.store) == []
    assert purged_realms_have_no_rows(small.store) == []


def test_acknowledged_commit_that_is_not_there_is_found(small: Small) -> None:
    small.events.append(msgspec.structs.replace(small.events[0], marker=marker_of("lost"), number=9))

    assert any("is lost" in fault for fault in small.faults())


def test_refused_commit_that_is_there_is_found(small: Small) -> None:
    small.events[1].outcome = Outcome.REFUSED

    assert any("was told that it is not" in fault for fault in small.faults())


def test_open_commit_may_be_there_or_not(small: Small) -> None:
    small.events[1].outcome = Outcome.UNKNOWN
    small.events.append(Event(client="c", number=1, action=COMMIT, reference=small.main, marker=marker_of("c")))

    assert small.faults() == []


def test_commit_that_nobody_asked_for_is_found(small: Small) -> None:
    del small.events[1]

    assert any("was never asked for" in fault for fault in small.faults())


def test_content_id_that_begins_like_a_marker_is_none(small: Small) -> None:
    commit_change(small.rows, "policy-mappings", lambda tx: tx.index("ids").put(b"m-\x9d\x07", IndexValue(None, b"")))

    assert small.faults() == []


def test_commit_that_is_there_twice_is_found(small: Small) -> None:
    twice = ContentKey.of(small.events[0].marker)
    there = small.lake.get_content("main", twice)
    assert there is not None
    small.lake.commit("main", [Put(twice, IcebergTable(id=there.id, metadata_location="s3://again"))])

    assert any("both put" in fault for fault in small.faults())
    assert any("4 commits since the beginning put 3" in fault for fault in small.faults())


def test_commit_under_another_id_than_was_told_is_found(small: Small) -> None:
    small.events[0].found["commit"] = ObjectId(5)

    assert any("its client was told" in fault for fault in small.faults())


def test_marker_of_an_earlier_realm_is_found(small: Small) -> None:
    small.events[0].key = 77

    assert any("was committed to the realm of key 77" in fault for fault in small.faults())


@pytest.mark.parametrize("seen", [2, 4], ids=["too few", "too many"])
def test_look_that_cannot_be_is_found(small: Small, seen: int) -> None:
    small.look(seq=seen, markers=seen)

    assert any("not linearizable" in fault for fault in small.faults())


def test_look_that_goes_back_is_found(small: Small) -> None:
    small.events[2].outcome = Outcome.UNKNOWN
    small.look(seq=3, markers=3)
    small.look(seq=2, markers=2)

    assert any("not linearizable" in fault for fault in small.faults())


def test_error_that_nobody_must_see_is_found(small: Small) -> None:
    def work(_: dict[str, Any]) -> None:
        raise CorruptionError("torn")

    small.journal.act("a", "read", work)

    assert any("torn" in fault for fault in small.faults())


def test_head_that_lost_an_object_is_found(small: Small) -> None:
    now = read_head(small.rows, small.main)
    assert now is not None
    lost = next(value.object_id for _, value in now.index("content").range())
    backend = small.store.backend
    backend.delete_objects([key for batch in small.rows.scan_objects() for key in batch if key.id == lost])

    assert any("is not there" in fault for fault in heads_can_be_read(small.store))


def test_rows_under_a_key_of_no_realm_are_found(small: Small) -> None:
    realms = RealmRegistry(small.store)
    realm = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    small.clock.advance(HOUR)
    realms.move_realm(realms.move_realm(realm, RealmState.PURGING), RealmState.PURGED)

    assert any(f"of key {realm.key}" in fault for fault in purged_realms_have_no_rows(small.store))


def test_remains_of_a_collection_are_no_garbage(small: Small) -> None:
    small.clock.advance(HOUR)
    assert collect_realm(small.store, "acme").deleted > 0

    assert garbage_is_gone(small.store, "acme", Kept(commits=2, age_seconds=1)) == []


def test_garbage_that_is_left_is_found(small: Small) -> None:
    """The collection keeps two commits; who is told of one finds the other."""
    small.clock.advance(HOUR)
    collect_realm(small.store, "acme")

    assert any("type commit" in fault for fault in garbage_is_gone(small.store, "acme", Kept(commits=1)))


def test_operation_whose_process_was_killed_is_open(tmp_path: Path) -> None:
    class KilledError(BaseException):
        pass

    def work(_: dict[str, Any]) -> None:
        raise KilledError

    journal = Journal(path=tmp_path / "one")
    journal.act("a", LOOK, lambda found: found.update(seq=1))
    with pytest.raises(KilledError):
        journal.act("a", COMMIT, work, marker=marker_of(1))
    journal.close()

    first, second = read_journals([tmp_path / "one"])
    assert (first.outcome, first.found) == (Outcome.OK, {"seq": 1})
    assert (second.outcome, second.returned) == (Outcome.UNKNOWN, None)
