"""The log of a catalog is searched by author, time, message, key and operation; it says why a search has ended."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.catalogs import Catalog, ContentKey, ContentType, Delete, IcebergTable, IcebergView, LogFilter, Namespace, Put
from headwater.clock import Micros
from headwater.commits import LogEnd
from headwater.errors import RefusedError
from headwater.store import ObjectId, RealmStore


@pytest.fixture
def store_url() -> str:
    return "memory://"


A, B, AX, BX = ContentKey.of("a"), ContentKey.of("b"), ContentKey.of("a", "x"), ContentKey.of("b", "x")
TABLE, VIEW = IcebergTable(metadata_location="s3://lake/t"), IcebergView(metadata_location="s3://lake/v")


@pytest.fixture
def told(catalog: Catalog) -> Catalog:
    """Five commits; their messages are their numbers and a word."""
    catalog.commit(None, [Put(A, Namespace()), Put(B, Namespace())], message="1 namespaces", authors=["ann"])
    catalog.commit(None, [Put(AX, TABLE)], message="2 table", authors=["bob"])
    catalog.commit(None, [Put(BX, VIEW)], message="3 view", authors=["ann", "bob"])
    catalog.commit(None, [Delete(AX)], message="4 gone", authors=["bob"])
    catalog.commit(None, [Put(AX, VIEW), Delete(BX)], message="5 swap", authors=["ann"])
    return catalog


def found(catalog: Catalog, **filters: object) -> str:
    """The numbers of the commits that pass."""
    return "".join(entry.message[0] for entry in catalog.log(where=LogFilter(**filters)))  # type: ignore[arg-type]


def take_away(realm: RealmStore, *commits: ObjectId) -> None:
    """As a collection does with what no retention keeps."""
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id in commits])


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({}, "54321"),
        ({"author": "bob"}, "432"),
        ({"author": "bo"}, ""),
        ({"message": "a"}, "521"),
        ({"message": "^[34] "}, "43"),
        ({"key": AX}, "542"),
        ({"prefix": B}, "53"),
        ({"prefix": A, "key": BX}, ""),
        ({"action": "DELETE"}, "54"),
        ({"action": "DELETE", "key": BX}, "5"),
        ({"action": "PUT", "key": AX}, "52"),
        ({"content_type": ContentType.ICEBERG_VIEW}, "53"),
        ({"content_type": ContentType.ICEBERG_TABLE}, "42"),
        ({"content_type": ContentType.ICEBERG_TABLE, "action": "DELETE"}, "4"),
        ({"content_type": ContentType.ICEBERG_VIEW, "action": "DELETE"}, "5"),
        ({"content_type": ContentType.ICEBERG_VIEW, "key": AX}, "5"),
        ({"content_type": ContentType.UDF}, ""),
        ({"author": "bob", "message": "table|view", "action": "PUT", "prefix": A}, "2"),
    ],
)
def test_commits_that_pass_all_filters_are_found(told: Catalog, filters: dict[str, object], numbers: str) -> None:
    assert found(told, **filters) == numbers


def test_operation_has_to_pass_all_that_is_said(told: Catalog) -> None:
    assert found(told, key=AX, action="DELETE") == "4"  # the fifth puts this key, and deletes another


def test_times_are_inclusive_on_both_sides(told: Catalog) -> None:
    times = [entry.time for entry in told.log(oldest_first=True)]

    assert found(told, since=times[1], until=times[3]) == "432"
    assert found(told, since=Micros(times[1] + 1), until=Micros(times[3] - 1)) == "3"
    assert found(told, until=Micros(times[0] - 1)) == found(told, since=Micros(times[4] + 1)) == ""


def test_filters_work_from_the_oldest_on(told: Catalog) -> None:
    where = LogFilter(author="bob")

    assert [entry.message for entry in told.log(where=where, oldest_first=True)] == ["2 table", "3 view", "4 gone"]
    assert [entry.message for entry in told.log(where=where, oldest_first=True, limit=1)] == ["2 table"]


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, LogEnd.BEGINNING),
        ({"limit": 2}, LogEnd.LIMIT),
        ({"limit": 5}, LogEnd.BEGINNING),
        ({"limit": 2, "oldest_first": True}, LogEnd.LIMIT),
        ({"limit": 5, "oldest_first": True}, LogEnd.BEGINNING),
        ({"within": 3}, LogEnd.BOUND),
        ({"where": LogFilter(author="ann"), "limit": 3}, LogEnd.BEGINNING),
        ({"where": LogFilter(author="nobody"), "within": 4}, LogEnd.BOUND),
        ({"where": LogFilter(until=Micros(1))}, LogEnd.BEGINNING),
    ],
)
def test_log_says_why_it_has_ended(told: Catalog, options: dict[str, object], end: LogEnd) -> None:
    log = told.log(**options)  # type: ignore[arg-type]
    list(log)

    assert log.end is end


def test_log_that_meets_its_oldest_time_has_ended_there(told: Catalog) -> None:
    newest = next(told.log())
    log = told.log(where=LogFilter(since=newest.time))

    assert ([entry.id for entry in log], log.end) == ([newest.id], LogEnd.UNTIL)


def test_bounded_search_goes_on_before_its_last_commit(told: Catalog) -> None:
    log = told.log(where=LogFilter(message="namespaces"), within=3)
    assert (list(log), log.end) == ([], LogEnd.BOUND)

    rest = told.log(f"@{log.last:016x}~1", where=LogFilter(message="namespaces"))

    assert [entry.message for entry in rest] == ["1 namespaces"]


def test_log_ends_where_history_was_cut(told: Catalog, realm: RealmStore) -> None:
    ids = [entry.id for entry in told.log()]
    take_away(realm, *ids[3:])
    log = told.log(where=LogFilter(author="bob"))

    assert ([entry.message for entry in log], log.end) == (["4 gone", "3 view"], LogEnd.CUT)


def test_deletion_right_above_a_cut_passes_for_every_type(told: Catalog, realm: RealmStore) -> None:
    ids = [entry.id for entry in told.log()]
    take_away(realm, *ids[2:])

    assert found(told, content_type=ContentType.UDF) == "4"


@pytest.mark.parametrize("action", ["delete", "put", "PATCH", ""])
def test_action_that_no_commit_does_is_refused(action: Any) -> None:
    with pytest.raises(RefusedError, match=f"does PUT or DELETE to a key, not '{action}'"):
        LogFilter(action=action)


@pytest.mark.parametrize("message", ["(", "a{99999999999}"])
def test_message_filter_that_is_no_pattern_is_refused(message: str) -> None:
    with pytest.raises(RefusedError, match="is no regular expression"):
        LogFilter(message=message)


@pytest.mark.parametrize("within", [0, -1])
def test_search_that_may_look_at_nothing_is_refused(told: Catalog, within: int) -> None:
    with pytest.raises(RefusedError, match="commits that a search looks at"):
        told.log(within=within)
    with pytest.raises(RefusedError, match="commits that a search looks at"):
        told.history(AX, within=within)


def test_key_beside_a_filter_counts_too(told: Catalog) -> None:
    assert [entry.message[0] for entry in told.log(key=AX, where=LogFilter(author="bob"))] == ["4", "2"]


def test_log_of_nothing_is_not_asked_for(told: Catalog) -> None:
    with pytest.raises(RefusedError, match="commits of a log"):
        told.log(limit=0)
