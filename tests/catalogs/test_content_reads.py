"""Content read from branches, tags and commits, whole or page by page."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, Catalogs, ContentKey, ContentType, Delete, IcebergTable, IcebergView, Namespace, Put
from headwater.catalogs.content_operations import CONTENT
from headwater.commits import IndexListing, PageToken, read_head
from headwater.errors import CorruptionError, ExpiredError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore, Store, id_text

TABLE = IcebergTable(metadata_location="s3://lake/x.json")


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """Two namespaces with five tables each, and a view."""
    spaces = [Put(ContentKey.of(name), Namespace()) for name in ("a", "b")]
    tables = [Put(ContentKey.of(name, f"t{number}"), TABLE) for name in ("a", "b") for number in range(5)]
    catalog.commit("main", [*spaces, *tables, Put(ContentKey.of("v"), IcebergView(metadata_location="s3://lake/v.json"))])
    return catalog


def keys(catalog: Catalog, **options: object) -> list[str]:
    return [str(entry.key) for entry in catalog.entries("main", **options).entries]  # type: ignore[arg-type]


def test_entries_come_in_key_order(filled: Catalog) -> None:
    assert keys(filled) == ["a", *(f"a.t{n}" for n in range(5)), "b", *(f"b.t{n}" for n in range(5)), "v"]


def test_prefix_lists_what_is_below_it(filled: Catalog) -> None:
    assert keys(filled, prefix=ContentKey.of("b")) == [f"b.t{n}" for n in range(5)]


@pytest.mark.parametrize("prefix", [None, ContentKey.of("a")])
@pytest.mark.parametrize("limit", [1, 2, 5, 13, 100])
def test_pages_together_are_the_whole(filled: Catalog, prefix: ContentKey | None, limit: int) -> None:
    page = filled.entries("main", prefix=prefix, limit=limit)
    found = list(page.entries)
    while page.next_token:
        page = filled.entries("main", prefix=prefix, limit=limit, page_token=page.next_token)
        assert 1 <= len(page.entries) <= limit
        found += page.entries

    assert [str(entry.key) for entry in found] == keys(filled, prefix=prefix)


def test_next_page_reads_the_commit_of_the_first(filled: Catalog) -> None:
    page = filled.entries("main", limit=6)
    filled.commit("main", [Delete(ContentKey.of("v"))])
    rest = filled.entries("main", page_token=page.next_token)

    assert str(rest.entries[-1].key) == "v"
    assert (rest.commit_id, rest.next_token) == (page.commit_id, None)


def test_page_of_a_collected_commit_is_expired(filled: Catalog) -> None:
    token = PageToken(ObjectId(77), IndexListing(index=CONTENT, of="main"), b"a").as_text()

    with pytest.raises(ExpiredError, match="start the listing again, without a page token"):
        filled.entries("main", page_token=token)


@pytest.mark.parametrize("token", ["", "x", "not a token", "AA", "é"])
def test_text_that_is_no_page_token_is_refused(filled: Catalog, token: str) -> None:
    with pytest.raises(RefusedError, match="is not a page token"):
        filled.entries("main", page_token=token)


def test_page_token_of_another_reference_is_refused(filled: Catalog) -> None:
    filled.create_branch("other")
    token = filled.entries("main", limit=1).next_token

    for ref in ("other", "nowhere"):
        with pytest.raises(RefusedError, match=f"than the one of '{ref}'"):
            filled.entries(ref, page_token=token)
    assert filled.entries(None, page_token=token) == filled.entries("-", page_token=token)


def test_page_token_of_another_prefix_is_refused(filled: Catalog) -> None:
    token = filled.entries("main", prefix=ContentKey.of("a"), limit=1).next_token

    with pytest.raises(RefusedError, match="another listing"):
        filled.entries("main", prefix=ContentKey.of("b"), page_token=token)


def test_page_token_of_another_index_is_refused(filled: Catalog) -> None:
    token = PageToken(ObjectId(77), IndexListing(index="others"), b"a").as_text()

    with pytest.raises(RefusedError, match="another listing"):
        filled.entries("main", page_token=token)


def test_empty_page_is_not_asked_for(filled: Catalog) -> None:
    with pytest.raises(RefusedError, match=r"entries of a page must be a whole number from 1 to .*, not 0"):
        filled.entries("main", limit=0)


def test_empty_branch_has_no_entries_no_log_and_no_count(catalog: Catalog) -> None:
    page = catalog.entries()

    assert (page.entries, page.next_token, page.hash) == ((), None, None)
    assert (list(catalog.log()), catalog.count(), catalog.get_content(None, ContentKey.of("a"))) == ([], 0, None)


def test_keys_are_counted_in_all_and_by_type(filled: Catalog) -> None:
    assert (filled.count(), filled.count(content_type=ContentType.ICEBERG_TABLE)) == (13, 10)


def test_contents_are_read_at_once_without_absent_ones(filled: Catalog) -> None:
    wanted = [ContentKey.of("a", "t1"), ContentKey.of("nope"), ContentKey.of("v")]
    found = filled.get_contents("main", wanted)

    assert list(found) == [wanted[0], wanted[2]]
    assert [type(content) for content in found.values()] == [IcebergTable, IcebergView]


def test_branch_a_tag_and_a_hash_are_read_alike(filled: Catalog) -> None:
    tag = filled.create_tag("v1")
    filled.commit("main", [Delete(ContentKey.of("v"))])

    assert (filled.count("main"), filled.count("v1"), filled.count(tag.hash)) == (12, 13, 13)


@pytest.mark.parametrize("ref", ["nope", "0123456789ABCDEF"])
def test_ref_that_is_nothing_is_missing(filled: Catalog, ref: str) -> None:
    with pytest.raises(NotFoundError, match="no branch, tag or commit"):
        filled.count(ref)


def test_hash_of_a_commit_that_was_collected_is_expired(filled: Catalog) -> None:
    with pytest.raises(ExpiredError):
        filled.count("00000000000000ff")


def test_commit_of_another_reference_is_not_read(filled: Catalog, realm: RealmStore) -> None:
    other = read_head(realm, "catalogs")
    assert other is not None

    with pytest.raises(NotFoundError, match="is not one of catalog"):
        filled.count(id_text(other.id))


def test_commit_of_another_catalog_is_not_read(filled: Catalog, catalogs: Catalogs) -> None:
    catalogs.create_catalog("other", base_location="s3://other/")

    with pytest.raises(NotFoundError, match="is not one of catalog 'other'"):
        catalogs.open_catalog("other").count(filled.branch("main").hash)


def test_commit_of_another_process_is_read_at_once(filled: Catalog, store: Store, realm: RealmStore) -> None:
    another = Store(store.backend, url=store.url, settings=store.settings, clock=store.clock)
    there = Catalog(another.rows(realm.realm, realm.key), filled.definition)
    assert there.count() == 13
    filled.commit("main", [Delete(ContentKey.of("v"))])

    assert there.count() == 12


def test_content_whose_object_is_gone_is_unreadable(filled: Catalog, realm: RealmStore) -> None:
    value = filled.entries("main", prefix=ContentKey.of("a"), limit=1).entries[0].value
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id == value.object_id])

    with pytest.raises(CorruptionError, match=r"content a\.t0 of catalog 'lake'"):
        filled.get_content("main", ContentKey.of("a", "t0"))


def test_log_is_read_from_either_end(filled: Catalog) -> None:
    filled.commit("main", [Delete(ContentKey.of("v"))], message="later")

    assert [entry.seq for entry in filled.log()] == [2, 1]
    assert [entry.seq for entry in filled.log(oldest_first=True)] == [1, 2]
    assert [entry.message for entry in filled.log(limit=1)] == ["later"]
