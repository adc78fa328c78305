"""The history of one content goes through its renames back to its creation, and no further."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, ContentKey, Delete, IcebergTable, KeyAction, Put
from headwater.clock import Micros
from headwater.commits import LogEnd
from headwater.store import ObjectId, RealmStore


@pytest.fixture
def store_url() -> str:
    return "memory://"


A, B, C = (ContentKey.of(name) for name in "abc")


def table(number: int) -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/{number}.json")


def create(catalog: Catalog, key: ContentKey, number: int = 0) -> None:
    catalog.commit(None, [Put(key, table(number))])


def change(catalog: Catalog, key: ContentKey, number: int) -> None:
    there = catalog.get_content(None, key)
    assert there is not None
    catalog.commit(None, [Put(key, IcebergTable(id=there.id, metadata_location=f"s3://lake/{number}.json"))])


def rename(catalog: Catalog, *pairs: tuple[ContentKey, ContentKey]) -> None:
    there = catalog.get_contents(None, [old for old, _ in pairs])
    gone = {old for old, _ in pairs} - {new for _, new in pairs}
    catalog.commit(None, [*(Delete(old) for old in gone), *(Put(new, there[old]) for old, new in pairs)])


def told(catalog: Catalog, key: ContentKey, **options: int) -> list[str]:
    return [
        f"{found.action} {found.key}" + (f" from {found.renamed_from}" if found.renamed_from else "")
        for found in catalog.history(key, **options)
    ]


def take_away(realm: RealmStore, *commits: ObjectId) -> None:
    """As a collection does with what no retention keeps."""
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id in commits])


@pytest.fixture
def moved(catalog: Catalog) -> Catalog:
    """One table that was made at a, changed, moved to b and to c, and changed there, among commits to others."""
    create(catalog, A)
    create(catalog, ContentKey.of("other"))
    change(catalog, A, 1)
    rename(catalog, (A, B))
    change(catalog, ContentKey.of("other"), 2)
    rename(catalog, (B, C))
    change(catalog, C, 3)
    return catalog


def test_content_is_followed_through_its_renames(moved: Catalog) -> None:
    history = moved.history(C)
    found = [(one.action, str(one.key), one.entry.seq) for one in history]

    assert found == [
        (KeyAction.CHANGED, "c", 7),
        (KeyAction.RENAMED, "c", 6),
        (KeyAction.RENAMED, "b", 4),
        (KeyAction.CHANGED, "a", 3),
        (KeyAction.CREATED, "a", 1),
    ]
    assert history.end is LogEnd.BEGINNING


def test_each_change_tells_what_the_content_was_afterwards(moved: Catalog) -> None:
    history = [one.value for one in moved.history(C)]

    assert len({value.content_id for value in history if value}) == 1
    assert len({value.digest for value in history if value}) == 3


def test_key_that_was_left_tells_where_its_content_went(moved: Catalog) -> None:
    assert told(moved, A) == ["RENAMED b from a", "CHANGED a", "CREATED a"]


def test_key_that_was_deleted_tells_what_it_held_last(moved: Catalog) -> None:
    moved.commit(None, [Delete(C)])

    assert told(moved, C)[:3] == ["DELETED c", "CHANGED c", "RENAMED c from b"]


def test_key_made_again_does_not_tell_of_the_content_before(moved: Catalog) -> None:
    create(moved, A)

    assert told(moved, A) == ["CREATED a"]


def test_content_put_in_anothers_place_is_a_new_one(catalog: Catalog) -> None:
    create(catalog, A)
    catalog.commit(None, [Delete(A), Put(A, table(9))])

    assert told(catalog, A) == ["CREATED a"]


def test_two_contents_that_change_places_are_each_followed(catalog: Catalog) -> None:
    create(catalog, A)
    create(catalog, B)
    rename(catalog, (A, C))
    rename(catalog, (B, A))
    rename(catalog, (C, B))

    assert told(catalog, A) == ["RENAMED a from b", "CREATED b"]
    assert told(catalog, B) == ["RENAMED b from c", "RENAMED c from a", "CREATED a"]


def test_merge_that_brings_a_content_is_its_creation(moved: Catalog) -> None:
    moved.create_branch("dev", "main")
    moved.commit("dev", [Put(A, table(5))])
    moved.merge("dev")

    assert told(moved, A) == ["CREATED a"]
    assert [one.entry.meta.merged for one in moved.history(A)] == [(moved.branch("dev").head,)]


def test_history_above_a_cut_does_not_say_what_was_created(moved: Catalog, realm: RealmStore) -> None:
    ids = [entry.id for entry in moved.log()]
    take_away(realm, *ids[2:])
    history = moved.history(C)

    assert [one.action for one in history] == [KeyAction.CHANGED, KeyAction.PUT]
    assert history.end is LogEnd.CUT


def test_bounded_history_says_so(moved: Catalog) -> None:
    history = moved.history(C, within=3)

    assert ([one.action for one in history], history.end) == ([KeyAction.CHANGED, KeyAction.RENAMED], LogEnd.BOUND)


def test_key_that_never_was_has_no_history(moved: Catalog) -> None:
    history = moved.history(ContentKey.of("nope"))

    assert (list(history), history.end) == ([], LogEnd.BEGINNING)


def test_history_is_read_at_any_reference(moved: Catalog) -> None:
    assert [one.action for one in moved.history(B, "main~2")] == [KeyAction.RENAMED, KeyAction.CHANGED, KeyAction.CREATED]


def recent(catalog: Catalog, key: ContentKey, *, since: int = 0, within: int = 999) -> list[tuple[KeyAction, ContentKey]]:
    changes = catalog.recent_changes(key, since=Micros(since), within=within)
    return [(change.action, change.key) for change in changes]


@pytest.mark.parametrize("key", [A, B, C])
def test_recent_changes_are_those_of_the_history(moved: Catalog, key: ContentKey) -> None:
    assert recent(moved, key) == [(change.action, change.key) for change in moved.history(key)]


@pytest.mark.parametrize("apart", [1, 19, 20, 21, 50])
def test_recent_changes_are_found_far_apart(catalog: Catalog, apart: int) -> None:
    create(catalog, A)
    for number in range(3):
        for other in range(apart):
            create(catalog, ContentKey.of(f"{number}-{other}"))
        change(catalog, A, number + 1)

    assert [action for action, _ in recent(catalog, A, within=3 * apart // 2 + 12)] == [KeyAction.CHANGED] * 3 + [
        KeyAction.CREATED
    ]


def test_recent_changes_go_on_below_a_creation(moved: Catalog) -> None:
    moved.commit(None, [Delete(C)])
    create(moved, C)

    assert [action for action, _ in recent(moved, C)][:3] == [KeyAction.CREATED, KeyAction.DELETED, KeyAction.CHANGED]


def test_recent_changes_end_at_their_bounds(moved: Catalog) -> None:
    time = next(iter(moved.log())).time
    bounded, timely = (moved.recent_changes(C, since=Micros(0), within=1), moved.recent_changes(C, since=time, within=99))

    assert (len(list(bounded)), bounded.end) == (1, LogEnd.BOUND)
    assert (len(list(timely)), timely.end) == (1, LogEnd.UNTIL)
