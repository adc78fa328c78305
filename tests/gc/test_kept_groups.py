"""Inner members of groups that are kept stay readable, with what they are read from; and what only they need stays garbage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, ContentType, ContentValue, IcebergTable, RefKind, content_digest
from headwater.catalogs.content_operations import CONTENT, IDS
from headwater.catalogs.registry import content_reference
from headwater.commits import Commit, Transaction, read_commit, read_head, read_log
from headwater.errors import ExpiredError, RefusedError
from headwater.fsck import FindingCode, check_store
from headwater.fsck.explanation import explain
from headwater.gc import collect_realm
from headwater.gc.collector import open_marker
from headwater.gc.retention import open_scope
from headwater.index import IndexValue
from headwater.realms import HistoryRetention, RealmRegistry
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Store, id_text
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, make_lake, make_realm, open_on, put, rows_of
from stored_groups import commit_together, write_group


@dataclass(frozen=True)
class River:
    """A lake whose ``main`` has a group of three commits on its base, and keeps two: the last of the group, and the inner one before.

    outer         the inner member that is not kept
    """

    store: Store
    catalog: Catalog
    base: ObjectId
    outer: ObjectId
    inner: ObjectId
    last: ObjectId

    @property
    def rows(self) -> RealmStore:
        return rows_of(self.store)

    @property
    def reference(self) -> str:
        return content_reference(self.catalog.definition.id, RefKind.BRANCH, "main")

    def is_there(self, commit_id: ObjectId) -> bool:
        return self.rows.without_cache().find_object(commit_id, Commit) is not None

    def content(self, commit_id: ObjectId) -> list[str]:
        """What a process that remembers nothing reads at a commit, contents included."""
        self.store.cache.clear()
        keys = [entry.key for entry in self.catalog.entries(id_text(commit_id)).entries]
        found = self.catalog.get_contents(id_text(commit_id), keys)
        return [str(key) for key in keys if key in found]


EDITS: list[dict[bytes, str | None]] = [{b"one": "one"}, {b"two": "two", b"first": None}, {b"two": "new"}]
"""What the members put, by key: a table with metadata of this name; None: nothing any more."""


@pytest.fixture(params=["by hand", "by threads"])
def river(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> River:
    store = open_on(MemoryBackend(), settings, clock)
    make_realm(store, commits=2)
    catalog = make_lake(store)
    put(catalog, 1, table="first")
    clock.advance(HOUR)
    base = put(catalog, 1)
    clock.advance(HOUR)
    make = written if request.param == "by hand" else committed
    outer, inner, last = make(rows_of(store), content_reference(catalog.definition.id, RefKind.BRANCH, "main"))
    clock.advance(HOUR)
    return River(store, catalog, base, outer, inner, last)


def written(rows: RealmStore, reference: str) -> list[ObjectId]:
    def stored(content: IcebergTable) -> ObjectId:
        object_id = rows.new_id()
        rows.write_objects([(object_id, content)])
        return object_id

    edits = [{key: None if name is None else table(name, stored) for key, name in edit.items()} for edit in EDITS]
    return write_group(rows, edits, reference=reference, index=CONTENT)


def committed(rows: RealmStore, reference: str) -> list[ObjectId]:
    def change(edit: dict[bytes, str | None], tx: Transaction) -> None:
        for key, name in edit.items():
            if name is None:
                tx.index(CONTENT).remove(key)
            else:
                tx.index(CONTENT).put(key, table(name, tx.add_object))

    newest = read_head(rows, reference)
    assert newest is not None
    changes = [partial(change, edit) for edit in EDITS]
    return commit_together(rows, reference, changes, properties=newest.commit.properties)


def table(name: str, add: Callable[[IcebergTable], ObjectId]) -> IndexValue:
    """The value of a table, whose content is added."""
    content = IcebergTable(metadata_location=f"s3://lake/{name}.json")
    return ContentValue(ContentType.ICEBERG_TABLE, uuid4(), content_digest(content), add(content)).to_value()


def test_threads_make_the_group_that_is_written_by_hand(river: River) -> None:
    members = [river.rows.read_object(one, Commit) for one in (river.outer, river.inner, river.last)]

    assert [(one.depth, one.base, len(one.operations)) for one in members] == [
        (1, river.base, 1),
        (2, river.base, 2),
        (0, None, 1),
    ]
    assert [set(one.indexes) for one in members] == [set(), set(), {CONTENT, IDS}]


def test_kept_inner_member_stays_readable_through_two_collections(river: River, clock: FakeClock) -> None:
    for _ in range(2):
        collect_realm(river.store, "acme")
        clock.advance(HOUR)

        assert river.content(river.inner) == ["one", "orders", "two"]
        assert river.content(river.last) == ["one", "orders", "two"]
        # what was put into the index of content alone has no way back from its content id, and that is all that is wrong
        assert {finding.code for finding in check_store(river.store)} == {FindingCode.CONTENT_WRONG}


def test_base_of_an_inner_member_goes_with_it(river: River, clock: FakeClock) -> None:
    collect_realm(river.store, "acme")
    clock.advance(HOUR)
    put(river.catalog, 2)
    clock.advance(HOUR)
    collect_realm(river.store, "acme")

    assert [river.is_there(one) for one in (river.base, river.outer, river.inner, river.last)] == [False, False, False, True]
    assert river.content(river.last) == ["one", "orders", "two"]


def test_commit_kept_for_an_inner_member_alone_is_no_target(river: River) -> None:
    collect_realm(river.store, "acme")
    for garbage in (river.base, river.outer):
        with pytest.raises(RefusedError, match="kept history"):
            river.catalog.assign_branch("main", garbage)
        with pytest.raises(RefusedError, match="kept history"):
            river.catalog.create_branch("dev", at=garbage)

    assert river.catalog.create_branch("dev", at=river.inner).head == river.inner


def test_longer_retention_brings_no_inner_members_base_back(river: River, clock: FakeClock) -> None:
    collect_realm(river.store, "acme")
    realms = RealmRegistry(river.store)
    realms.update_realm(realms.read_realm("acme"), retention=HistoryRetention(content_commits=100))
    clock.advance(HOUR)
    collect_realm(river.store, "acme")
    marker = open_marker(open_scope(river.store, "acme"), trace=True)
    marker.mark(marker.scope.find_references())
    kept = {commit_id for commit_id, origin in marker.origins.items() if origin.reference == river.reference}

    assert kept == {river.inner, river.last}
    with pytest.raises(RefusedError, match="kept history"):
        river.catalog.create_branch("dev", at=river.base)


def test_log_shows_only_what_is_readable_after_a_collection(river: River) -> None:
    collect_realm(river.store, "acme")
    river.store.cache.clear()
    found = [one.id for one in read_log(river.rows, river.reference)]

    assert found == [river.last, river.inner, river.outer, river.base]
    assert all(river.content(one) for one in found)
    assert [entry.id for entry in river.catalog.log(oldest_first=True)] == found[::-1]


def test_branch_on_an_inner_member_keeps_it_and_takes_commits(river: River, clock: FakeClock) -> None:
    river.catalog.assign_branch("main", river.inner)
    clock.advance(HOUR)
    collect_realm(river.store, "acme")
    assert river.content(river.inner) == ["one", "orders", "two"]
    above = put(river.catalog, 7, table="more")

    assert river.content(above) == ["more", "one", "orders", "two"]


def test_base_is_explained_by_the_inner_member_that_needs_it(river: River) -> None:
    told = explain(river.store, "acme", river.base)

    assert told.is_kept
    assert told.chain == (f"commit {id_text(river.inner)}", f"commit {id_text(river.base)}")


@pytest.mark.parametrize("lost", ["base", "outer"])
def test_inner_head_that_lost_its_base_is_found_by_fsck(river: River, lost: str) -> None:
    river.catalog.assign_branch("main", river.inner)
    gone = getattr(river, lost)
    river.rows.delete_unchanged([key for batch in river.rows.scan_objects() for key in batch if key.id == gone])
    river.store.cache.clear()

    assert [(one.code, one.subject) for one in check_store(river.store)] == [("OBJECT_UNREADABLE", river.reference)]


def test_inner_member_left_alone_by_a_sweep_has_expired(river: River, clock: FakeClock) -> None:
    put(river.catalog, 2)
    put(river.catalog, 3)
    clock.advance(HOUR)
    kept = read_commit(river.rows, river.inner)
    collect_realm(river.store, "acme")
    with pytest.raises(ExpiredError, match="was collected"):
        kept.index(CONTENT)
