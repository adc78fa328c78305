"""Metadata of commits in JSON: each version's names, what clients send, and the headers."""

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import CommitMeta, LogEntry
from headwater.errors import RefusedError
from headwater_server.json_body import convert_body
from headwater_server.nessie.commit_meta_bodies import (
    CommitMetaRequest,
    commit_meta_body,
    commit_meta_body_v1,
    instant_text,
    parse_commit_meta,
    with_headers,
)
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

_TIME = 1_769_860_800_000_005
_META = CommitMeta(
    message="load",
    committer="etl",
    authors=("a", "b"),
    signed_off_by=("c", "d"),
    properties={"job": ("1", "2"), "none": ()},
)
_ENTRY = LogEntry(id=0x123, seq=2, time=_TIME, meta=_META, parent=0x122, operations=())
_PYNESSIE = dict.fromkeys(["hash", "commitTime", "authorTime", "committer", "author", "signedOffBy", "properties"])
_JAVA = {
    "hash": None,
    "committer": None,
    "authors": ["iceberg-user"],
    "allSignedOffBy": [],
    "message": "m",
    "commitTime": None,
    "authorTime": None,
    "allProperties": {"app-id": ["x"]},
}


def _json(body):
    return json.loads(msgspec.json.encode(body))


def _parsed(body, **options):
    return parse_commit_meta(convert_body(body, CommitMetaRequest), **options)


def test_version_2_writes_lists():
    assert _json(commit_meta_body(_ENTRY)) == {
        "hash": "0000000000000123",
        "committer": "etl",
        "authors": ["a", "b"],
        "allSignedOffBy": ["c", "d"],
        "message": "load",
        "commitTime": "2026-01-31T12:00:00.000005Z",
        "authorTime": "2026-01-31T12:00:00.000005Z",
        "allProperties": {"job": ["1", "2"], "none": []},
        "parentCommitHashes": ["0000000000000122"],
    }


def test_version_1_writes_the_first_of_each():
    assert _json(commit_meta_body_v1(_ENTRY)) == {
        "hash": "0000000000000123",
        "committer": "etl",
        "author": "a",
        "signedOffBy": "c",
        "message": "load",
        "commitTime": "2026-01-31T12:00:00.000005Z",
        "authorTime": "2026-01-31T12:00:00.000005Z",
        "properties": {"job": "1"},
    }


def test_commit_without_authors_says_so():
    entry = replace(_ENTRY, meta=CommitMeta())

    assert commit_meta_body(entry).authors == []
    assert commit_meta_body_v1(entry).author is None
    assert commit_meta_body_v1(entry).signed_off_by is None


def test_first_commit_has_the_hash_of_no_commit_as_parent():
    assert commit_meta_body(replace(_ENTRY, parent=None)).parent_commit_hashes == [NO_ANCESTOR_HASH]


def test_merge_has_the_merged_heads_as_parents():
    entry = replace(_ENTRY, meta=replace(_META, merged=(0x9, 0xA)))

    assert commit_meta_body(entry).parent_commit_hashes == ["0000000000000122", f"{9:016x}", f"{10:016x}"]


def test_transplanted_commit_keeps_its_authors_time():
    entry = replace(_ENTRY, meta=replace(_META, author_time=0))

    assert commit_meta_body(entry).author_time == commit_meta_body_v1(entry).author_time == "1970-01-01T00:00:00.000000Z"


def test_python_client_sends_nulls():
    assert _parsed(_PYNESSIE | {"message": "m", "author": "me"}) == CommitMeta(message="m", authors=("me",))


def test_java_client_sends_lists():
    meta = CommitMeta(message="m", authors=("iceberg-user",), properties={"app-id": ("x",)})

    assert _parsed(_JAVA) == _parsed({**_JAVA, "parentCommitHashes": []}) == meta


def test_old_names_give_one_value_each():
    body = {"message": "", "signedOffBy": "s", "properties": {"a": "1"}, "authorTime": "2026-01-31T13:00:00.000005+01:00"}

    assert _parsed(body) == CommitMeta(signed_off_by=("s",), properties={"a": ("1",)}, author_time=_TIME)


def test_lists_count_before_single_values():
    both = {"message": "m", "author": "x", "authors": ["y"], "properties": {"a": "1"}, "allProperties": {"b": ["2"]}}

    assert _parsed(both) == CommitMeta(message="m", authors=("y",), properties={"b": ("2",)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hash", "0000000000000123"),
        ("committer", "root"),
        ("commitTime", "2026-01-31T12:00:00Z"),
        ("parentCommitHashes", ["0000000000000123"]),
    ],
)
def test_field_of_the_server_is_refused(name, value):
    with pytest.raises(RefusedError, match=f"^{name} of a commit"):
        _parsed({"message": "m", name: value})


def test_commit_needs_a_message():
    with pytest.raises(RefusedError, match=r"commitMeta\.message"):
        _parsed({"author": "a"})
    assert _parsed({"author": "a"}, is_message_needed=False) == CommitMeta(authors=("a",))


@pytest.mark.parametrize("time", ["", "now", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", "1"])
def test_time_that_is_none_is_refused(time):
    with pytest.raises(RefusedError, match="authorTime"):
        _parsed({"message": "m", "authorTime": time})


@pytest.mark.parametrize("change", [{"author": 1}, {"authors": "a"}, {"allProperties": {"a": "1"}}, {"properties": {"a": 1}}])
def test_value_of_another_type_is_refused_by_name(change):
    with pytest.raises(RefusedError, match=next(iter(change))):
        _parsed({"message": "m", **change})


def test_nanoseconds_are_cut_off():
    assert _parsed({"message": "m", "authorTime": "2026-01-31T12:00:00.000005999Z"}).author_time == _TIME


@given(st.integers(0, 253_402_300_799_999_999))
def test_time_survives_its_text(time):
    assert _parsed({"message": "", "authorTime": instant_text(time)}).author_time == time


@given(
    st.lists(st.text(max_size=3), max_size=3), st.dictionaries(st.text(max_size=3), st.lists(st.text(max_size=3), max_size=2))
)
def test_metadata_survives_version_2(texts, properties):
    meta = CommitMeta(
        message="".join(texts),
        authors=tuple(texts),
        signed_off_by=tuple(texts),
        properties={name: tuple(values) for name, values in properties.items()},
        author_time=_TIME,
    )
    body = _json(commit_meta_body(replace(_ENTRY, meta=meta)))

    for name in ("hash", "committer", "commitTime", "parentCommitHashes"):
        del body[name]
    assert _parsed(body) == meta


def test_headers_win_over_or_add_to_the_body():
    headers = {
        "nessie-commit-message": " My own ",
        "nessie-commit-authors": "Me <me@x>, I <i@x>,",
        "nessie-commit-signedoffby": "c",
        "nessie-commit-property-job": "bar, baz",
        "nessie-commit-property-list": "1,2",
        "nessie-commit-property-": "nameless",
        "nessie-commit-property-blank": " ",
        "user-agent": "x",
    }

    assert with_headers(
        CommitMeta(message="m", authors=("a",), properties={"job": ("1",), "k": ("v",)}), headers
    ) == CommitMeta(
        message="My own",
        authors=("a", "Me <me@x>", "I <i@x>"),
        signed_off_by=("c",),
        properties={"job": ("bar", "baz"), "k": ("v",), "list": ("1,2",)},
    )


def test_blank_headers_change_nothing():
    assert with_headers(_META, {"nessie-commit-message": " ", "nessie-commit-authors": ","}) == _META
    assert with_headers(_META, {}) == _META
