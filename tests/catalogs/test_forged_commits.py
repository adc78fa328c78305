"""What a commit tells of merges is ours to say: a caller cannot forge it, and an odd commit of an older release ends no log."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.catalogs import Catalog, CommitMeta, ContentKey, Namespace, Put, RefKind
from headwater.catalogs.registry import content_reference
from headwater.commits import commit_change
from headwater.errors import RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore

MARKED = ContentKey.of("marked")


def head_of(catalog: Catalog, branch: str = "main") -> ObjectId:
    head = catalog.branch(branch).head
    assert head is not None
    return head


@pytest.fixture
def dev(catalog: Catalog, first: ObjectId) -> ObjectId:
    """The head of a branch ``dev`` that is a commit ahead of main."""
    catalog.create_branch("dev")
    catalog.commit("dev", [Put(ContentKey.of("trial"), Namespace())])
    return head_of(catalog, "dev")


def test_commit_that_says_to_have_merged_is_refused(catalog: Catalog, dev: ObjectId) -> None:
    with pytest.raises(RefusedError, match="merge, and it will say so"):
        catalog.commit("main", [Put(MARKED, Namespace())], meta=CommitMeta(merged=(dev,)))

    assert len(catalog.merge("dev", "main").merged_keys) == 1


def test_merge_that_says_to_have_merged_more_is_refused(catalog: Catalog, dev: ObjectId) -> None:
    with pytest.raises(RefusedError, match="merge, and it will say so"):
        catalog.merge("dev", "main", meta=CommitMeta(merged=(dev,)))


def test_transplant_that_says_to_have_merged_is_refused(catalog: Catalog, dev: ObjectId) -> None:
    with pytest.raises(RefusedError, match="merge, and it will say so"):
        catalog.transplant("dev", [dev], "main", meta=CommitMeta(merged=(dev,)))


def test_transplanted_merge_has_merged_nothing(catalog: Catalog, dev: ObjectId) -> None:
    catalog.commit("main", [Put(MARKED, Namespace())])
    catalog.create_branch("other", "dev")
    merged = catalog.merge("dev", "main").head
    assert merged is not None
    catalog.transplant("main", [merged], "other", meta=CommitMeta(message="again"))

    assert next(iter(catalog.log("other"))).meta.merged == ()


@pytest.mark.parametrize(
    "words",
    [
        {"merged": (-1,)},
        {"merged": (0,)},
        {"merged": (1 << 63,)},
        {"merged": (True,)},
        {"author_time": -1},
        {"author_time": 10**18},
    ],
    ids=str,
)
def test_words_beyond_what_can_be_read_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=f"{next(iter(words))} of a commit is"):
        CommitMeta(**words)


@pytest.mark.parametrize(
    "odd",
    [
        {"merged": ["-000000000000001"]},
        {"merged": [5]},
        {"merged": "0123456789abcdef"},
        {"authors": [1]},
        {"authors": 1},
        {"properties": [1]},
        {"properties": {"a": 1}},
        {"authorTime": 10**18},
        {"authorTime": "2026"},
    ],
    ids=str,
)
def test_odd_commit_ends_no_log(catalog: Catalog, realm: RealmStore, first: ObjectId, odd: dict[str, Any]) -> None:
    name = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
    told = {"catalog": catalog.definition.id, **odd}
    commit_change(realm, name, lambda tx: tx.index("other").put(b"k", IndexValue(None, b"")), message="odd", properties=told)

    assert [entry.message for entry in catalog.log()] == ["odd", "first"]


def test_odd_commit_keeps_nobody_from_merging(catalog: Catalog, realm: RealmStore, dev: ObjectId) -> None:
    name = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
    told = {"catalog": catalog.definition.id, "merged": ["-000000000000001"]}
    commit_change(realm, name, lambda tx: tx.index("other").put(b"k", IndexValue(None, b"")), properties=told)

    assert catalog.merge("dev", "main").steps[0].source == dev
