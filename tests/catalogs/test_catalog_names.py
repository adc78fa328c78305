"""What catalogs, branches and tags may be called, and what their reference names say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import RefKind, checked_catalog_name, checked_ref_name
from headwater.catalogs.registry import (
    ListedRef,
    OwnRefKind,
    ParsedReference,
    content_reference,
    own_reference,
    parse_reference,
)
from headwater.clock import Micros
from headwater.errors import CorruptionError, RefusedError
from headwater.index import IndexValue

ID = "00000000000000ff"
BRANCH, TAG = RefKind.BRANCH, RefKind.TAG
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,9}(/[A-Za-z0-9_-]{1,9}){0,2}", fullmatch=True)


@pytest.mark.parametrize("name", ["main", "feature/x", "v1.2", "a_b-", "2024-Q1", "coffee20", "_x", "cafebabe", "x" * 200])
def test_sane_name_is_admitted(name: str) -> None:
    assert checked_ref_name(BRANCH, name) == name


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "0 characters"),
        ("x" * 201, "201 characters"),
        ("HEAD", "reserved"),
        ("detached", "reserved"),
        ("cafebabedeadbeef", "hash of a commit"),
        ("CAFEBABEDEADBEEF", "hash of a commit"),
        ("-x", "at the start"),
        (".foo", "at the start"),
        ("/foo", "at the start"),
        ("abc/", "at the end"),
        ("abc.", "at the end"),
        ("a b", "use A-Z"),
        ("main\n", "use A-Z"),
        ("abc/de@{blah", "use A-Z"),
        ("a~1", "use A-Z"),
        ("abc/def/../blah", "side by side"),
        ("abc/de..blah", "side by side"),
        ("a//b", "side by side"),
        ("a/.b", "side by side"),
    ],
)
def test_name_that_git_refuses_is_refused_with_the_reason(name: str, complaint: str) -> None:
    with pytest.raises(RefusedError, match=complaint):
        checked_ref_name(TAG, name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "x" * 129, "a\n", "ü"])
def test_bad_catalog_name_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match="is not a catalog name"):
        checked_catalog_name(name)


@given(st.sampled_from(RefKind), names)
def test_reference_name_says_whose_branch_or_tag_it_is(kind: RefKind, name: str) -> None:
    assert parse_reference(content_reference(ID, kind, name)) == ParsedReference(ID, kind, name)


@pytest.mark.parametrize("part", OwnRefKind)
def test_reference_name_says_which_own_part_it_is(part: OwnRefKind) -> None:
    assert parse_reference(own_reference(ID, part)) == ParsedReference(ID, part)


@pytest.mark.parametrize(
    "name", ["catalogs", "cat/x/refs", f"cat/{ID}", f"cat/{ID}/heads/", f"cat/{ID}/other", f"cat/{ID}/refs/x"]
)
def test_other_reference_names_are_no_catalogs(name: str) -> None:
    assert parse_reference(name) is None


@given(st.sampled_from(RefKind), names, st.integers(0, 2**62).map(Micros))
def test_listed_name_survives_its_bytes(kind: RefKind, name: str, listed: Micros) -> None:
    entry = ListedRef(kind, name, listed)

    assert ListedRef.from_entry(entry.key, entry.to_value()) == entry


@pytest.mark.parametrize(
    ("key", "data"), [(b"x\0a", b"x" + bytes(8)), (b"b", b"b" + bytes(8)), (b"b\0a", b"t" + bytes(8)), (b"b\0a", b"b")]
)
def test_entry_that_lists_nothing_is_unreadable(key: bytes, data: bytes) -> None:
    with pytest.raises(CorruptionError, match="neither a branch nor a tag"):
        ListedRef.from_entry(key, IndexValue(None, data))
