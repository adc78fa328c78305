"""The difference of two references, by key and page by page; a rename shows where it went and came from."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, ContentChange, ContentKey, Delete, IcebergTable, Namespace, Put
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.store import RealmStore


@pytest.fixture
def store_url() -> str:
    return "memory://"


A, B, C, D = (ContentKey.of(name) for name in "abcd")


def table(text: str = "") -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/{text}.json")


def shown(changes: tuple[ContentChange, ...]) -> list[str]:
    return [
        f"{one.action} {one.key}"
        + (f" to {one.renamed_to}" if one.renamed_to else "")
        + (f" from {one.renamed_from}" if one.renamed_from else "")
        for one in changes
    ]


def rename(catalog: Catalog, branch: str, old: ContentKey, new: ContentKey) -> None:
    there = catalog.get_content(branch, old)
    assert there is not None
    catalog.commit(branch, [Delete(old), Put(new, there)])


@pytest.fixture
def apart(catalog: Catalog) -> Catalog:
    """main with tables a, b and c; on dev a was changed, b renamed to d, c removed, and a namespace with 30 tables added."""
    catalog.commit(None, [Put(key, table(str(key))) for key in (A, B, C)])
    catalog.create_branch("dev")
    there = catalog.get_content("dev", A)
    assert there is not None
    catalog.commit("dev", [Put(A, IcebergTable(id=there.id, metadata_location="s3://lake/later.json")), Delete(C)])
    rename(catalog, "dev", B, D)
    space = ContentKey.of("n")
    catalog.commit("dev", [Put(space, Namespace()), *(Put(space.child(f"t{number:02}"), table()) for number in range(30))])
    return catalog


def test_keys_that_differ_are_told_in_order(apart: Catalog) -> None:
    page = apart.diff("main", "dev")

    tables = [f"ADDED n.t{number:02}" for number in range(30)]
    assert shown(page.changes) == ["CHANGED a", "REMOVED b to d", "REMOVED c", "ADDED d from b", "ADDED n", *tables]
    assert (page.before, page.after, page.next_token) == (apart.branch("main").head, apart.branch("dev").head, None)


def test_other_way_round_it_is_the_reverse(apart: Catalog) -> None:
    assert shown(apart.diff("dev", "main", end=ContentKey.of("n")).changes) == [
        "CHANGED a",
        "ADDED b from d",
        "ADDED c",
        "REMOVED d to b",
    ]


@pytest.mark.parametrize("limit", [1, 4, 7, 35, 100])
def test_pages_together_are_the_whole_difference(apart: Catalog, limit: int) -> None:
    page = apart.diff("main", "dev", limit=limit)
    found = list(page.changes)
    while page.next_token:
        page = apart.diff("main", "dev", limit=limit, page_token=page.next_token)
        assert 1 <= len(page.changes) <= limit
        found += page.changes

    assert tuple(found) == apart.diff("main", "dev").changes


def test_page_goes_on_between_the_commits_of_the_first(apart: Catalog) -> None:
    page = apart.diff("main", "dev", limit=4)
    apart.commit("dev", [Delete(ContentKey.of("n", "t05"))])
    apart.commit("main", [Delete(A)])

    rest = apart.diff("main", "dev", page_token=page.next_token)

    assert (rest.before, rest.after, len(rest.changes)) == (page.before, page.after, 31)


def test_keys_are_chosen_by_prefix_and_range(apart: Catalog) -> None:
    below = apart.diff("main", "dev", prefix=ContentKey.of("n"), start=ContentKey.of("n", "t28"))

    assert shown(below.changes) == ["ADDED n.t28", "ADDED n.t29"]
    assert shown(apart.diff("main", "dev", start=B, end=D).changes) == ["REMOVED b to d", "REMOVED c"]
    assert apart.diff("main", "dev", start=D, end=B).changes == ()


def test_page_token_of_other_references_is_refused(apart: Catalog) -> None:
    token = apart.diff("main", "dev", limit=1).next_token

    with pytest.raises(RefusedError, match="another comparison"):
        apart.diff("dev", "main", page_token=token)
    assert apart.diff(None, "dev", page_token=token).changes


def test_page_token_of_other_keys_is_refused(apart: Catalog) -> None:
    token = apart.diff("main", "dev", start=A, limit=1).next_token

    with pytest.raises(RefusedError, match="another comparison"):
        apart.diff("main", "dev", start=B, page_token=token)


@pytest.mark.parametrize("token", ["", "x", "AA", "é"])
def test_text_that_is_no_page_token_is_refused(apart: Catalog, token: str) -> None:
    with pytest.raises(RefusedError, match="is not a page token of a comparison"):
        apart.diff("main", "dev", page_token=token)


def test_page_token_of_a_listing_is_none_of_a_comparison(apart: Catalog) -> None:
    token = apart.entries("dev", limit=1).next_token

    with pytest.raises(RefusedError, match="is not a page token of a comparison"):
        apart.diff("main", "dev", page_token=token)


def test_copy_with_equal_content_is_no_difference(apart: Catalog) -> None:
    there = apart.get_content("main", A)
    assert there is not None
    apart.commit("dev", [Put(A, there)])

    assert "CHANGED a" not in shown(apart.diff("main", "dev").changes)


def test_key_made_again_holds_another_content(apart: Catalog) -> None:
    apart.commit("main", [Delete(A), Put(A, table("a"))])
    (change,) = apart.diff("main~1", "main").changes

    assert change.before is not None and change.after is not None
    assert change.before.digest == change.after.digest
    assert change.before.content_id != change.after.content_id


def test_empty_branch_differs_by_all_that_the_other_holds(catalog: Catalog) -> None:
    catalog.create_branch("empty")
    catalog.commit("main", [Put(A, table())])

    assert shown(catalog.diff("empty", "main").changes) == ["ADDED a"]
    assert catalog.diff("empty", "empty").changes == ()
    page = catalog.diff("empty", "main", limit=1)
    assert (page.before, page.next_token) == (None, None)


def test_empty_page_of_differences_is_not_asked_for(apart: Catalog) -> None:
    with pytest.raises(RefusedError, match="changes of a page"):
        apart.diff("main", "dev", limit=0)


def test_comparison_whose_commit_was_collected_is_expired(apart: Catalog, realm: RealmStore) -> None:
    page = apart.diff("main", "dev", limit=1)
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id == page.after])

    with pytest.raises(ExpiredError):
        apart.diff("main", "dev", page_token=page.next_token)


def test_references_that_are_not_there_are_missing(apart: Catalog) -> None:
    with pytest.raises(NotFoundError, match="no branch, tag or commit 'nope'"):
        apart.diff("main", "nope")
