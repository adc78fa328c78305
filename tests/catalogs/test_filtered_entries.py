"""Listings that a filter bounds: the same as asking the filter about every entry, and as quick as the level that is asked for."""

from __future__ import annotations

import cel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.catalogs import (
    Catalog,
    ContentEntry,
    ContentKey,
    ContentType,
    EntryExpression,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
)
from headwater.catalogs.entry_filter import EntryBounds
from headwater.catalogs.filter_text import quoted_text
from headwater.errors import RefusedError

CONTENTS = (IcebergTable(metadata_location="s3://lake/t"), IcebergView(metadata_location="s3://lake/v"))


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """Names that sort around the separator of keys, three levels deep."""
    names = ["a", "a-b", "a.b", "ab"]
    spaces = [ContentKey.of(name) for name in names]
    spaces += [space.child(name) for space in spaces[:3] for name in ("a", "a.b")]
    leaves = [space.child(name) for space in spaces for name in ("t", "a-b", "ab")] + [ContentKey.of("t"), ContentKey.of("é")]
    puts = [Put(key, CONTENTS[number % 2]) for number, key in enumerate(leaves)]
    catalog.commit("main", [*(Put(key, Namespace()) for key in spaces), *puts])
    return catalog


texts = st.sampled_from(
    ["", "a", "a.", "ab", "a.b", "a\x1db", "a\x1db.", "a.a", "a.a.", "a.a\x1db", "a-b.a", "\0", "t", "é", "b"]
)
types = st.sampled_from(["NAMESPACE", "ICEBERG_TABLE", "ICEBERG_VIEW", "UDF", "nothing"])
conditions = st.one_of(
    types.map(lambda kind: f"entry.contentType == '{kind}'"),
    types.map(lambda kind: f"'{kind}' == entry.contentType"),
    st.lists(types, max_size=2).map(lambda kinds: f"entry.contentType in {kinds}"),
    st.integers(0, 4).map(lambda depth: f"size(entry.keyElements) == {depth}"),
    st.integers(1, 4).map(lambda depth: f"{depth} == size( entry.keyElements )"),
    texts.map(lambda text: f"entry.encodedKey.startsWith({quoted_text(text)})"),
    texts.map(lambda text: f"entry.namespace == {quoted_text(text)}"),
    texts.map(lambda text: f"entry.encodedKey == {quoted_text(text)}"),
    texts.map(lambda text: f"entry.namespace.startsWith({quoted_text(text)})"),
    texts.map(lambda text: f"entry.name != {quoted_text(text)}"),
    st.tuples(texts, texts).map(
        lambda two: f"(entry.encodedKey == {quoted_text(two[0])} || entry.encodedKey.startsWith({quoted_text(two[1])}))"
    ),
    texts.map(lambda text: f"(entry.namespace == {quoted_text(text)} || size(entry.keyElements) == 1)"),
)
filters = st.one_of(
    st.lists(conditions, min_size=1, max_size=3).map(" && ".join),
    st.lists(conditions, min_size=2, max_size=3).map(" || ".join),
    st.tuples(conditions, conditions).map(lambda two: f"!({two[0]}) && {two[1]}"),
    st.tuples(conditions, conditions, conditions).map(lambda three: f"{three[0]} && {three[1]} || {three[2]}"),
)


def evaluated(text: str, entry: ContentEntry) -> bool:
    """What the library says of an entry, given all there is to know of it."""
    elements = [element.replace(".", "\x1d") for element in entry.key.elements]
    variables = {
        "name": entry.key.name,
        "encodedKey": ".".join(elements),
        "namespace": ".".join(elements[:-1]),
        "keyElements": list(entry.key.elements),
        "contentType": entry.type.name,  # type: ignore[union-attr]
    }
    return cel.compile(text).execute({"entry": variables}) is True


def pages(catalog: Catalog, where: EntryExpression, limit: int | None, *, reverse: bool) -> list[ContentEntry]:
    page = catalog.entries("main", where=where, limit=limit, reverse=reverse)
    entries = [*page.entries]
    while page.next_token:
        page = catalog.entries("main", limit=limit, page_token=page.next_token)
        entries += page.entries
    return entries


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters, st.sampled_from([None, 1, 2, 7]), st.booleans())
def test_filtered_listing_is_that_of_asking_about_each(filled: Catalog, text: str, limit: int | None, reverse: bool) -> None:
    where = EntryExpression.parse(text)
    every = filled.entries("main", reverse=reverse).entries

    chosen = pages(filled, where, limit, reverse=reverse)

    assert chosen == [entry for entry in every if where.chooses(entry)]
    assert chosen == [entry for entry in every if evaluated(text, entry)]


