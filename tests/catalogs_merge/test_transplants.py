"""Commits made again on another branch: each by itself, together or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sketched_branches import Branching, key, table

from headwater.catalogs import (
    CommitMeta,
    Conflict,
    Delete,
    KeyMerge,
    MergeConflictError,
    MergeMode,
    MergeOptions,
    MergeResult,
    Put,
    RefKind,
)
from headwater.catalogs.history.transplant import TRANSPLANTED_LIMIT
from headwater.catalogs.registry import content_reference
from headwater.errors import ConflictError, ExpiredError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore

Transplant = Callable[..., MergeResult]


@pytest.fixture
def transplant(lake: Branching) -> Transplant:
    def run(*commits: ObjectId, meta: CommitMeta | None = None, **options: object) -> MergeResult:
        return lake.catalog.transplant("dev", commits, "main", meta=meta, options=MergeOptions(**options))  # type: ignore[arg-type]

    return run


def test_each_commit_is_made_again_with_its_own_words(lake: Branching, transplant: Transplant) -> None:
    one = lake.put("dev", "x")
    other = lake.put("dev", "s.a=2", "x=2")
    lake.put("main", "y")
    done = transplant(one, other)
    newest, before, *_ = lake.catalog.log("main")

    assert lake.words("main") == {"s/", "s.a=2", "s.b", "x=2", "y"}
    assert done.commits == (before.id, newest.id)
    assert (newest.message, before.message) == ("s.a=2 x=2", "x")


def test_transplanted_commit_keeps_its_authors_time(lake: Branching, transplant: Transplant) -> None:
    meta = CommitMeta(message="m", authors=("Ann",), signed_off_by=("Bob",), properties={"a": ("1", "2")})
    made = lake.catalog.commit("dev", [Put(key("x"), table())], meta=meta).commit_id
    assert made is not None
    original = next(iter(lake.catalog.log("dev")))
    transplant(made)
    copy = next(iter(lake.catalog.log("main")))

    assert copy.meta == CommitMeta(
        message="m", authors=("Ann",), signed_off_by=("Bob",), properties={"a": ("1", "2")}, author_time=original.time
    )
    assert copy.time >= original.time


def test_one_commit_may_get_other_words(lake: Branching, transplant: Transplant) -> None:
    transplant(lake.put("dev", "x"), meta=CommitMeta(message="mine"))

    assert next(iter(lake.catalog.log("main"))).message == "mine"


def test_properties_of_one_commit_stay_unless_told_otherwise(lake: Branching, transplant: Transplant) -> None:
    meta = CommitMeta(message="m", authors=("Ann",), signed_off_by=("Bob",), properties={"a": ("1",)})
    made = lake.catalog.commit("dev", [Put(key("x"), table())], meta=meta).commit_id
    assert made is not None
    transplant(made, meta=CommitMeta(message="mine"))
    told = next(iter(lake.catalog.log("main"))).meta

    assert (told.message, told.authors, told.signed_off_by, told.properties) == ("mine", ("Ann",), ("Bob",), {"a": ("1",)})


def test_picked_commits_alone_come(lake: Branching, transplant: Transplant) -> None:
    lake.put("dev", "x")
    picked = lake.put("dev", "y")
    lake.put("dev", "z")
    transplant(picked)

    assert lake.words("main") == {"s/", "s.a", "s.b", "y"}


def test_commits_that_have_nothing_left_to_do_are_left_out(lake: Branching, transplant: Transplant) -> None:
    one, other = lake.put("dev", "x"), lake.put("dev", "y")
    transplant(one)
    done = transplant(one, other)

    assert [step.commit is None for step in done.steps] == [True, False]
    assert transplant(one, other).commits == ()


def test_conflicts_of_all_commits_are_told_and_none_is_made(lake: Branching, transplant: Transplant) -> None:
    commits = [lake.put("dev", "x"), lake.put("dev", "s.a=2"), lake.put("dev", "s.a=4"), lake.delete("dev", "s.b")]
    lake.put("main", "s.a=3", "s.b=3")
    head = lake.head("main")
    with pytest.raises(ConflictError, match="4 commits of dev cannot be transplanted to 'main': 2 conflicts") as caught:
        transplant(*commits)

    assert [str(one.key) for one in caught.value.details if isinstance(one, Conflict)] == ["s.a", "s.b"]
    assert lake.head("main") == head


def test_transplant_conflicts_tell_of_every_key(lake: Branching, transplant: Transplant) -> None:
    commit = lake.put("dev", "s.a=2")
    lake.put("main", "s.a=3")

    with pytest.raises(MergeConflictError) as caught:
        transplant(commit)

    assert [(str(one.key), str(one.outcome)) for one in caught.value.result.merged_keys] == [("s.a", "CONFLICT")]
    assert [one.kind for one in caught.value.result.conflicts] == ["VALUE_DIFFERS"]


def test_keys_are_forced_and_dropped_in_every_commit(lake: Branching, transplant: Transplant) -> None:
    commits = [lake.put("dev", "s.a=2", "s.b=2"), lake.put("dev", "s.a=4", "s.b=4")]
    lake.put("main", "s.a=3", "s.b=3")
    keys = {key("s.a"): KeyMerge(mode=MergeMode.FORCE), key("s.b"): KeyMerge(mode=MergeMode.DROP)}
    transplant(*commits, keys=keys)

    assert lake.words("main") == {"s/", "s.a=4", "s.b=3"}


def test_dry_run_of_a_transplant_writes_nothing(lake: Branching, transplant: Transplant, rows: RealmStore) -> None:
    commits = [lake.put("dev", "x"), lake.rename("dev", "x", "y"), lake.delete("dev", "y")]
    stored = sum(map(len, rows.scan_objects()))
    seen = transplant(*commits, dry_run=True)

    assert sum(map(len, rows.scan_objects())) == stored
    assert [one.outcome for one in seen.merged_keys] == ["PUT", "REMOVED", "PUT", "REMOVED"]


def test_commits_are_given_without_gaps_oldest_first(lake: Branching, transplant: Transplant) -> None:
    one, two, three = (lake.put("dev", text) for text in "xyz")
    for wrong in ((two, one), (one, three), (one, one)):
        with pytest.raises(RefusedError, match="without gaps, oldest first"):
            transplant(*wrong)


def test_transplant_needs_commits_and_not_too_many(transplant: Transplant) -> None:
    with pytest.raises(RefusedError, match="at least one"):
        transplant()
    with pytest.raises(RefusedError, match="1000 can be at once"):
        transplant(*[ObjectId(1)] * (TRANSPLANTED_LIMIT + 1))


def test_merge_options_are_refused_for_transplants(lake: Branching, transplant: Transplant) -> None:
    one, two = lake.put("dev", "x"), lake.put("dev", "y")
    with pytest.raises(RefusedError, match="no base"):
        transplant(one, base=one)
    with pytest.raises(RefusedError, match="no resolved or expected"):
        transplant(one, keys={key("x"): KeyMerge(resolved=table())})
    with pytest.raises(RefusedError, match="keeps its own message"):
        transplant(one, two, meta=CommitMeta(message="m"))
    with pytest.raises(RefusedError, match="none of these keys"):
        transplant(one, keys={key("y"): KeyMerge(mode=MergeMode.DROP)})


def test_commits_of_another_branch_are_missing_there(lake: Branching, transplant: Transplant) -> None:
    with pytest.raises(NotFoundError, match="not in the history of 'dev'"):
        transplant(lake.put("main", "x"))
    with pytest.raises(ExpiredError):
        transplant(ObjectId(99))


def test_first_commit_can_be_transplanted(empty: Branching) -> None:
    empty.catalog.create_branch("other")
    commits = [empty.put("main", "s/"), empty.put("main", "s.a")]
    empty.catalog.transplant("main", commits, "other")

    assert empty.words("other") == {"s/", "s.a"}
    empty.check("other")


def test_many_commits_become_the_head_in_one_move(lake: Branching, transplant: Transplant, rows: RealmStore) -> None:
    commits = [lake.put("dev", f"x=v{number}") for number in range(50)]
    name = content_reference(lake.catalog.definition.id, RefKind.BRANCH, "main")
    version = rows.read_reference(name, fresh=True).version
    done = transplant(*commits)

    assert rows.read_reference(name, fresh=True).version == version + 1
    assert len(done.commits) == 50
    assert [entry.message for entry in lake.catalog.log("main", limit=2)] == ["x=v49", "x=v48"]
    assert lake.catalog.get_content(f"{done.commits[30]:016x}", key("x")) == lake.catalog.get_content(
        f"{commits[30]:016x}", key("x")
    )


def test_commit_on_a_transplanted_one_goes_on(lake: Branching, transplant: Transplant) -> None:
    transplant(lake.put("dev", "x"), lake.put("dev", "x=2"))
    lake.catalog.commit("main", [Delete(key("x"))])

    assert lake.words("main") == {"s/", "s.a", "s.b"}
    lake.check("main")


def test_committer_is_who_transplants(lake: Branching) -> None:
    made = [
        lake.catalog.commit("dev", [Put(key(name), table())], meta=CommitMeta(message=name, committer="ann")) for name in "xy"
    ]
    commits = [commit.commit_id for commit in made if commit.commit_id is not None]
    lake.catalog.transplant("dev", commits, "main", meta=CommitMeta(committer="bob"))
    newest, before, *_ = lake.catalog.log("main")

    assert [(entry.message, entry.meta.committer) for entry in (before, newest)] == [("x", "bob"), ("y", "bob")]
