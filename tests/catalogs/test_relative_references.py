"""Relative references: a way back from a branch, a tag or a commit, and where it ends."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, ContentKey, Delete, IcebergTable, Put, RefKind
from headwater.clock import as_datetime
from headwater.commits import read_commit
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore, id_text


@pytest.fixture
def store_url() -> str:
    return "memory://"


COUNT = 50
"""More than two tails."""


@pytest.fixture
def line(catalog: Catalog) -> list[ObjectId]:
    """The commits of main, oldest first: each moves one table on."""
    found = []
    for number in range(COUNT):
        key, before = ContentKey.of("t"), catalog.get_content(None, ContentKey.of("t"))
        table = IcebergTable(id=None if before is None else before.id, metadata_location=f"s3://lake/{number}.json")
        found.append(catalog.commit("main", [Put(key, table)], message=str(number)).commit_id)
    return [commit for commit in found if commit is not None]


def meant(catalog: Catalog, text: str) -> ObjectId | None:
    found = catalog.resolve(text)
    return None if found is None else found.id


def time_of(realm: RealmStore, commit_id: ObjectId) -> int:
    return read_commit(realm, commit_id).commit.time


def take_away(realm: RealmStore, commit_id: ObjectId) -> None:
    """As a collection does with what no retention keeps."""
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id == commit_id])


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 39, 40, 41, COUNT - 1])
def test_commits_are_counted_back(catalog: Catalog, line: list[ObjectId], count: int) -> None:
    assert meant(catalog, f"main~{count}") == line[-1 - count]


def test_steps_follow_each_other(catalog: Catalog, line: list[ObjectId]) -> None:
    assert meant(catalog, f"main@{id_text(line[40])}~1^1~3") == line[35]


def test_no_name_and_a_hyphen_are_the_default_branch(catalog: Catalog, line: list[ObjectId]) -> None:
    assert meant(catalog, "-~1") == meant(catalog, "~1") == meant(catalog, "@~1") == line[-2]


def test_step_before_the_first_commit_finds_nothing(catalog: Catalog, line: list[ObjectId]) -> None:
    with pytest.raises(NotFoundError, match=f"at ~{COUNT}: there are {COUNT - 1} commits before"):
        catalog.resolve(f"main~{COUNT}")


def test_second_parent_is_the_head_that_was_merged(catalog: Catalog, line: list[ObjectId]) -> None:
    merged = catalog.create_branch("dev", at=line[40])
    catalog.commit("dev", [Put(ContentKey.of("u"), IcebergTable(metadata_location="s3://lake/u.json"))])
    catalog.merge("dev")

    assert (meant(catalog, "main^1"), meant(catalog, "main^2")) == (line[-1], catalog.branch("dev").head)
    assert meant(catalog, "main^2~1") == merged.head == line[40]
    with pytest.raises(NotFoundError, match="has 2 parents, not 3"):
        catalog.resolve("main^3")


@pytest.mark.parametrize("at", [0, 1, 17, 29, 30, 31, COUNT - 1])
def test_time_means_the_youngest_commit_until_then(catalog: Catalog, realm: RealmStore, line: list[ObjectId], at: int) -> None:
    micros = time_of(realm, line[at])
    moment = f"*{micros // 1000 + 1}"  # full milliseconds: the first that is not before the commit

    found = catalog.resolve(f"main{moment}")

    assert found is not None
    assert found.commit.time <= (micros // 1000 + 1) * 1000
    assert found.commit.seq >= at + 1


def test_time_is_exact_to_the_microsecond(catalog: Catalog, realm: RealmStore, line: list[ObjectId]) -> None:
    for at in (0, 13, 30, COUNT - 1):
        moment = as_datetime(time_of(realm, line[at])).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert meant(catalog, f"main*{moment}") == line[at]


def test_time_before_the_first_commit_says_so(catalog: Catalog, line: list[ObjectId]) -> None:
    with pytest.raises(NotFoundError, match=r"there is no state of branch main of catalog lake .* it was made at"):
        catalog.resolve("main*1000")
    with pytest.raises(NotFoundError, match=r"there is no state of .* nothing was committed by then"):
        catalog.resolve(f"main@{id_text(line[9])}*1000")


def test_commit_beside_a_name_has_to_be_in_its_history(catalog: Catalog, line: list[ObjectId]) -> None:
    catalog.create_branch("dev", at=line[3])

    assert meant(catalog, f"dev@{id_text(line[2])}") == line[2]
    with pytest.raises(NotFoundError, match="is not in the history of 'dev'"):
        catalog.resolve(f"dev@{id_text(line[9])}")
    assert meant(catalog, f"@{id_text(line[9])}") == line[9]


@pytest.mark.parametrize("text", ["main~30", "main~5*1000", "main~5~25"])
def test_way_through_a_cut_has_expired(catalog: Catalog, realm: RealmStore, line: list[ObjectId], text: str) -> None:
    for commit in line[: COUNT - 10]:
        take_away(realm, commit)

    with pytest.raises(ExpiredError, match="has expired at"):
        catalog.resolve(text)


def test_commit_beyond_a_cut_has_expired_for_its_branch(catalog: Catalog, realm: RealmStore, line: list[ObjectId]) -> None:
    for commit in line[5:30]:
        take_away(realm, commit)

    with pytest.raises(ExpiredError, match="is not known any more"):
        catalog.resolve(f"main@{id_text(line[0])}")


def test_empty_branch_has_nothing_to_count_from(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match="nothing was committed"):
        catalog.resolve("main~1")


def test_branch_starts_at_a_commit_counted_from_a_hash(catalog: Catalog, line: list[ObjectId]) -> None:
    assert catalog.create_branch("dev", f"main@{id_text(line[9])}~2").head == line[7]
    assert catalog.create_tag("v1", id_text(line[4])).head == line[4]


def test_branch_does_not_start_at_a_relative_reference(catalog: Catalog, line: list[ObjectId]) -> None:
    with pytest.raises(RefusedError, match="counts back from a branch that may have moved"):
        catalog.create_branch("dev", "main~1")
    with pytest.raises(RefusedError, match=r"say from which commit, such as main@0123456789abcdef\^1~2"):
        catalog.resolve("main^1~2", exact=True)


def test_source_with_a_commit_takes_no_other(catalog: Catalog, line: list[ObjectId]) -> None:
    with pytest.raises(RefusedError, match="says already at which commit"):
        catalog.create_branch("dev", f"main@{id_text(line[9])}", at=line[9])


def test_everything_is_read_at_a_relative_reference(catalog: Catalog, line: list[ObjectId]) -> None:
    catalog.commit("main", [Delete(ContentKey.of("t"))])

    assert (catalog.count(), catalog.count("main~1"), len(catalog.entries("main~1").entries)) == (0, 1, 1)
    assert [entry.id for entry in catalog.log("main~2", limit=1)] == [line[-2]]


@pytest.mark.parametrize(
    ("text", "kind", "name", "is_writable"),
    [
        (None, RefKind.BRANCH, "main", True),
        ("-", RefKind.BRANCH, "main", True),
        ("main", RefKind.BRANCH, "main", True),
        ("dev", RefKind.BRANCH, "dev", True),
        ("v1", RefKind.TAG, "v1", False),
        ("main~1", RefKind.BRANCH, "main", False),
        ("v1~1", RefKind.TAG, "v1", False),
        ("main@{hash}", RefKind.BRANCH, "main", False),
        ("{hash}", None, None, False),
        ("@{hash}", None, None, False),
    ],
)
def test_target_says_what_it_is_and_whether_it_can_be_written(
    catalog: Catalog, line: list[ObjectId], text: str | None, kind: RefKind | None, name: str | None, is_writable: bool
) -> None:
    catalog.create_branch("dev")
    catalog.create_tag("v1")
    filled = None if text is None else text.format(hash=id_text(line[7]))

    target = catalog.read_target(filled)

    assert (target.kind, target.name, target.is_writable) == (kind, name, is_writable)
    assert target.head == catalog.resolve(filled)


def test_target_of_an_empty_branch_can_be_written(catalog: Catalog) -> None:
    target = catalog.read_target("main")

    assert target.is_writable and target.head is None


def test_target_that_is_not_there_is_not_found(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match="no branch, tag or commit 'elsewhere'"):
        catalog.read_target("elsewhere")
