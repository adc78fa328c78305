"""What Nessie's own suites ask of references: before all commits, relative ones, detached ones, and hashes that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest
from nessie_caller import NessieCaller

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, ContentKey, Namespace, Put
from headwater.fsck import check_store, is_bad
from headwater.gc import collect_realm
from headwater.store import id_text
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

Json = dict[str, Any]


def put(lake: Catalog, branch: str, name: str) -> str:
    commit = lake.commit(branch, [Put(ContentKey.of(name), Namespace())], message=f"put {name}").commit_id
    assert commit is not None
    return id_text(commit)


@pytest.fixture
def hashes(lake: Catalog) -> dict[str, list[str]]:
    """main has a, b, c; dev has a, b, x, y, and none but these two."""
    common = [put(lake, "main", name) for name in "ab"]
    lake.create_branch("dev")
    return {"main": [*common, put(lake, "main", "c")], "dev": [*common, *(put(lake, "dev", name) for name in "xy")]}


def branch(name: str, commit: str) -> Json:
    return {"type": "BRANCH", "name": name, "hash": commit}


def names(caller: NessieCaller, ref: str) -> set[str]:
    return {entry["name"]["elements"][0] for entry in caller.get(f"trees/{ref}/entries").data["entries"]}


def commit_at(caller: NessieCaller, path: str, name: str) -> Any:
    operation = {"type": "PUT", "key": {"elements": [name]}, "content": {"type": "NAMESPACE", "elements": [name]}}
    return caller.post(f"trees/{path}/history/commit", {"commitMeta": {"message": name}, "operations": [operation]})


@pytest.mark.parametrize("version", [1, 2])
def test_branch_is_assigned_to_before_all_commits_and_goes_on(
    nessie: NessieCaller, lake: Catalog, hashes: dict[str, list[str]], version: int
) -> None:
    head = hashes["main"][-1]
    if version == 2:
        answer = nessie.put(f"trees/main@{head}", branch("main", NO_ANCESTOR_HASH))
        assert answer.data["reference"]["hash"] == NO_ANCESTOR_HASH
    else:
        assert nessie.v1.put("trees/branch/main", branch("main", NO_ANCESTOR_HASH), expected_hash=head).status == 204
    assert nessie.hash_of() == NO_ANCESTOR_HASH
    assert names(nessie, "main") == set()
    assert names(nessie, f"@{head}") == {"a", "b", "c"}  # what was left stays readable

    assert commit_at(nessie, f"main@{NO_ANCESTOR_HASH}", "new").status == 200
    assert names(nessie, "main") == {"new"}
    back = {"type": "DETACHED", "hash": head}
    assert nessie.put(f"trees/main@{nessie.hash_of()}", back).status == 200  # and comes back
    assert names(nessie, "main") == {"a", "b", "c"}


def test_branch_is_assigned_to_before_all_commits_again_and_again(nessie: NessieCaller, lake: Catalog) -> None:
    for round_ in range(5):
        put(lake, "main", f"n{round_}")
        assert nessie.put(f"trees/main@{nessie.hash_of()}", branch("main", NO_ANCESTOR_HASH)).status == 200

    assert len(nessie.get("trees/main/history").data["logEntries"]) == 0


def test_what_a_branch_left_for_before_all_commits_is_collected_after_the_grace(
    nessie: NessieCaller, lake: Catalog, store: Store, clock: FakeClock
) -> None:
    left = put(lake, "main", "a")
    nessie.put(f"trees/main@{left}", branch("main", NO_ANCESTOR_HASH))
    collect_realm(store, "acme")
    assert names(nessie, f"@{left}") == {"a"}
    put(lake, "main", "b")
    clock.advance(7 * 86_400)
    put(lake, "main", "c")
    collect_realm(store, "acme")

    assert nessie.get(f"trees/@{left}/entries").error == (404, "REFERENCE_NOT_FOUND")
    assert names(nessie, "main") == {"b", "c"}
    assert not is_bad(check_store(store, realm="acme"))


def test_unknown_expected_hash_of_a_move_or_deletion_is_a_conflict(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    target = branch("main", hashes["main"][0])
    for unknown in (hashes["main"][-1], "1" * 16, "ab" * 32):
        for answer in (nessie.put(f"trees/dev@{unknown}", target), nessie.delete(f"trees/dev@{unknown}")):
            assert answer.error == (409, "REFERENCE_CONFLICT")
            assert answer.details["conflicts"][0]["conflictType"] == "UNEXPECTED_HASH"
    assert nessie.hash_of("dev") == hashes["dev"][-1]


def test_relative_expected_hash_of_a_commit_elsewhere_is_a_conflict(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    """Of a commit that is nowhere it is missing, as Nessie's suite has it."""
    target, elsewhere = branch("main", hashes["main"][0]), f"{hashes['dev'][-1]}~1"
    assert nessie.post("trees", branch("main", hashes["main"][-1]), name="etl", type="BRANCH").status == 200
    for expected, status in ((elsewhere, 409), (f"{'1' * 16}~1", 404)):
        for answer in (nessie.put(f"trees/etl@{expected}", target), nessie.delete(f"trees/etl@{expected}")):
            assert answer.status == status


