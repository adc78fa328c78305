"""Logs and comparisons that a filter chooses from, logs down to a commit, and commits that change nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from headwater.catalogs import Catalog, CommitMeta, ContentKey, Delete, DiffExpression, LogExpression, LogFilter, Namespace, Put
from headwater.commits import LogEnd
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId, id_text

A, B = ContentKey.of("a"), ContentKey.of("b")
KEYS = [ContentKey.of(f"k{number}") for number in range(9)]


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def commits(catalog: Catalog) -> list[ObjectId]:
    """Five commits on main, by their messages: 1 to 5."""
    done = [(Put(A, Namespace()), "ann"), (Put(B, Namespace()), "bob"), (Delete(A), "ann"), (Put(A, Namespace()), "eve")]
    made = []
    for number, (operation, author) in enumerate([*done, (Delete(B), "bob")], 1):
        meta = CommitMeta(message=str(number), authors=(author,), signed_off_by=("dora",) * (number == 2))
        made.append(catalog.commit("main", [operation], meta=meta).commit_id)
    return [commit_id for commit_id in made if commit_id is not None]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("commit.author in ['ann', 'eve']", "431"),
        ("operations.exists(op, op.type == 'DELETE')", "53"),
        ("operations.exists(op, op.key == 'a') && commit.author == 'ann'", "31"),
        ("'dora' in commit.allSignedOffBy", "2"),
        ("commit.properties['absent'] == 'x'", ""),
    ],
)
def test_log_of_a_filter_is_that_of_asking_about_each(
    catalog: Catalog, commits: list[ObjectId], text: str, messages: str
) -> None:
    expression = LogExpression.parse(text)
    log = list(catalog.log("main", where=LogFilter(expression=expression)))

    assert log == [entry for entry in catalog.log("main") if expression.chooses(entry)]
    assert "".join(entry.message for entry in log) == messages


def test_log_ends_at_the_oldest_commit(catalog: Catalog, commits: list[ObjectId]) -> None:
    log = catalog.log("main", oldest=commits[2])

    assert [entry.message for entry in log] == ["5", "4", "3"]
    assert log.end is LogEnd.UNTIL
    assert [entry.message for entry in catalog.log("main", oldest=commits[2], limit=2)] == ["5", "4"]
    assert [entry.message for entry in catalog.log("main", oldest=commits[2], oldest_first=True)] == ["3", "4", "5"]
    assert [entry.message for entry in catalog.log("main", oldest=commits[4])] == ["5"]


def test_oldest_commit_outside_the_history_is_not_found(catalog: Catalog, commits: list[ObjectId]) -> None:
    catalog.create_branch("dev", at=commits[2])

    with pytest.raises(NotFoundError, match=f"{id_text(commits[4])}, which is to be the oldest"):
        catalog.log("dev", oldest=commits[4])


@pytest.mark.parametrize("limit", [None, 1, 2, 20])
def test_diff_of_a_filter_is_that_of_asking_about_each(
    catalog: Catalog, commits: list[ObjectId], monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    monkeypatch.setattr("headwater.catalogs.history.content_diff._BUDGET", 60)
    catalog.create_branch("dev")
    catalog.commit("dev", [Put(key, Namespace()) for key in KEYS])
    where = DiffExpression.parse("key.name.matches('[258]') && key.namespace == ''")
    every = catalog.diff("main", "dev").changes

    page = catalog.diff("main", "dev", where=where, limit=limit)
    chosen = [*page.changes]
    while page.next_token:
        page = catalog.diff("main", "dev", page_token=page.next_token, limit=limit)
        chosen += page.changes
    assert chosen == [change for change in every if where.chooses(change)]
    assert [change.key.name for change in chosen] == ["k2", "k5", "k8"]


def test_token_of_a_diff_carries_the_filter(catalog: Catalog, commits: list[ObjectId]) -> None:
    catalog.create_branch("dev")
    catalog.commit("dev", [Put(key, Namespace()) for key in KEYS])
    token = catalog.diff("main", "dev", limit=1).next_token

    with pytest.raises(RefusedError, match="another comparison"):
        catalog.diff("main", "dev", where=DiffExpression.parse("key.name == 'x'"), page_token=token)


def test_changes_of_keys_are_those_that_differ(catalog: Catalog, commits: list[ObjectId]) -> None:
    catalog.create_branch("dev")
    catalog.commit("dev", [Put(KEYS[0], Namespace()), Put(B, Namespace())])

    changes = catalog.find_changes("main", "dev", [*KEYS, A])
    assert [(change.key, change.action) for change in changes] == [(KEYS[0], "ADDED")]
    assert catalog.find_changes("main", "dev", [B], where=DiffExpression.parse("key.name == 'a'")) == ()
    assert catalog.find_changes("main", "main", [A, B]) == ()


def test_empty_commit_is_made_where_it_is_allowed(catalog: Catalog, commits: list[ObjectId]) -> None:
    before = catalog.entries("main").entries
    assert not catalog.commit("main", [], message="nothing").changed

    done = catalog.commit("main", [], message="nothing", allow_empty=True)
    again = catalog.commit("main", [Put(A, catalog.get_content("main", A) or Namespace())], message="same", allow_empty=True)

    assert [entry.message for entry in catalog.log("main", limit=3)] == ["same", "nothing", "5"]
    assert again.commit_id == catalog.branch("main").head and done.commit_id is not None
    assert catalog.entries("main").entries == before
    assert next(catalog.log("main")).operations == ()


def test_first_commit_may_be_empty(catalog: Catalog) -> None:
    done = catalog.commit("main", [], message="nothing", allow_empty=True)

    assert catalog.branch("main").head == done.commit_id
    assert catalog.entries("main").entries == ()
    catalog.commit("main", [Put(A, Namespace())])
    assert [entry.key for entry in catalog.entries("main").entries] == [A]


def test_empty_commits_of_many_threads_are_all_kept(catalog: Catalog, commits: list[ObjectId]) -> None:
    def work(number: int) -> None:
        operations = [Put(KEYS[number], Namespace())] if number % 2 else []
        catalog.commit("main", operations, message=f"t{number}", allow_empty=True)

    with ThreadPoolExecutor(len(KEYS)) as threads:
        list(threads.map(work, range(len(KEYS))))

    log = list(catalog.log("main", oldest=commits[-1]))
    assert sorted(entry.message for entry in log) == sorted(["5", *(f"t{number}" for number in range(len(KEYS)))])
    names = {entry.hash: {key.key.name for key in catalog.entries(entry.hash).entries} for entry in log}
    for entry, older in pairwise(log):
        added = {operation.key.name for operation in entry.operations}
        assert names[entry.hash] == names[older.hash] | added


def test_log_until_a_time_ends_at_the_oldest_commit_too(catalog: Catalog, commits: list[ObjectId]) -> None:
    times = {entry.message: entry.time for entry in catalog.log("main")}

    assert [entry.message for entry in catalog.log("main", where=LogFilter(until=times["4"]), oldest=commits[2])] == ["4", "3"]
    below = catalog.log("main", where=LogFilter(until=times["2"]), oldest=commits[2])
    assert (list(below), below.end) == ([], LogEnd.UNTIL)
