"""The log in both directions, the feed of changes, and both where history was cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backend_fixtures import STORES
from headwater.commits import CommitResult, commit_change, read_changes, read_commit, read_log
from headwater.errors import ExpiredError, NotFoundError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore

COMMITS = 45


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """In memory, where a test does not name another database: a walk does the same on each."""
    return STORES[getattr(request, "param", "memory")](request)


@pytest.fixture
def ids(rows: RealmStore, put: Callable[..., CommitResult[None]]) -> list[ObjectId]:
    """45 commits on ``main``, oldest first; each puts the key of its number."""
    return [put(rows, b"%02d" % number).commit_id for number in range(COMMITS)]


@pytest.fixture
def cut(rows: RealmStore, ids: list[ObjectId]) -> Callable[[int], None]:
    """Collects all but the newest so many commits."""

    def delete_old(kept: int) -> None:
        gone = set(ids[: COMMITS - kept])
        rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id in gone])

    return delete_old


@pytest.mark.parametrize("start", [0, 1, 19, 20, 21, 44])
def test_log_begins_at_any_commit_and_goes_to_the_first(rows: RealmStore, ids: list[ObjectId], start: int) -> None:
    wanted = ids[: start + 1]

    assert [found.id for found in read_log(rows, ids[start])] == wanted[::-1]
    assert [found.id for found in read_log(rows, ids[start], oldest_first=True)] == wanted


def test_log_of_a_reference_begins_at_its_head(rows: RealmStore, ids: list[ObjectId]) -> None:
    assert [found.id for found in read_log(rows, "main", limit=3)] == ids[:-4:-1]
    assert [found.id for found in read_log(rows, "main", oldest_first=True, limit=3)] == ids[:3]


@pytest.mark.parametrize("kept", [1, 2, 19, 20, 21, 22, 40, 41, 44])
def test_log_ends_cleanly_where_history_was_cut(
    rows: RealmStore, ids: list[ObjectId], cut: Callable[[int], None], kept: int
) -> None:
    cut(kept)

    assert [found.id for found in read_log(rows, "main")] == ids[-kept:][::-1]
    assert [found.id for found in read_log(rows, "main", oldest_first=True)] == ids[-kept:]


@pytest.mark.parametrize("store_url", STORES, indirect=True)
def test_logs_and_changes_are_the_same_on_every_database(
    rows: RealmStore, ids: list[ObjectId], cut: Callable[[int], None]
) -> None:
    cut(33)

    assert [found.id for found in read_log(rows, "main")] == ids[-33:][::-1]
    assert [found.id for found in read_log(rows, "main", oldest_first=True)] == ids[-33:]
    assert [at.id for at, _ in read_changes(rows, "main", ids[-33])] == ids[-32:]


def test_log_being_read_ends_where_it_is_cut_meanwhile(
    rows: RealmStore, ids: list[ObjectId], cut: Callable[[int], None]
) -> None:
    reading = read_log(rows, "main")
    first = [next(reading).id for _ in range(5)]
    cut(30)
    rest = [found.id for found in reading]

    assert [*first, *rest] == ids[-30:][::-1]


def test_reference_without_a_commit_has_an_empty_log(rows: RealmStore) -> None:
    assert list(read_log(rows, "main")) == []
    assert list(read_changes(rows, "main")) == []


def test_log_of_what_is_not_there_says_so(rows: RealmStore) -> None:
    with pytest.raises(NotFoundError, match="'absent'"):
        read_log(rows, "absent")
    with pytest.raises(ExpiredError, match="0000000000000005"):
        read_log(rows, ObjectId(5))
    with pytest.raises(ExpiredError):
        read_commit(rows, ObjectId(5))


@pytest.mark.parametrize("since", [None, 0, 20, 43, 44])
def test_changes_are_every_operation_once_and_in_order(rows: RealmStore, ids: list[ObjectId], since: int | None) -> None:
    found = [(at.id, operation.key) for at, operation in read_changes(rows, "main", None if since is None else ids[since])]
    begin = 0 if since is None else since + 1

    assert found == [(ids[number], b"%02d" % number) for number in range(begin, COMMITS)]


def test_changes_of_one_commit_come_one_by_one(rows: RealmStore) -> None:
    def change(tx: object) -> None:
        tx.index("b").put(b"1", IndexValue(None))
        tx.index("a").put(b"2", IndexValue(None))
        tx.index("a").put(b"1", IndexValue(None))

    commit_change(rows, "main", change)

    assert [(operation.index, operation.key) for _, operation in read_changes(rows, "main")] == [
        ("a", b"1"),
        ("a", b"2"),
        ("b", b"1"),
    ]


@pytest.mark.parametrize("kept", [1, 20, 44])
def test_changes_since_a_collected_commit_have_expired(
    rows: RealmStore, ids: list[ObjectId], cut: Callable[[int], None], kept: int
) -> None:
    cut(kept)
    for since in (None, ids[0]):
        with pytest.raises(ExpiredError, match="read its whole state"):
            list(read_changes(rows, "main", since))

    assert len(list(read_changes(rows, "main", ids[-kept]))) == kept - 1


def test_changes_since_a_commit_of_another_reference_have_expired(
    rows: RealmStore, ids: list[ObjectId], put: Callable[..., CommitResult[None]]
) -> None:
    rows.ensure_reference("other")
    foreign = put(rows, reference="other").commit_id
    with pytest.raises(ExpiredError):
        list(read_changes(rows, "main", foreign))
