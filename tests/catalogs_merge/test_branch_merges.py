"""What a merge puts on the target, what it leaves, and what it tells."""

from __future__ import annotations

import pickle

import pytest
from sketched_branches import Branching, conflicted_or_done, table

from headwater.catalogs import CommitMeta, Conflict, KeyMerge, MergeConflictError, MergeMode, MergeOutcome, Namespace
from headwater.catalogs.content import with_id
from headwater.errors import ConflictError, ExpiredError, NotFoundError, RefusedError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.store import ObjectId, RealmStore

FORCE, DROP = KeyMerge(mode=MergeMode.FORCE), KeyMerge(mode=MergeMode.DROP)


def outcomes(lake: Branching, **modes: KeyMerge) -> dict[str, str]:
    found = lake.merge(keys=modes)
    return {str(one.key): str(one.outcome) for one in found.merged_keys}


def conflicts(lake: Branching, **keys: KeyMerge) -> list[tuple[str, str]]:
    by_key = {text.replace("_", "."): one for text, one in keys.items()}
    found = conflicted_or_done(lambda: lake.merge(keys=by_key))
    return [(str(one.kind), str(one.key)) for one in found.conflicts]


def test_merge_brings_the_sources_changes_and_keeps_the_targets(lake: Branching) -> None:
    lake.put("dev", "s.c", "s.a=2")
    lake.delete("dev", "s.b")
    lake.put("main", "t")
    lake.merge()

    assert lake.words("main") == {"s/", "s.a=2", "s.c", "t"}


def test_merge_is_one_commit_that_names_the_head_it_merged(lake: Branching) -> None:
    lake.put("dev", "x")
    head = lake.put("dev", "y")
    onto = lake.head("main")
    done = lake.merge()
    newest = next(iter(lake.catalog.log("main")))

    assert (done.commits, done.head, done.onto, newest.parent) == ((newest.id,), newest.id, onto, onto)
    assert newest.meta.merged == (head,)


def test_merge_says_what_it_merged_unless_it_is_told_otherwise(lake: Branching) -> None:
    lake.put("dev", "x")
    lake.merge()
    lake.put("dev", "y")
    meta = CommitMeta(message="mine", authors=("Ann",), properties={"ticket": ("1", "2")})
    lake.catalog.merge("dev", "main", meta=meta)
    newest, before, *_ = lake.catalog.log("main")

    assert before.message.startswith("Merge dev at ")
    assert (newest.message, newest.meta.authors, newest.meta.properties["ticket"]) == ("mine", ("Ann",), ("1", "2"))


def test_content_ids_come_along(lake: Branching) -> None:
    lake.put("dev", "x")
    lake.rename("dev", "s.a", "s.z")
    a = lake.content_id("main", "s.a")
    lake.merge()

    assert lake.content_id("main", "x") == lake.content_id("dev", "x")
    assert lake.content_id("main", "s.z") == a
    lake.check("main")


def test_merge_of_nothing_makes_no_commit(lake: Branching, rows: RealmStore) -> None:
    before = lake.head("main")
    stored = sum(map(len, rows.scan_objects()))
    done = [lake.merge("dev"), lake.merge("main")]

    assert [(one.is_applied, one.head, one.conflicts) for one in done] == [(False, before, ())] * 2
    assert sum(map(len, rows.scan_objects())) == stored


def test_merged_commits_are_not_merged_again(lake: Branching) -> None:
    lake.put("dev", "x")
    lake.merge()
    lake.delete("main", "x")

    assert not lake.merge().is_applied
    assert "x" not in lake.words("main")


