"""fsck names everything that is not as it must be, and explain says of one object why it is there. Neither changes anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import CATALOGS, Catalog
from headwater.errors import NotFoundError
from headwater.fsck import check_store
from headwater.fsck.explanation import explain
from headwater.gc import collect_realm
from headwater.realms import HistoryRetention, Realm, RealmRegistry
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store, StoredObject, fixed_id, id_text, object_type
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, make_lake, make_realm, open_on, put, rows_of
from lakes import lake as lake_of

WRITES = {
    "create_reference",
    "delete_objects",
    "delete_realm",
    "insert_object",
    "remove_reference",
    "swap_reference",
    "update_object",
    "write_objects",
}


@object_type("test-kept-note")
class Note(StoredObject, frozen=True, kw_only=True):
    text: str = ""


def codes(store: Store, realm: str | None = "acme") -> set[str]:
    found = check_store(store, realm=realm)
    assert all(finding.repair and finding.message and finding.subject for finding in found)
    return {finding.code for finding in found}


def lose(rows: RealmStore, object_id: ObjectId) -> None:
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == object_id])


def head_of(rows: RealmStore, name: str) -> ObjectId:
    pointer = rows.read_reference(name, fresh=True).pointer
    assert pointer is not None
    return pointer


def test_sound_store_has_no_findings(store: Store, old_commits: list[ObjectId]) -> None:
    assert check_store(store) == []


def test_empty_store_has_no_findings(store: Store) -> None:
    assert check_store(store) == []


def test_collected_store_has_no_findings(store: Store, old_commits: list[ObjectId]) -> None:
    collect_realm(store, "acme")

    assert check_store(store) == []


def test_lost_head_is_found_with_its_repair_target(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    lose(realm_rows, old_commits[2])
    [finding] = [finding for finding in check_store(store) if finding.code == "HEAD_UNREADABLE"]

    assert finding.subject.endswith("heads/main")
    assert id_text(old_commits[1]) in finding.repair


def test_lost_object_is_found(store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId]) -> None:
    head = lake.resolve()
    assert head is not None
    lose(realm_rows, next(iter(head.commit.points_to())))

    assert codes(store) == {"OBJECT_UNREADABLE"}


def test_lost_list_of_catalogs_is_found(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    lose(realm_rows, head_of(realm_rows, CATALOGS))

    assert codes(store) == {"LIST_UNREADABLE", "HEAD_UNREADABLE"}


def test_name_without_its_row_is_found_after_the_grace(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    backend = FaultyBackend(store.backend)
    backend.fail("create_reference", times=10)
    with pytest.raises(Exception, match="injected"):
        lake_of(open_on(backend, store.settings, clock)).create_branch("dev")
    assert codes(store) == set()
    clock.advance(HOUR)

    assert codes(store) == {"NAME_WITHOUT_ROW"}


def test_row_that_is_in_no_list_is_found(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    realm_rows.create_reference("cat/0000000000000000/heads/lost")

    assert codes(store) == {"ROW_WITHOUT_NAME"}


def test_row_from_the_future_is_found(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    ahead = open_on(store.backend, store.settings, FakeClock(clock.now() + 3_600_000_000))
    rows_of(ahead).write_objects([(ahead.new_id(), Note())])

    assert codes(store) == {"TIME_AHEAD"}


def test_catalog_without_its_default_branch_is_found(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId]
) -> None:
    realm_rows.delete_reference(realm_rows.read_reference(f"cat/{lake.definition.id}/heads/main", fresh=True))

    assert codes(store) == {"CATALOG_INCOMPLETE"}


def test_rows_of_no_realm_are_found(store: Store, realm: Realm) -> None:
    stray = store.rows(RealmId("stray"), RealmKey(store.new_id()))
    stray.write_objects([(store.new_id(), Note())])

    assert codes(store, None) == {"ROWS_OF_NO_REALM"}


def test_one_fault_hides_no_other(store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId]) -> None:
    lake.create_branch("dev")
    lost = put(lake, 10, branch="dev")
    lose(realm_rows, lost)
    lose(realm_rows, old_commits[2])

    unreadable = [finding.subject for finding in check_store(store) if finding.code == "HEAD_UNREADABLE"]
    assert sorted(name.rpartition("/")[2] for name in unreadable) == ["dev", "main"]


def test_lost_reference_of_a_realm_is_found(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    lose_reference(store, realm_rows, "claims")

    [finding] = check_store(store)
    assert (finding.code, finding.subject) == ("REFERENCE_MISSING", "claims")


def test_rows_without_a_list_of_realms_are_not_called_leftovers(store: Store, old_commits: list[ObjectId]) -> None:
    lose_reference(store, store.system, "realms")

    [finding] = check_store(store)
    assert finding.code == "ROWS_OF_NO_REALM"
    assert "restore the reference 'realms'" in finding.repair


def lose_reference(store: Store, rows: RealmStore, reference: str) -> None:
    """What a damaged database does."""
    row = rows.find_row(reference)
    assert row is not None
    store.backend.remove_reference(row)


def test_fsck_of_a_realm_that_is_not_there_says_so(store: Store) -> None:
    with pytest.raises(NotFoundError):
        check_store(store, realm="acme")


@pytest.mark.parametrize("look", [check_store, lambda store: explain(store, "acme", fixed_id(2))], ids=["fsck", "explain"])
def test_looking_changes_nothing_and_leases_no_node(
    store: Store, old_commits: list[ObjectId], clock: FakeClock, look: Callable[[Store], object]
) -> None:
    collect_realm(store, "acme")
    backend = FaultyBackend(store.backend)
    look(open_on(backend, store.settings, clock))

    assert WRITES.isdisjoint(backend.calls)


def table_of(lake: Catalog) -> ObjectId:
    head = lake.resolve()
    assert head is not None
    return next(iter(head.commit.points_to()))


def test_explain_leads_from_the_head_to_the_object(store: Store, lake: Catalog, old_commits: list[ObjectId]) -> None:
    found = explain(store, "acme", table_of(lake))

    assert (found.is_kept, found.type) == (True, "iceberg-table")
    assert "branch main of catalog lake" in found.sentence
    assert [step.partition(" ")[0] for step in found.chain] == ["commit", "iceberg-table"]
    assert found.chain[0] == f"commit {id_text(old_commits[2])}"


def test_explain_names_the_grace(store: Store, lake: Catalog, old_commits: list[ObjectId]) -> None:
    put(lake, 4)

    assert "grace" in explain(store, "acme", old_commits[2]).sentence


def test_explain_names_retention(store: Store, lake: Catalog, old_commits: list[ObjectId]) -> None:
    RealmRegistry(store).update_realm(RealmRegistry(store).read_realm("acme"), retention=HistoryRetention(content_commits=2))

    assert "retention" in explain(store, "acme", old_commits[1]).sentence


def test_explain_names_the_record_of_the_last_collection(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]
) -> None:
    collect_realm(store, "acme")
    cuts = [key.id for batch in realm_rows.scan_objects() for key in batch if key.type == "cuts"]

    assert any("record" in explain(store, "acme", object_id).sentence for object_id in cuts)


def test_explain_names_a_fixed_id(store: Store, old_commits: list[ObjectId]) -> None:
    collect_realm(store, "acme")

    assert "fixed id" in explain(store, "acme", fixed_id(2)).sentence


def test_explain_says_when_a_young_row_goes(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    note = store.new_id()
    realm_rows.write_objects([(note, Note())])
    found = explain(store, "acme", note)

    assert found.is_kept
    assert "after 20" in found.sentence


def test_explain_says_that_garbage_goes_next(store: Store, old_commits: list[ObjectId]) -> None:
    found = explain(store, "acme", old_commits[0])

    assert (found.is_kept, found.chain) == (False, ())
    assert "next collection" in found.sentence


def test_explain_agrees_with_the_next_collection(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    every = {key.id for batch in realm_rows.scan_objects() for key in batch}
    kept = {object_id for object_id in every if explain(store, "acme", object_id).is_kept}
    collect_realm(store, "acme")

    assert kept == every & {key.id for batch in realm_rows.scan_objects() for key in batch}


def test_explain_of_what_is_not_there_says_so(store: Store, old_commits: list[ObjectId]) -> None:
    collect_realm(store, "acme")

    with pytest.raises(NotFoundError, match="collected"):
        explain(store, "acme", old_commits[0])


def test_history_that_branches_share_is_read_once(settings: Settings, clock: FakeClock) -> None:
    backend = FaultyBackend(MemoryBackend())
    faulty = open_on(backend, settings, clock)
    make_realm(faulty, commits=100)
    catalog = make_lake(faulty)
    for version in range(30):
        put(catalog, version)
    for number in range(20):
        catalog.create_branch(f"branch-{number}")
    clock.advance(9 * HOUR)
    backend.calls.clear()

    collect_realm(faulty, "acme")
    assert backend.calls.count("read_objects") < 100