def test_commit_that_stands_alone_is_not_assigned_or_deleted(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    head = hashes["main"][-1]
    for alone in (f"@{head}", f"@{hashes['dev'][-1]}~1"):
        for answer in (nessie.put(f"trees/{alone}", branch("dev", hashes["dev"][-1])), nessie.delete(f"trees/{alone}")):
            assert answer.error == (400, "BAD_REQUEST")
    assert nessie.hash_of() == head


@pytest.mark.parametrize("start", ["main", "main@{head}", "@{head}"])
def test_reference_may_lead_to_before_all_commits(nessie: NessieCaller, hashes: dict[str, list[str]], start: str) -> None:
    begins = start.format(head=hashes["main"][-1])

    assert names(nessie, f"{begins}~2") == {"a"}
    for steps in ("~3", "~2~1"):
        shown = nessie.get(f"trees/{begins}{steps}/entries").data
        assert shown["entries"] == [] and shown["effectiveReference"]["hash"] == NO_ANCESTOR_HASH
        compared = nessie.get(f"trees/{begins}{steps}/diff/main@{hashes['main'][-1]}").data["diffs"]
        assert [each["key"]["elements"] for each in compared] == [["a"], ["b"], ["c"]]
    assert nessie.get(f"trees/{begins}~4/entries").error == (404, "REFERENCE_NOT_FOUND")


def test_unknown_expected_hash_of_a_change_is_missing(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    """A commit, a merge and a transplant begin at a commit that has to be there; Nessie's suite has 404 for these, too."""
    merge = {"fromRefName": "dev", "fromHash": hashes["dev"][-1]}
    transplant = {"fromRefName": "dev", "hashesToTransplant": hashes["dev"][-1:]}
    for unknown in ("1" * 16, f"{'1' * 16}~1", hashes["dev"][-1], "ab" * 32):
        for answer in (
            commit_at(nessie, f"main@{unknown}", "new"),
            nessie.post(f"trees/main@{unknown}/history/merge", merge),
            nessie.post(f"trees/main@{unknown}/history/transplant", transplant),
        ):
            assert answer.error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.hash_of() == hashes["main"][-1]


def test_relative_reference_may_begin_outside_of_the_branch(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    outside = hashes["dev"][-1]

    assert names(nessie, f"main@{outside}~2") == {"a", "b"}
    assert commit_at(nessie, f"main@{outside}~2", "new").status == 200
    assert commit_at(nessie, f"main@{outside}~1", "newer").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get(f"trees/main@{outside}/entries").error == (404, "REFERENCE_NOT_FOUND")


def test_detached_reference_may_be_relative(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    head = hashes["dev"][-1]

    assert names(nessie, f"@{head}~1") == {"a", "b", "x"}
    detached = {"type": "DETACHED", "hash": f"{head}~1"}
    assert nessie.post("trees", detached, name="late", type="BRANCH").data["reference"]["hash"] == hashes["dev"][-2]
    assert nessie.put(f"trees/late@{hashes['dev'][-2]}", {"type": "DETACHED", "hash": f"{head}~2"}).status == 200
    merged = nessie.post(f"{nessie.at_head()}/history/merge", {"fromRefName": "DETACHED", "fromHash": f"{head}~1"})
    assert merged.data["wasApplied"]
    assert names(nessie, "main") == {"a", "b", "c", "x"}


def test_commits_that_stand_alone_are_transplanted(nessie: NessieCaller, hashes: dict[str, list[str]]) -> None:
    head = hashes["dev"][-1]
    body = {"fromRefName": "DETACHED", "hashesToTransplant": [f"{head}~1", head]}

    assert nessie.post(f"{nessie.at_head()}/history/transplant", body).data["wasApplied"]
    assert names(nessie, "main") == {"a", "b", "c", "x", "y"}


def test_relative_commit_that_leads_back_to_the_source_is_transplanted(
    nessie: NessieCaller, hashes: dict[str, list[str]]
) -> None:
    outside = commit_at(nessie, f"dev@{hashes['dev'][-1]}", "z").data["targetBranch"]["hash"]
    nessie.put(f"trees/dev@{outside}", branch("dev", hashes["dev"][-1]))  # z is on no branch any more
    body = {"fromRefName": "dev", "hashesToTransplant": [f"{outside}~1"]}

    assert nessie.post(f"{nessie.at_head()}/history/transplant", body).data["wasApplied"]
    assert names(nessie, "main") == {"a", "b", "c", "y"}


def test_branches_that_share_only_the_beginning_have_it_as_common_ancestor(nessie: NessieCaller, lake: Catalog) -> None:
    put(lake, "main", "a")
    nessie.post("trees", branch("main", NO_ANCESTOR_HASH), name="apart", type="BRANCH")
    shown = [nessie.get("trees/apart", fetch="ALL").data["reference"]["metadata"]]
    put(lake, "apart", "x")
    shown.append(nessie.get("trees/apart", fetch="ALL").data["reference"]["metadata"])

    assert [each["commonAncestorHash"] for each in shown] == [NO_ANCESTOR_HASH] * 2
    assert [(each["numCommitsAhead"], each["numCommitsBehind"]) for each in shown] == [(0, 1), (1, 1)]


def test_log_of_version_1_whose_far_end_is_not_met_goes_to_the_beginning(
    nessie: NessieCaller, hashes: dict[str, list[str]]
) -> None:
    def log(**query: str) -> list[str]:
        entries = nessie.v1.get("trees/tree/main/log", **query).data["logEntries"]
        return [entry["commitMeta"]["hash"] for entry in entries]

    main, dev = hashes["main"], hashes["dev"]
    assert log(start_hash=main[2], end_hash=main[1]) == main[1::-1]  # younger than where the log begins
    assert log(start_hash=dev[-1]) == main[::-1]  # on another branch
    assert log(start_hash=main[1], end_hash=main[2]) == [main[2], main[1]]
    assert nessie.v1.get("trees/tree/main/log", start_hash="ab" * 8).error == (404, "REFERENCE_NOT_FOUND")