@pytest.mark.parametrize("limit", [1, 3])
def test_page_ends_early_where_little_is_chosen(filled: Catalog, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr("headwater.catalogs.entry_filter._BUDGET", 20)
    where = EntryExpression.parse("entry.name == 't' && entry.contentType == 'ICEBERG_VIEW'")

    first = filled.entries("main", where=where, limit=limit)

    assert (first.entries, first.next_token is None) == ((), False)
    assert pages(filled, where, limit, reverse=False) == pages(filled, where, None, reverse=False)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (
            "entry.contentType == 'NAMESPACE' && size(entry.keyElements) == 1",
            EntryBounds(frozenset({"NAMESPACE"}), 1),
        ),
        (
            "entry.contentType == 'NAMESPACE' && size(entry.keyElements) == 3 && entry.encodedKey.startsWith('a.b.')",
            EntryBounds(frozenset({"NAMESPACE"}), 3, b"a\0b\0"),
        ),
        ("entry.namespace == 'a.b\\u001dc'", EntryBounds(None, 3, b"a\0b.c\0")),
        ("entry.namespace == ''", EntryBounds(None, 1)),
        ("(entry.encodedKey == 'a' || entry.encodedKey.startsWith('a.'))", EntryBounds(prefix=b"a", is_whole=False)),
        ("(entry.encodedKey == 'a' || entry.encodedKey.startsWith('b.'))", EntryBounds(is_whole=False)),
        ("entry.namespace.startsWith('a')", EntryBounds(None, None, b"a", is_whole=False)),
        ("entry.encodedKey.startsWith('a') && entry.encodedKey.startsWith('b')", EntryBounds(prefix=None)),
        ("size(entry.keyElements) == 1 && size(entry.keyElements) == 2", EntryBounds(depth=1, prefix=None)),
        ("size(entry.keyElements) == 1 || true", EntryBounds(is_whole=False)),
        ("entry.name == 'x' && entry.contentType == 'UDF'", EntryBounds(frozenset({"UDF"}), is_whole=False)),
    ],
)
def test_bounds_are_what_has_to_be_true(text: str, bounds: EntryBounds) -> None:
    assert EntryExpression.parse(text).bounds == bounds


def test_page_token_carries_the_filter(filled: Catalog) -> None:
    where = EntryExpression.parse("size(entry.keyElements) == 1")
    token = filled.entries("main", where=where, limit=1).next_token

    assert filled.entries(page_token=token).entries == filled.entries("main", page_token=token, where=where).entries
    with pytest.raises(RefusedError, match="belongs to another listing"):
        filled.entries("main", page_token=token, where=EntryExpression.parse("size(entry.keyElements) == 2"))
    with pytest.raises(RefusedError, match="belongs to another listing"):
        filled.entries("main", page_token=filled.entries("main", limit=1).next_token, where=where)


def test_range_may_hold_its_own_ends(filled: Catalog) -> None:
    a, deep = ContentKey.of("a"), ContentKey.of("a", "a")
    every = [entry.key for entry in filled.entries("main").entries]

    below = [key for key in every if key.is_below(a)]
    assert [entry.key for entry in filled.entries("main", prefix=a, with_prefix=True).entries] == [a, *below]
    upto = [entry.key for entry in filled.entries("main", end=deep, with_end=True).entries]
    assert upto == [key for key in every if key <= deep] and upto[-1] == deep
    changes = filled.diff("main", "main", prefix=a, with_prefix=True, end=deep, with_end=True)
    assert changes.changes == ()


def test_entries_of_keys_are_those_that_exist(filled: Catalog) -> None:
    keys = [ContentKey.of("t"), ContentKey.of("nothing"), ContentKey.of("a")]

    assert [str(entry.key) for entry in filled.find_entries("main", keys)] == ["a", "t"]
    where = EntryExpression.parse("entry.contentType == 'NAMESPACE'")
    assert [entry.type for entry in filled.find_entries("main", keys, where=where)] == [ContentType.NAMESPACE]
