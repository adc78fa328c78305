"""Pages of any index of a commit: together they are the whole, of the commit of the first page, or they say that it was collected."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend_fixtures import STORES
from headwater.clock import Micros
from headwater.commits import (
    COLLECTION_ID,
    CollectionRecord,
    CommitResult,
    Head,
    IndexListing,
    PageToken,
    Transaction,
    commit_change,
    read_commit,
    read_head,
    read_next_page,
    read_page,
)
from headwater.errors import CorruptionError, ExpiredError, HeadwaterError, RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore
from stored_groups import write_group

Put = Callable[..., CommitResult[None]]
KEYS = [b"%02d" % n for n in range(0, 60, 2)]
TOKEN = PageToken(ObjectId(77), IndexListing(index="things", start=b"a", end=b"b", reverse=True), b"aa")


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """In memory, where a test does not name another database."""
    return STORES[getattr(request, "param", "memory")](request)


@pytest.fixture
def filled(rows: RealmStore) -> Head:
    """Thirty keys, the even numbers below 60."""

    def change(tx: Transaction) -> None:
        for key in KEYS:
            tx.index("things").put(key, IndexValue(None, b"v" + key))

    commit_change(rows, "main", change)
    newest = read_head(rows, "main")
    assert newest is not None
    return newest


def all_pages(at: Head, listing: IndexListing, limit: int) -> list[bytes]:
    page = read_page(at, listing, limit=limit)
    found = list(page.entries)
    while page.next_token is not None:
        page = read_next_page(at.rows, page.next_token, limit=limit)
        assert 1 <= len(page.entries) <= limit
        found += page.entries
    return [key for key, _ in found]


def remove(rows: RealmStore, *gone: ObjectId) -> None:
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id in gone])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    start=st.none() | st.binary(max_size=2) | st.sampled_from(KEYS),
    end=st.none() | st.binary(max_size=2) | st.sampled_from(KEYS),
    reverse=st.booleans(),
    limit=st.integers(1, 40),
)
def test_pages_of_a_range_together_are_the_range(
    filled: Head, start: bytes | None, end: bytes | None, reverse: bool, limit: int
) -> None:
    wanted = [key for key in KEYS if (start is None or key >= start) and (end is None or key < end)]
    listing = IndexListing(index="things", start=start, end=end, reverse=reverse)

    assert all_pages(filled, listing, limit) == (wanted[::-1] if reverse else wanted)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("prefix", [b"", b"1", b"12", b"x", b"\xff"])
def test_pages_of_a_prefix_together_are_all_with_that_prefix(filled: Head, prefix: bytes, reverse: bool) -> None:
    wanted = sorted((key for key in KEYS if key.startswith(prefix)), reverse=reverse)

    assert all_pages(filled, IndexListing.of_prefix("things", prefix, reverse=reverse), 3) == wanted


@pytest.mark.parametrize("store_url", STORES, indirect=True)
def test_next_page_is_of_the_same_commit_on_every_database(rows: RealmStore, filled: Head, put: Put) -> None:
    page = read_page(filled, IndexListing(index="things"), limit=20)
    put(rows, b"59")
    put(rows, b"40", b"changed")
    assert page.next_token is not None
    rest = read_next_page(rows, page.next_token)

    assert [*page.entries, *rest.entries] == [(key, IndexValue(None, b"v" + key)) for key in KEYS]
    assert (rest.commit_id, rest.next_token) == (filled.id, None)


def test_pages_of_an_inner_member_are_of_that_member(rows: RealmStore, filled: Head) -> None:
    inner, _ = write_group(rows, [{b"01": IndexValue(None), b"02": None}, {b"03": IndexValue(None)}])

    assert all_pages(read_commit(rows, inner), IndexListing(index="things", end=b"06"), 1) == [b"00", b"01", b"04"]


def test_page_that_ends_with_the_listing_has_no_token(filled: Head) -> None:
    assert read_page(filled, IndexListing(index="things"), limit=30).next_token is None
    assert read_page(filled, IndexListing(index="things"), limit=29).next_token is not None
    assert read_page(filled, IndexListing(index="never"), limit=1).entries == ()


@pytest.mark.parametrize("limit", [0, -1])
def test_page_without_room_is_refused(filled: Head, limit: int) -> None:
    with pytest.raises(RefusedError, match="entries of a page"):
        read_page(filled, IndexListing(index="things"), limit=limit)


def test_token_of_a_collected_commit_has_expired(rows: RealmStore, filled: Head, put: Put) -> None:
    token = read_page(filled, IndexListing(index="things"), limit=1).next_token
    put(rows)
    remove(rows, filled.id)
    assert token is not None
    with pytest.raises(ExpiredError, match="start the listing again, without a page token"):
        read_next_page(rows, token)


@pytest.mark.parametrize("found", ["collected", "sweeping", "damaged"])
def test_unreadable_page_says_whether_its_commit_was_collected(rows: RealmStore, filled: Head, found: str) -> None:
    inner, _ = write_group(rows, [{b"01": IndexValue(None)}, {b"03": IndexValue(None)}])
    at = read_commit(rows, inner)
    remove(rows, filled.id, *([inner] if found == "collected" else []))
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=found == "sweeping", reader_cutoff=Micros(0)))
    with pytest.raises(HeadwaterError) as raised:
        read_page(at, IndexListing(index="things"))

    assert type(raised.value) is (CorruptionError if found == "damaged" else ExpiredError)


def test_token_reads_back_as_it_was() -> None:
    for token in (TOKEN, PageToken(ObjectId(2**63 - 1), IndexListing(index="größe"), b"\0" * 500)):
        assert PageToken.from_text(token.as_text()) == token


def test_token_is_written_as_the_page_on_formats_says() -> None:
    body = b"\x93\x4d\x95\xa6things\xc4\1a\xc4\1b\xc3\xa0\xc4\2aa"
    data = b"\2" + zlib.crc32(body).to_bytes(4, "big") + body

    assert TOKEN.as_text() == base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@given(st.text(max_size=30) | st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()))
def test_text_that_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="is not a page token"):
        PageToken.from_text(text)


def test_token_with_any_character_altered_is_refused() -> None:
    text = TOKEN.as_text()
    for place, letter in enumerate(text):
        for other in ("A", "B", "_", "", " "):
            if other != letter:
                with pytest.raises(RefusedError):
                    PageToken.from_text(text[:place] + other + text[place + 1 :])
