"""Branches and tags by name and page by page, filtered; how far two of them have parted."""

from __future__ import annotations

import random

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    Catalog,
    Catalogs,
    ContentKey,
    NamedRef,
    Namespace,
    Put,
    ReferenceExpression,
    RefKind,
)
from headwater.catalogs.history.ref_relation import RefRelation
from headwater.errors import RefusedError
from headwater.store import ObjectId, RealmId, RealmKey
from headwater.store.backends.memory import MemoryBackend


@pytest.fixture
def store_url() -> str:
    return "memory://"


def commit(catalog: Catalog, branch: str, number: int) -> ObjectId:
    done = catalog.commit(branch, [Put(ContentKey.of(f"{branch}-{number}"), Namespace())], message=f"{branch} {number}")
    assert done.commit_id is not None
    return done.commit_id


@pytest.fixture
def listed(catalog: Catalog) -> Catalog:
    """Branches and tags whose names interleave, and deleted ones."""
    commit(catalog, "main", 1)
    for number in range(4):
        catalog.create_branch(f"n{number}")
        catalog.create_tag(f"n{number}-tag")
    catalog.delete_branch("n1")
    catalog.delete_tag("n2-tag")
    catalog.create_tag("n1")
    commit(catalog, "n3", 1)
    return catalog


def pages(catalog: Catalog, limit: int | None, **arguments: object) -> list[NamedRef]:
    page = catalog.refs.list_page(limit=limit, **arguments)  # type: ignore[arg-type]
    refs = [*page.refs]
    while page.next_token:
        page = catalog.refs.list_page(limit=limit, page_token=page.next_token)
        refs += page.refs
    return refs


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 50])
def test_pages_have_both_kinds_by_name(listed: Catalog, limit: int | None) -> None:
    every = sorted([*listed.branches(), *listed.tags()], key=lambda ref: ref.name)

    assert pages(listed, limit) == every
    assert pages(listed, limit, kind=RefKind.TAG) == listed.tags()
    assert [ref.name for ref in every] == ["main", "n0", "n0-tag", "n1", "n1-tag", "n2", "n3", "n3-tag"]


@pytest.mark.parametrize("limit", [None, 1, 3])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("refType == 'TAG' && ref.name.startsWith('n1')", ["n1", "n1-tag"]),
        ("refType == 'BRANCH' && commit.message == 'main 1'", ["main", "n0", "n2"]),
        ("refMeta.numCommitsAhead > 0", ["n3"]),
        ("refMeta.commitMetaOfHEAD.message == 'n3 1' && refMeta.numTotalCommits == 2", ["n3"]),
        ("ref.hash == '' || ref.type == 'x'", []),
    ],
)
def test_pages_of_a_filter_have_what_it_chooses(
    listed: Catalog, monkeypatch: pytest.MonkeyPatch, limit: int | None, text: str, names: list[str]
) -> None:
    monkeypatch.setattr("headwater.catalogs.ref_pages._LOOKED_AT", 2)

    assert [ref.name for ref in pages(listed, limit, where=ReferenceExpression.parse(text))] == names


def test_page_token_of_another_listing_is_refused(listed: Catalog) -> None:
    token = listed.refs.list_page(limit=1).next_token

    with pytest.raises(RefusedError, match="another listing"):
        listed.refs.list_page(kind=RefKind.TAG, page_token=token)
    with pytest.raises(RefusedError, match="another listing"):
        listed.refs.list_page(where=ReferenceExpression.parse("refType == 'TAG'"), page_token=token)
    with pytest.raises(RefusedError, match="not a page token"):
        listed.refs.list_page(page_token=(token or "") + "A")


def test_name_is_found_of_either_kind(listed: Catalog) -> None:
    assert listed.refs.find_named("n0") == listed.branch("n0")
    assert listed.refs.find_named("n1") == listed.tag("n1")
    assert listed.refs.find_named("-") == listed.branch("main")
    assert listed.refs.find_named("n2-tag") is None


class CountingRows(FaultyBackend):
    """Counts the calls that read."""

    reads: list[str]

    def _call(self, name: str, *arguments: object, **named: object) -> object:
        if name.startswith("read"):
            self.reads.append(name)
        return super()._call(name, *arguments, **named)


@pytest.fixture
def counted(settings: Settings, clock: FakeClock) -> CountingRows:
    backend = CountingRows(MemoryBackend())
    backend.reads = []
    return backend


def open_counted(backend: CountingRows, store: Store) -> Catalog:
    rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
    for name in (CATALOGS, CLAIMS):
        rows.ensure_reference(name)
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    return Catalogs(rows).open_catalog("lake")


def test_branch_is_found_by_reading_one_row(counted: CountingRows, settings: Settings, clock: FakeClock) -> None:
    with Store(counted, url="memory://", settings=settings, clock=clock) as store:
        catalog = open_counted(counted, store)
        commit(catalog, "main", 1)
        counted.reads.clear()

        catalog.refs.find_named("main")

        assert counted.reads == ["read_references"]


def test_lines_that_parted_are_compared_in_few_reads(counted: CountingRows, settings: Settings, clock: FakeClock) -> None:
    with Store(counted, url="memory://", settings=settings, clock=clock) as store:
        catalog = open_counted(counted, store)
        base = commit(catalog, "main", 0)
        catalog.create_branch("dev")
        for number in range(1, 101):
            commit(catalog, "main", number)
            commit(catalog, "dev", number)
        store.cache.clear()
        counted.reads.clear()

        relation = catalog.relation("dev")

        assert relation == RefRelation(100, 100, base, 101)
        assert len(counted.reads) <= 2 + 2 + 6


def test_relation_is_that_of_walking_both_lines(catalog: Catalog) -> None:
    dice, branches = random.Random(7), ["main"]
    for number in range(90):
        if number % 9 == 0:
            name = f"b{number}"
            catalog.create_branch(name, dice.choice(branches))
            branches.append(name)
        commit(catalog, dice.choice(branches), number)

    lines = {name: [entry.id for entry in catalog.log(name)] for name in branches}
    for one in branches:
        for other in branches:
            assert catalog.relation(one, other) == _walked(lines[one], lines[other])


def _walked(line: list[ObjectId], base: list[ObjectId]) -> RefRelation:
    common = next((commit_id for commit_id in line if commit_id in base), None)
    ahead = len(line) if common is None else line.index(common)
    behind = len(base) if common is None else base.index(common)
    return RefRelation(ahead, behind, common, len(line), is_apart=common is None)


def test_references_without_a_common_commit_have_no_ancestor(catalog: Catalog) -> None:
    catalog.create_branch("empty")
    assert catalog.relation("empty") == RefRelation(0, 0, None, 0, is_apart=True)
    commit(catalog, "main", 1)
    commit(catalog, "empty", 1)

    assert catalog.relation("empty") == RefRelation(1, 1, None, 1, is_apart=True)
    assert catalog.relation("main") == RefRelation(0, 0, catalog.branch("main").head, 1)