def test_work_goes_on_after_a_merge(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    lake.merge()
    lake.put("dev", "s.a=3")
    done = lake.merge()

    assert "s.a=3" in lake.words("main")
    assert [str(one.key) for one in done.merged_keys] == ["s.a"]


def test_merges_back_and_forth_find_what_was_merged(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    lake.merge()
    lake.put("main", "s.b=2")
    lake.merge("main", "dev")
    lake.put("dev", "s.b=3")
    lake.merge()

    assert lake.words("main") == lake.words("dev") == {"s/", "s.a=2", "s.b=3"}


def test_tag_and_a_commit_are_merged_like_a_branch(lake: Branching) -> None:
    first = lake.put("dev", "x")
    lake.catalog.create_tag("v1", "dev")
    lake.put("dev", "y")
    done = lake.merge(f"{first:016x}")

    assert done.is_applied
    assert "x" in lake.words("main")
    assert not lake.merge("v1").is_applied


def test_source_without_a_commit_is_refused(empty: Branching) -> None:
    empty.catalog.create_branch("bare")
    with pytest.raises(RefusedError, match="no commit yet"):
        empty.merge("bare")


def test_branch_without_a_commit_takes_everything(empty: Branching) -> None:
    empty.catalog.create_branch("bare")
    empty.put("main", "s/", "s.a")
    done = empty.merge("main", "bare")

    assert empty.words("bare") == {"s/", "s.a"}
    assert (done.base, done.onto) == (None, None)


def test_branches_of_two_beginnings_need_a_base(empty: Branching) -> None:
    empty.catalog.create_branch("other")
    main = empty.put("main", "x")
    empty.put("other", "y")

    with pytest.raises(NotFoundError, match="no common ancestor: name the base"):
        empty.merge("other")
    assert empty.merge("other", base=main).is_applied


def test_base_by_hand_is_compared_with(lake: Branching) -> None:
    first = lake.put("dev", "x")
    lake.put("dev", "y")
    lake.merge(base=first)

    assert lake.words("main") == {"s/", "s.a", "s.b", "y"}


# what stands against a merge


def test_key_that_both_changed_conflicts(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    lake.put("main", "s.a=3")
    with pytest.raises(ConflictError, match=r"cannot be merged into 'main': 1 conflict: VALUE_DIFFERS s.a") as caught:
        lake.merge()

    assert [one.kind for one in caught.value.details if isinstance(one, Conflict)] == ["VALUE_DIFFERS"]
    assert lake.words("main") == {"s/", "s.a=3", "s.b"}


def test_all_conflicts_are_told_and_innocent_keys_are_not(lake: Branching) -> None:
    lake.put("dev", "s.a=2", "s.b=2", "s.c", "x")
    lake.put("main", "s.a=3", "s.c=3")
    lake.delete("main", "s.b")

    assert conflicts(lake) == [("VALUE_DIFFERS", "s.a"), ("KEY_DOES_NOT_EXIST", "s.b"), ("KEY_EXISTS", "s.c")]


def test_merge_conflicts_tell_of_every_key_and_write_nothing(lake: Branching, rows: RealmStore) -> None:
    lake.put("dev", "s.a=2", "x")
    lake.put("main", "s.a=3")
    stored = sum(map(len, rows.scan_objects()))
    with pytest.raises(MergeConflictError) as caught:
        lake.merge()

    assert sum(map(len, rows.scan_objects())) == stored
    assert {str(one.key): one.outcome for one in caught.value.result.merged_keys} == {
        "s.a": MergeOutcome.CONFLICT,
        "x": MergeOutcome.PUT,
    }


def test_merge_conflicts_can_be_pickled(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    lake.put("main", "s.a=3")
    with pytest.raises(MergeConflictError) as caught:
        lake.merge()
    copy = pickle.loads(pickle.dumps(caught.value))

    assert (str(copy), copy.details, copy.result) == (str(caught.value), caught.value.details, caught.value.result)


def test_both_having_done_the_same_is_no_conflict(lake: Branching) -> None:
    for branch in ("dev", "main"):
        lake.put(branch, "s.a=2", "new")
        lake.delete(branch, "s.b")

    assert outcomes(lake) == {"s.a": "SAME", "s.b": "SAME", "new": "SAME"}


def test_namespaces_new_on_both_sides_stay_as_on_the_target(lake: Branching) -> None:
    lake.put("dev", "n/=theirs", "n.t")
    lake.put("main", "n/=ours", "n.u")

    assert outcomes(lake) == {"n": "KEPT", "n.t": "PUT"}
    assert {"n/=ours", "n.t", "n.u"} < lake.words("main")


def test_namespace_that_went_is_missed(lake: Branching) -> None:
    lake.put("dev", "s.c")
    lake.delete("main", "s", "s.a", "s.b")

    assert conflicts(lake) == [("NAMESPACE_ABSENT", "s")]


def test_namespace_that_got_a_child_stays(lake: Branching) -> None:
    lake.delete("dev", "s", "s.a", "s.b")
    lake.put("main", "s.c")

    assert conflicts(lake) == [("NAMESPACE_NOT_EMPTY", "s")]


def test_one_content_never_stands_under_two_keys(lake: Branching) -> None:
    lake.rename("dev", "s.a", "s.x")
    lake.rename("main", "s.a", "s.y")

    assert conflicts(lake, s_a=DROP) == [("KEY_CONFLICT", "s.x")]
    assert conflicts(lake, s_a=FORCE, s_x=FORCE) == [("KEY_CONFLICT", "s.x")]


def test_move_against_a_deletion_is_a_conflict(lake: Branching) -> None:
    lake.rename("dev", "s.a", "s.x")
    lake.delete("main", "s.a")
    lake.delete("dev", "s.b")
    lake.rename("main", "s.b", "s.y")

    found = conflicted_or_done(lambda: lake.merge(dry_run=True))
    assert [str(one) for one in found.conflicts] == [
        "KEY_DOES_NOT_EXIST s.a: was moved to s.x by the source, and is gone from the target",
        "KEY_DOES_NOT_EXIST s.b: was deleted by the source, and the target has moved it to s.y",
    ]


@pytest.mark.parametrize("modes", [{"s_a": FORCE}, {"s_x": DROP}], ids=str)
def test_move_against_a_deletion_is_settled_by_modes(lake: Branching, modes: dict[str, KeyMerge]) -> None:
    lake.rename("dev", "s.a", "s.x")
    lake.delete("main", "s.a")

    assert conflicts(lake, **modes) == []


def test_same_move_on_both_sides_is_the_same(lake: Branching) -> None:
    lake.rename("dev", "s.a", "s.x")
    lake.rename("main", "s.a", "s.x")

    assert conflicts(lake) == []


# modes and resolutions


def test_force_takes_the_sources(lake: Branching) -> None:
    lake.put("dev", "s.a=2", "s.b=2", "s.c=2")
    lake.put("main", "s.a=3", "s.c=3")
    lake.delete("main", "s.b")
    lake.merge(mode=MergeMode.FORCE)

    assert lake.words("main") == {"s/", "s.a=2", "s.b=2", "s.c=2"}
    lake.check("main")


def test_drop_keeps_the_targets(lake: Branching) -> None:
    lake.put("dev", "s.a=2", "x")
    lake.put("main", "s.a=3")

    assert outcomes(lake, **{"s.a": DROP}) == {"s.a": "DROPPED", "x": "PUT"}
    assert "s.a=3" in lake.words("main")


def test_all_keys_dropped_make_no_commit(lake: Branching) -> None:
    lake.put("dev", "x")

    assert not lake.merge(mode=MergeMode.DROP).is_applied


def test_table_is_not_forced_over_a_namespace_with_children(lake: Branching) -> None:
    lake.put("dev", "n")
    lake.put("main", "n/", "n.t")

    assert conflicts(lake, n=FORCE) == [("NAMESPACE_NOT_EMPTY", "n")]


def test_modes_for_keys_that_the_source_left_alone_are_refused(lake: Branching) -> None:
    lake.put("dev", "x")
    with pytest.raises(RefusedError, match=r"none of these keys.*: nope, s\.a"):
        lake.merge(keys={"s.a": DROP, "nope": FORCE, "x": DROP})


def test_resolved_content_is_put_under_the_targets_id(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    lake.put("main", "s.a=3")
    done = lake.merge(keys={"s.a": KeyMerge(expected=table("3"), resolved=table("4"))})

    assert [one.outcome for one in done.merged_keys] == [MergeOutcome.RESOLVED]
    assert "s.a=4" in lake.words("main")
    assert lake.content_id("main", "s.a") == lake.content_id("dev", "s.a")


def test_resolution_of_what_is_gone_brings_it_back(lake: Branching) -> None:
    a = lake.content_id("dev", "s.a")
    lake.put("dev", "s.a=2")
    lake.delete("main", "s.a")
    lake.merge(keys={"s.a": KeyMerge(resolved=table("4"))})

    assert lake.content_id("main", "s.a") == a
    lake.check("main")


@pytest.mark.parametrize(
    ("resolution", "kind"),
    [
        (KeyMerge(expected=table("9"), resolved=table("4")), "VALUE_DIFFERS"),
        (KeyMerge(resolved=table("4")), "KEY_EXISTS"),
        (KeyMerge(mode=MergeMode.FORCE, expected=table("9")), "VALUE_DIFFERS"),
        (KeyMerge(mode=MergeMode.FORCE, expected=Namespace()), "PAYLOAD_DIFFERS"),
    ],
)
def test_expected_content_that_is_not_there_conflicts(lake: Branching, resolution: KeyMerge, kind: str) -> None:
    lake.put("dev", "s.a=2")
    lake.put("main", "s.a=3")

    assert conflicts(lake, s_a=resolution) == [(kind, "s.a")]


def test_resolved_content_has_one_sides_id_and_type(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    b = lake.content_id("main", "s.b")

    with pytest.raises(RefusedError, match="which neither side has there"):
        lake.merge(keys={"s.a": KeyMerge(expected=table(), resolved=with_id(table("4"), b))})
    with pytest.raises(RefusedError, match="the resolved content is NAMESPACE"):
        lake.merge(keys={"s.a": KeyMerge(expected=table(), resolved=Namespace())})


def test_request_that_contradicts_itself_is_refused() -> None:
    for mode in (MergeMode.FORCE, MergeMode.DROP):
        with pytest.raises(RefusedError, match="goes with mode NORMAL"):
            KeyMerge(mode=mode, resolved=table())
    with pytest.raises(RefusedError, match="expects no content"):
        KeyMerge(mode=MergeMode.DROP, expected=table())
    with pytest.raises(RefusedError, match="metadata belongs to an Iceberg table or view"):
        KeyMerge(resolved=Namespace(), metadata=MetadataParts({}, {}))


# looking, and expecting


def test_dry_run_tells_the_same_and_writes_nothing(lake: Branching, rows: RealmStore) -> None:
    lake.put("dev", "s.a=2", "x")
    before, stored = lake.words("main"), sum(map(len, rows.scan_objects()))
    seen = lake.merge(dry_run=True)

    assert (lake.words("main"), sum(map(len, rows.scan_objects())), seen.is_applied) == (before, stored, False)
    assert seen.merged_keys == lake.merge().merged_keys


def test_dry_run_of_conflicts_conflicts(lake: Branching) -> None:
    lake.put("dev", "s.a=2")
    lake.put("main", "s.a=3")

    with pytest.raises(MergeConflictError) as caught:
        lake.merge(dry_run=True)
    assert len(caught.value.result.conflicts) == 1


def test_expected_commit_is_in_the_history_of_the_target(lake: Branching) -> None:
    other = lake.put("dev", "x")
    older = lake.head("main")
    lake.put("main", "y")

    with pytest.raises(NotFoundError, match="not in the history of branch 'main'"):
        lake.catalog.merge("dev", "main", expected=other)
    assert lake.catalog.merge("dev", "main", expected=older).is_applied


def test_merges_go_to_branches_only(lake: Branching) -> None:
    lake.catalog.create_tag("v1")
    with pytest.raises(RefusedError, match="is a tag"):
        lake.merge("dev", "v1")
    with pytest.raises(NotFoundError):
        lake.merge("nope")


def test_base_that_is_gone_is_expired(lake: Branching) -> None:
    lake.put("dev", "x")
    with pytest.raises(ExpiredError):
        lake.merge(base=ObjectId(99))
