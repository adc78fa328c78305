"""One level of a namespace: what stands directly below a key, page by page, without what is deeper."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, ContentKey, ContentType, IcebergTable, Namespace, Put
from headwater.catalogs.content_pages import child_place
from headwater.errors import RefusedError

TABLE = IcebergTable(metadata_location="s3://lake/x.json")
A = ContentKey.of("a")


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """A tree with names that sort around the separator of keys: ``a`` has children, and ``a-b`` and ``a.b`` stand beside it."""
    spaces = [A, ContentKey.of("a-b"), ContentKey.of("a.b"), A.child("n"), A.child("n").child("deep"), ContentKey.of("z")]
    tables = [A.child("m"), A.child("n2"), A.child("n").child("t"), ContentKey.of("b")]
    catalog.commit("main", [*(Put(key, Namespace()) for key in spaces), *(Put(key, TABLE) for key in tables)])
    return catalog


def children(catalog: Catalog, parent: ContentKey | None, *types: ContentType, limit: int | None = None) -> list[str]:
    page = catalog.children("main", parent, content_types=types, limit=limit)
    entries = [*page.entries]
    while page.next_token:
        page = catalog.children("main", parent, content_types=types, token=page.next_token, limit=limit)
        assert 1 <= len(page.entries) <= (limit or 0)
        entries += page.entries
    return [entry.key.name for entry in entries]


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 10])
def test_children_are_the_keys_of_one_level(filled: Catalog, limit: int | None) -> None:
    assert children(filled, None, limit=limit) == ["a", "a-b", "a.b", "b", "z"]
    assert children(filled, A, limit=limit) == ["m", "n", "n2"]
    assert children(filled, A.child("n"), limit=limit) == ["deep", "t"]
    assert children(filled, ContentKey.of("z"), limit=limit) == []


@pytest.mark.parametrize("limit", [None, 1, 2])
def test_children_of_a_type_leave_out_the_others(filled: Catalog, limit: int | None) -> None:
    assert children(filled, None, ContentType.NAMESPACE, limit=limit) == ["a", "a-b", "a.b", "z"]
    assert children(filled, A, ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW, limit=limit) == ["m", "n2"]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("limit", [1, 2, 10])
def test_page_ends_early_among_many_of_other_types(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr("headwater.catalogs.content_pages._LOOKED_AT", most)
    tables = [A.child(f"t{number}") for number in range(6)]
    spaces = [A, A.child("t2a"), A.child("z")]
    catalog.commit("main", [*(Put(key, Namespace()) for key in spaces), *(Put(key, TABLE) for key in tables)])
    names, sizes, token = [], [], ""
    for _ in range(20):
        page = catalog.children("main", A, content_types=[ContentType.NAMESPACE], token=token, limit=limit)
        names += [entry.key.name for entry in page.entries]
        sizes.append(len(page.entries))
        if (token := page.next_token or "") == "":
            break

    assert names == ["t2a", "z"] and token == ""
    assert max(sizes) <= limit and sizes[0] == 0


def test_whole_listing_does_not_end_early(filled: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.catalogs.content_pages._LOOKED_AT", 1)

    assert children(filled, A, ContentType.NAMESPACE) == ["n"]


def test_empty_token_means_the_first_page(filled: Catalog) -> None:
    assert filled.children("main", A, token="", limit=1) == filled.children("main", A, limit=1)
    assert filled.children("main", A, token="").next_token is None


def test_next_page_is_of_the_commit_of_the_first(filled: Catalog) -> None:
    page = filled.children("main", A, limit=1)
    filled.commit("main", [Put(A.child("m2"), TABLE)])

    following = filled.children("main", A, token=page.next_token)

    assert [entry.key.name for entry in following.entries] == ["n", "n2"]
    assert following.commit_id == page.commit_id


def test_token_of_another_level_is_refused(filled: Catalog) -> None:
    token = filled.children("main", A, limit=1).next_token
    filled.create_branch("dev")

    with pytest.raises(RefusedError, match="another listing than the one of the top"):
        filled.children("main", None, token=token)
    with pytest.raises(RefusedError, match="another listing"):
        filled.children("dev", A, token=token)
    with pytest.raises(RefusedError, match="another listing"):
        filled.children("main", A, content_types=[ContentType.NAMESPACE], token=token)


@pytest.mark.parametrize("last", [b"", b"0", b"a", b"a\0n\0deep", b"z"])
def test_forged_token_leads_into_no_other_namespace(filled: Catalog, last: bytes) -> None:
    head = filled.resolve("main")
    assert head is not None
    forged = child_place(head.id, of="main", parent=A, types=(), last=last).as_text()

    with pytest.raises(RefusedError, match="not a page token of a namespace"):
        filled.children("main", A, token=forged)


def test_token_of_a_range_is_no_token_of_a_level(filled: Catalog) -> None:
    token = filled.entries("main", limit=1).next_token

    with pytest.raises(RefusedError, match="not a page token of a namespace"):
        filled.children("main", None, token=token)
    with pytest.raises(RefusedError, match="not a page token"):
        filled.entries("main", page_token=filled.children("main", A, limit=1).next_token)


def test_branch_without_a_commit_has_no_children(catalog: Catalog) -> None:
    assert catalog.children(None, None) == catalog.entries()
