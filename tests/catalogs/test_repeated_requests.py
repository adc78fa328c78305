"""Requests with a key: however often they are sent, they are applied once."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from headwater.catalogs import (
    REQUESTS,
    Catalog,
    ContentKey,
    IcebergTable,
    Put,
    RequestKey,
    RequestKeyReusedError,
)
from headwater.errors import RefusedError


@pytest.fixture
def store_url() -> str:
    return "memory://"


def table(version: int) -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/x/v{version}.json")


KEY = ContentKey.of("t")


def make_request(number: int = 1, *, scope: bytes = b"ada", digest: bytes = b"put") -> RequestKey:
    return RequestKey(UUID(int=number << 80 | 7 << 76 | 2 << 62), scope, digest)


def test_repeated_request_makes_no_second_commit(catalog: Catalog) -> None:
    first = catalog.commit("main", [Put(KEY, table(1))], request=make_request())
    other = catalog.commit("main", [Put(ContentKey.of("u"), table(2))])

    repeat = catalog.commit("main", [Put(KEY, table(1))], request=make_request())

    assert (repeat.is_replay, repeat.changed, repeat.commit_id, repeat.result) == (True, False, first.commit_id, {})
    assert not first.is_replay and first.changed
    assert catalog.branch("main").head == other.commit_id


def test_request_with_the_key_of_another_is_refused(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))], request=make_request())

    with pytest.raises(RequestKeyReusedError, match="used for another request"):
        catalog.commit("main", [Put(KEY, table(2))], request=make_request(digest=b"else"))


def test_keys_of_two_scopes_are_two_requests(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))], request=make_request())

    assert catalog.commit("main", [Put(ContentKey.of("u"), table(1))], request=make_request(scope=b"eve")).changed


@pytest.mark.parametrize("other", [uuid4(), UUID(int=0), UUID("0190163d-8694-739b-0000-b5b1a2b3c4d5")])
def test_key_of_another_version_is_refused(other: UUID) -> None:
    with pytest.raises(RefusedError, match="UUID of version 7"):
        RequestKey(other, b"", b"")


def test_request_that_changes_nothing_is_not_noted(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))])
    stored = catalog.get_content("main", KEY)
    assert stored is not None

    same = catalog.commit("main", [Put(KEY, stored)], expected=catalog.branch("main").head, request=make_request())

    head = catalog.resolve("main")
    assert head is not None and len(head.index(REQUESTS)) == 0
    assert not same.changed and not same.is_replay
