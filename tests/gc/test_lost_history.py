"""A history that ends where no collection cut it is damaged, and nothing of its realm is deleted."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog
from headwater.commits import COLLECTION_ID, CollectionRecord, Commit, read_log
from headwater.errors import CorruptionError, NotFoundError
from headwater.fsck import FindingCode, check_store
from headwater.fsck.explanation import explain
from headwater.gc import collect_realm
from headwater.realms import HistoryRetention, Realm, RealmRegistry
from headwater.store import SYSTEM_REALM, ObjectId, RealmStore, Store
from lakes import HOUR, REALM, make_realm, put


@pytest.fixture
def realm(store: Store) -> Realm:
    return make_realm(store, commits=100)


@pytest.fixture
def history(lake: Catalog, clock: FakeClock) -> list[ObjectId]:
    """Thirty commits of main, a minute apart; all of them are kept."""
    made = []
    for version in range(30):
        made.append(put(lake, version))
        clock.advance(60)
    clock.advance(HOUR)
    return made


def lose(rows: RealmStore, commit: ObjectId) -> None:
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == commit])
    rows.store.cache.clear()


def codes(store: Store, realm: str = REALM) -> list[FindingCode]:
    return [finding.code for finding in check_store(store, realm=realm)]


def keep(store: Store, commits: int) -> None:
    realms = RealmRegistry(store)
    realms.update_realm(realms.read_realm(REALM), retention=HistoryRetention(content_commits=commits, content_age_seconds=0.0))


@pytest.mark.parametrize("lost", [1, 10, 28])
def test_lost_commit_protects_its_realm(store: Store, realm_rows: RealmStore, history: list[ObjectId], lost: int) -> None:
    lose(realm_rows, history[lost])

    with pytest.raises(CorruptionError, match="HISTORY_BROKEN"):
        collect_realm(store, REALM)
    assert [number for number, commit in enumerate(history) if realm_rows.find_object(commit, Commit) is None] == [lost]


def test_fsck_names_lost_commit(store: Store, realm_rows: RealmStore, history: list[ObjectId]) -> None:
    lose(realm_rows, history[10])

    [finding] = check_store(store, realm=REALM)
    assert finding.code is FindingCode.HISTORY_BROKEN
    assert f"{history[10]:016x}" in finding.message
    assert "branch main of catalog lake" in finding.message


def test_lost_commit_above_old_cut_is_damage(
    store: Store, realm_rows: RealmStore, history: list[ObjectId], lake: Catalog, clock: FakeClock
) -> None:
    keep(store, 20)
    collect_realm(store, REALM)
    put(lake, 99)
    lose(realm_rows, history[15])

    assert codes(store) == [FindingCode.HISTORY_BROKEN]


def test_cut_history_is_no_damage(store: Store, history: list[ObjectId], lake: Catalog, clock: FakeClock) -> None:
    keep(store, 5)
    collect_realm(store, REALM)
    keep(store, 100)
    put(lake, 99)

    assert codes(store) == []
    assert collect_realm(store, REALM).deleted == 0


def test_lost_record_of_cuts_protects_its_realm(
    store: Store, realm_rows: RealmStore, history: list[ObjectId], lake: Catalog
) -> None:
    keep(store, 5)
    collect_realm(store, REALM)
    record = realm_rows.read_versioned(COLLECTION_ID, CollectionRecord).value
    assert record.cuts is not None
    lose(realm_rows, record.cuts)
    keep(store, 3)
    put(lake, 99)

    with pytest.raises((CorruptionError, NotFoundError), match=f"{record.cuts:016x}"):
        collect_realm(store, REALM)
    assert codes(store) != []
    assert all(realm_rows.find_object(commit, Commit) is not None for commit in history[-5:])


def test_oldest_kept_commit_is_no_cut(store: Store, realm_rows: RealmStore, history: list[ObjectId], clock: FakeClock) -> None:
    keep(store, 5)
    collect_realm(store, REALM)
    lose(realm_rows, history[-5])

    assert codes(store) == [FindingCode.HISTORY_BROKEN]


def test_lost_commit_is_told_once_for_branches(
    store: Store, realm_rows: RealmStore, history: list[ObjectId], lake: Catalog
) -> None:
    lake.create_branch("dev", "main")
    lose(realm_rows, history[10])

    found = check_store(store, realm=REALM)
    assert [finding.code for finding in found] == [FindingCode.HISTORY_BROKEN]


def test_lost_commit_of_left_line_protects_its_realm(
    store: Store, realm_rows: RealmStore, lake: Catalog, history: list[ObjectId], clock: FakeClock
) -> None:
    lake.create_branch("dev", "main")
    made = [put(lake, version, branch="dev") for version in range(100, 104)]
    lake.delete_branch("dev")
    lose(realm_rows, made[1])

    with pytest.raises(CorruptionError, match="HISTORY_BROKEN"):
        collect_realm(store, REALM)


def test_lost_commit_of_system_realm_is_damage(store: Store, realm: Realm) -> None:
    realms = RealmRegistry(store)
    for number in range(10):
        realms.update_realm(realms.read_realm(REALM), properties={"n": str(number)})
    tail = [head.id for head in read_log(store.system, "realms")]
    lose(store.system, tail[4])

    assert codes(store, SYSTEM_REALM) == [FindingCode.HISTORY_BROKEN]
    with pytest.raises(CorruptionError, match="HISTORY_BROKEN"):
        collect_realm(store, SYSTEM_REALM)


def test_shorter_history_is_the_way_out(
    store: Store, realm_rows: RealmStore, history: list[ObjectId], clock: FakeClock
) -> None:
    lose(realm_rows, history[10])
    keep(store, 10)
    collect_realm(store, REALM)
    keep(store, 100)

    assert codes(store) == []


def test_explanation_tells_of_broken_history(store: Store, realm_rows: RealmStore, history: list[ObjectId]) -> None:
    lose(realm_rows, history[10])

    told = explain(store, REALM, history[3])
    assert "HISTORY_BROKEN" in told.sentence
