"""Branches and tags created, moved and deleted by both versions, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nessie_caller import NessieCaller

from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog, ContentKey, Namespace, Put
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH


@pytest.fixture
def commits(lake: Catalog) -> list[str]:
    """Two commits of main, oldest first."""
    made = [lake.commit("main", [Put(ContentKey.of(name), Namespace())], message=name).commit_id for name in ("a", "b")]
    return [f"{commit:016x}" for commit in made if commit is not None]


def branch(name: str, commit: str | None, kind: str = "BRANCH") -> dict[str, object]:
    return {"type": kind, "name": name, "hash": commit}


def test_branch_is_created_at_a_hash(nessie: NessieCaller, commits: list[str]) -> None:
    made = nessie.post("trees", branch("main", commits[0]), name="dev", type="branch")

    assert made.data == {"reference": branch("dev", commits[0])}
    assert nessie.hash_of("dev") == commits[0]


def test_tag_is_created_at_a_detached_hash(nessie: NessieCaller, commits: list[str]) -> None:
    made = nessie.post("trees", {"type": "DETACHED", "hash": commits[0]}, name="v1", type="TAG")

    assert made.data == {"reference": branch("v1", commits[0], "TAG")}


def test_branch_is_created_at_steps_back_from_a_hash(nessie: NessieCaller, commits: list[str]) -> None:
    made = nessie.post("trees", branch("main", f"{commits[1]}~1"), name="dev", type="branch")

    assert made.data["reference"]["hash"] == commits[0]


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_reference_before_the_first_commit_is_empty(nessie: NessieCaller, commits: list[str], kind: str) -> None:
    made = nessie.post("trees", branch("main", NO_ANCESTOR_HASH), name="empty", type=kind)

    assert made.data["reference"]["hash"] == NO_ANCESTOR_HASH
    assert nessie.hash_of("empty") == NO_ANCESTOR_HASH


@pytest.mark.parametrize("taken_by", ["branch", "tag"])
@pytest.mark.parametrize("wanted", ["branch", "tag"])
def test_taken_name_is_refused(nessie: NessieCaller, commits: list[str], taken_by: str, wanted: str) -> None:
    nessie.post("trees", branch("main", commits[0]), name="dev", type=taken_by)

    assert nessie.post("trees", branch("main", commits[1]), name="dev", type=wanted).error == (409, "REFERENCE_ALREADY_EXISTS")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("dev", {"type": "BRANCH", "name": "main"}),
        ("dev", {"type": "BRANCH", "name": "main", "hash": "~1"}),
        ("dev", {"type": "NOTHING", "name": "main", "hash": NO_ANCESTOR_HASH}),
        ("HEAD", {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}),
        ("deadbeef00", {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}),
        ("1st", {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}),
        ("a b", {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}),
    ],
)
def test_unsound_creation_is_refused(nessie: NessieCaller, commits: list[str], name: str, source: object) -> None:
    assert nessie.post("trees", source, name=name, type="branch").error == (400, "BAD_REQUEST")
    assert nessie.get(f"trees/{name.replace(' ', '%20')}").status in (400, 404)


@pytest.mark.parametrize("commit", ["0123456789abcdef", "deadbeef", "ab" * 32])
def test_creation_at_an_unknown_hash_finds_nothing(nessie: NessieCaller, commits: list[str], commit: str) -> None:
    assert nessie.post("trees", branch("main", commit), name="dev", type="branch").error == (404, "REFERENCE_NOT_FOUND")


def test_branch_with_slashes_ends_at_the_sign(nessie: NessieCaller, commits: list[str]) -> None:
    nessie.post("trees", branch("main", commits[0]), name="team/dev", type="branch")

    assert nessie.get("trees/team/dev@").data == nessie.get("trees/team%2Fdev").data


def test_branch_is_moved(nessie: NessieCaller, commits: list[str]) -> None:
    nessie.post("trees", branch("main", commits[0]), name="dev", type="branch")
    moved = nessie.put(f"trees/dev@{commits[0]}", branch("main", commits[1]), type="branch")

    assert moved.data == {"reference": branch("dev", commits[1])}


def test_stale_hash_is_told_as_unexpected(nessie: NessieCaller, commits: list[str]) -> None:
    nessie.post("trees", branch("main", commits[1]), name="dev", type="branch")
    answers = [
        nessie.put(f"trees/dev@{commits[0]}", branch("main", commits[0])),
        nessie.delete(f"trees/dev@{commits[0]}"),
        nessie.delete(f"trees/dev@{NO_ANCESTOR_HASH}"),
    ]

    for answer in answers:
        assert answer.error == (409, "REFERENCE_CONFLICT")
        assert [each["conflictType"] for each in answer.details["conflicts"]] == ["UNEXPECTED_HASH"]
    assert nessie.hash_of("dev") == commits[1]


@pytest.mark.parametrize("path", ["main", "main~1", "main@~1", "-"])
def test_change_without_a_hash_is_refused(nessie: NessieCaller, commits: list[str], path: str) -> None:
    assert nessie.put(f"trees/{path}", branch("main", commits[0])).error == (400, "BAD_REQUEST")
    assert nessie.delete(f"trees/{path}").error == (400, "BAD_REQUEST")


def test_reference_of_the_other_kind_is_refused(nessie: NessieCaller, commits: list[str]) -> None:
    nessie.post("trees", branch("main", commits[0]), name="v1", type="tag")

    assert nessie.delete(f"trees/v1@{commits[0]}", type="branch").error == (400, "BAD_REQUEST")
    assert nessie.delete(f"trees/v1@{commits[0]}", type="tag").data == {"reference": branch("v1", commits[0], "TAG")}
    assert nessie.get("trees/v1").error == (404, "REFERENCE_NOT_FOUND")


def test_default_branch_is_not_deleted(nessie: NessieCaller, commits: list[str]) -> None:
    assert nessie.delete(f"trees/main@{commits[1]}").error == (400, "BAD_REQUEST")


def test_details_need_a_client_that_reads_them(nessie: NessieCaller, commits: list[str]) -> None:
    nessie.post("trees", branch("main", commits[1]), name="dev", type="branch")
    for level, has_details in (("2", True), ("11", True), ("1", False), ("0", False), ("", False), ("x", False)):
        answer = nessie.with_headers(**{"nessie-client-spec": level}).delete(f"trees/dev@{commits[0]}")
        assert (answer.details is not None) is has_details


def test_version_1_changes_references(nessie: NessieCaller, commits: list[str]) -> None:
    made = nessie.v1.post("trees/tree", branch("dev", commits[0]), source_ref_name="main")
    moved = nessie.v1.put("trees/branch/dev", branch("main", commits[1]), expected_hash=commits[0])

    assert made.data == branch("dev", commits[0])
    assert moved.status == 204 and nessie.v1.get("trees/tree/dev").data == branch("dev", commits[1])
    assert nessie.v1.delete("trees/tag/dev", expected_hash=commits[1]).error == (400, "BAD_REQUEST")
    assert nessie.v1.delete("trees/branch/dev", expected_hash=commits[1]).status == 204
    assert nessie.v1.get("trees/tree/dev").error == (404, "REFERENCE_NOT_FOUND")


def test_caller_makes_no_branch_of_what_it_does_not_see(
    guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]
) -> None:
    lake = guarded.catalog()
    lake.commit("main", [Put(ContentKey.of("a"), Namespace())], message="a")
    lake.create_branch("secret")
    guarded.make_principal("eve", held(Privilege.REFERENCE_CREATE, on="reference", references="dev*"))
    eve, head = caller_of("eve"), lake.branch("main").hash

    assert eve.post("trees", branch("secret", head), name="dev1", type="branch").error == (404, "REFERENCE_NOT_FOUND")
    assert eve.get("trees/secret").error == (404, "REFERENCE_NOT_FOUND")
    assert eve.delete(f"trees/secret@{head}").error == (404, "REFERENCE_NOT_FOUND")


def test_repository_configuration_is_kept(nessie: NessieCaller) -> None:
    config = {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": "P10D", "newFilesGracePeriod": "PT3H"}

    assert nessie.get("config/repository", type=["GARBAGE_COLLECTOR"]).data == {"configs": []}
    assert nessie.post("config/repository", {"config": config}).data == {"previous": None}
    assert nessie.post("config/repository", {"config": {"type": "GARBAGE_COLLECTOR"}}).data == {"previous": config}
    assert nessie.get("config/repository").data == {"configs": [{"type": "GARBAGE_COLLECTOR"}]}


@pytest.mark.parametrize("config", [{}, {"type": "OTHER"}, {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": "soon"}])
def test_unsound_repository_configuration_is_refused(nessie: NessieCaller, config: object) -> None:
    assert nessie.post("config/repository", {"config": config}).error == (400, "BAD_REQUEST")


def test_configuration_says_which_versions_are_served(nessie: NessieCaller) -> None:
    assert nessie.v1.get("config").data == {"defaultBranch": "main", "maxSupportedApiVersion": 2}
    assert nessie.get("config").data["actualApiVersion"] == 2
    assert nessie.get("config").data["noAncestorHash"] == NO_ANCESTOR_HASH
