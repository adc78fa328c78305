"""Attacks through Nessie's API by a principal with few rights: what is hidden stays so, in answers, errors and conflicts alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from nessie_caller import NessieAnswer, NessieCaller, elements
from nessie_lakes import drop, key_of, put, table

from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog, Delete, Namespace, Put
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

Json = dict[str, Any]


@pytest.fixture
def lake(guarded: GuardedServer) -> Catalog:
    """``public`` and ``secret``, each with tables, on main and dev; the branch and the tag that begin with ``hidden`` are nobody's."""
    catalog = guarded.catalog()
    contents = {
        "public": Namespace(),
        "public.t": table(1),
        "secret": Namespace(),
        "secret.t": table(2),
        "secret.old": table(3),
    }
    put(catalog, contents)
    catalog.create_branch("dev")
    catalog.create_branch("hidden")
    put(catalog, {"only": Namespace()}, branch="hidden")
    catalog.create_tag("hidden_tag")
    return catalog


@pytest.fixture
def eve(guarded: GuardedServer, lake: Catalog, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    """Somebody who may do everything in ``public`` of main and dev, and nothing else."""
    everything = (Privilege.NAMESPACE_FULL_METADATA, Privilege.TABLE_FULL_METADATA, Privilege.TABLE_WRITE_DATA)
    grants = [held(privilege, "public", references=name) for privilege in everything for name in ("main", "dev")]
    guarded.make_principal(
        "eve", *grants, *(held(Privilege.REFERENCE_READ_HISTORY, references=name) for name in ("main", "dev"))
    )
    return caller_of("eve")


@pytest.fixture
def root(guarded: GuardedServer, lake: Catalog, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    return caller_of("root")


def merge(eve: NessieCaller, **body: Any) -> NessieAnswer:
    wish = {"fromRefName": "dev", "fromHash": eve.hash_of("dev"), **body}
    return eve.post(f"{eve.at_head()}/history/merge", wish)


def move(lake: Catalog, source: str, target: str, *, branch: str) -> None:
    content = lake.get_content(branch, key_of(source))
    assert content is not None
    lake.commit(branch, [Delete(key_of(source)), Put(key_of(target), content)], message="move")


READS = (
    "trees/NAME",
    "trees/NAME/entries",
    "trees/NAME~1/entries",
    "trees/NAME~9/entries",
    "trees/NAME*1/entries",
    "trees/NAME@HASH/entries",
    "trees/NAME@HASH~1/entries",
    f"trees/NAME@{NO_ANCESTOR_HASH}/entries",
    "trees/NAME/contents/only",
    "trees/NAME/history",
    "trees/NAME/recent-changes",
    "trees/main/diff/NAME",
    "trees/NAME/diff/main",
)


@pytest.mark.parametrize("path", READS)
def test_hidden_branch_reads_as_a_missing_one(eve: NessieCaller, root: NessieCaller, path: str) -> None:
    at = path.replace("HASH", root.hash_of("hidden"))
    hidden, missing = (eve.get(at.replace("NAME", name)) for name in ("hidden", "absent"))

    assert hidden.error == missing.error == (404, "REFERENCE_NOT_FOUND")
    assert hidden.message.replace("hidden", "absent") == missing.message


@pytest.mark.parametrize("kind", ["BRANCH", "TAG"])
@pytest.mark.parametrize("hidden", ["hidden", "hidden_tag"])
def test_hidden_reference_tells_no_kind_when_changed(eve: NessieCaller, root: NessieCaller, hidden: str, kind: str) -> None:
    head = root.hash_of()
    target = {"type": "BRANCH", "name": "main", "hash": head}
    for method, body in (("DELETE", None), ("PUT", target)):
        told = [eve.call(method, f"trees/{name}@{head}", body=body, query={"type": kind}) for name in (hidden, "absent")]

        assert told[0].error == told[1].error == (404, "REFERENCE_NOT_FOUND")
        assert told[0].message.replace(hidden, "absent") == told[1].message


@pytest.mark.parametrize("request_of", ["history/commit", "history/merge", "history/transplant"])
def test_hidden_branch_is_written_as_a_missing_one(eve: NessieCaller, root: NessieCaller, request_of: str) -> None:
    head = root.hash_of()
    body = {"commitMeta": {"message": "m"}, "operations": []}
    if request_of != "history/commit":
        body = {"fromRefName": "main", "fromHash": head, "hashesToTransplant": [head]}
    told = [eve.post(f"trees/{name}@{head}/{request_of}", body) for name in ("hidden", "absent")]

    assert told[0].error == told[1].error == (404, "REFERENCE_NOT_FOUND")
    assert told[0].message.replace("hidden", "absent") == told[1].message


def test_steps_back_are_asked_before_they_are_made(guarded: GuardedServer, eve: NessieCaller) -> None:
    guarded.revoke("eve", held(Privilege.REFERENCE_READ_HISTORY, references="main"))

    assert eve.get("trees/main~1/entries").error == eve.get("trees/main~99/entries").error == (403, "FORBIDDEN")


@pytest.mark.parametrize("operations", [[], [{"type": "UNCHANGED", "key": elements("public", "t")}]])
def test_commit_that_changes_nothing_needs_a_right(eve: NessieCaller, operations: list[Json]) -> None:
    before = eve.hash_of()
    body = {"commitMeta": {"message": "m"}, "operations": operations}

    assert eve.post(f"{eve.at_head()}/history/commit", body).error == (403, "FORBIDDEN")
    assert eve.v1.post("trees/branch/main/commit", body).error == (403, "FORBIDDEN")
    assert eve.hash_of() == before


@pytest.mark.parametrize("guess", ["secret.new", "secret.old", "secret.absent"])
def test_mode_of_a_key_tells_no_hidden_change(eve: NessieCaller, lake: Catalog, guess: str) -> None:
    put(lake, {"secret.new": table(9)}, branch="dev")
    drop(lake, "secret.old", branch="dev")
    modes = [{"key": elements(*guess.split(".")), "mergeBehavior": "DROP"}]
    picked = {"fromRefName": "dev", "hashesToTransplant": [eve.hash_of("dev")], "keyMergeModes": modes}

    assert merge(eve, dryRun=True, keyMergeModes=modes).error == (403, "FORBIDDEN")
    assert eve.post(f"{eve.at_head()}/history/transplant", picked).error == (403, "FORBIDDEN")


@pytest.mark.parametrize("content_type", ["NAMESPACE", "ICEBERG_TABLE"])
def test_resolved_content_tells_no_hidden_key(eve: NessieCaller, lake: Catalog, content_type: str) -> None:
    put(lake, {"public.of_others": table(9)}, branch="hidden")
    told = []
    for name in ("t", "absent"):
        content: Json = {"type": "NAMESPACE", "elements": ["secret", name]}
        if content_type == "ICEBERG_TABLE":
            numbers = {"snapshotId": -1, "schemaId": 0, "specId": 0, "sortOrderId": 0}
            content = {"type": content_type, "metadataLocation": "file:///tables/9", **numbers}
        wish = {"key": elements("secret", name), "resolvedContent": content, "expectedTargetContent": content}
        told.append(merge(eve, dryRun=True, keyMergeModes=[{**wish, "mergeBehavior": "NORMAL"}]))

    assert told[0].error == told[1].error and told[0].message.replace("secret.t", "secret.absent") == told[1].message


def test_merge_tells_no_hidden_key_that_both_deleted(eve: NessieCaller, lake: Catalog) -> None:
    put(lake, {"public.new": table(9)}, branch="dev")
    drop(lake, "secret.old", branch="dev")
    drop(lake, "secret.old")

    answer = merge(eve, dryRun=True)
    assert answer.error == (403, "FORBIDDEN") and "old" not in answer.message


@pytest.mark.parametrize("is_result", [False, True])
def test_conflict_names_no_hidden_key_of_the_target(eve: NessieCaller, lake: Catalog, is_result: bool) -> None:
    move(lake, "public.t", "secret.whither", branch="main")
    drop(lake, "public.t", branch="dev")
    answer = merge(eve, returnConflictAsResult=is_result)

    assert answer.status == (200 if is_result else 409)
    assert b"KEY_DOES_NOT_EXIST" in answer.content and b"whither" not in answer.content


def test_conflict_of_two_moves_names_no_hidden_key(eve: NessieCaller, lake: Catalog) -> None:
    move(lake, "public.t", "secret.whither", branch="main")
    move(lake, "public.t", "public.u", branch="dev")

    answer = merge(eve)
    assert answer.error == (409, "REFERENCE_CONFLICT") and b"whither" not in answer.content


def test_conflict_names_what_may_be_listed(root: NessieCaller, lake: Catalog) -> None:
    move(lake, "public.t", "secret.whither", branch="main")
    drop(lake, "public.t", branch="dev")

    assert "the target has moved it to secret.whither" in merge(root).message


def test_conflict_names_no_hidden_child_of_a_namespace(
    guarded: GuardedServer, lake: Catalog, caller_of: Callable[[str], NessieCaller]
) -> None:
    here = held(Privilege.NAMESPACE_FULL_METADATA, "public")
    there = (held(privilege, "public", references="dev") for privilege in (Privilege.TABLE_LIST, Privilege.NAMESPACE_LIST))
    guarded.make_principal("dan", here, *there)
    drop(lake, "public.t", "public", branch="dev")
    drop(lake, "public.t")
    put(lake, {"public.child": table(4)})
    answer = merge(caller_of("dan"))

    assert b"NAMESPACE_NOT_EMPTY" in answer.content and b"child" not in answer.content


def test_page_promises_more_only_where_something_is_shown(eve: NessieCaller, lake: Catalog) -> None:
    put(lake, {"secret.deep": Namespace(), **{f"secret.deep.n{number}": Namespace() for number in range(450)}})
    guesses = ("secret.deep", "secret.none")
    told = [
        eve.get("trees/main/entries", filter=f"entry.name == 't' || entry.encodedKey.startsWith('{guess}')", max_records=1).data
        for guess in guesses
    ]

    assert [(page["hasMore"], page["token"], len(page["entries"])) for page in told] == [(False, None, 1)] * 2


def test_diff_promises_more_only_where_something_is_shown(eve: NessieCaller, lake: Catalog) -> None:
    put(
        lake,
        {"public.u": table(8), "secret.deep": Namespace(), **{f"secret.deep.n{number}": Namespace() for number in range(450)}},
    )
    page = eve.get("trees/dev/diff/main", max_records=1).data

    assert (page["hasMore"], [each["key"] for each in page["diffs"]]) == (False, [elements("public", "u")])


@pytest.mark.parametrize("time", ["*-99999999999999", "*-999999999999999", "*999999999999999"])
def test_time_out_of_all_years_is_no_error_of_the_server(root: NessieCaller, time: str) -> None:
    assert root.get(f"trees/main{time}/entries").status == (404 if "-" in time else 200)


def test_limit_of_a_commit_that_stands_alone_stands_alone(root: NessieCaller, lake: Catalog) -> None:
    first, second = (
        put(lake, {f"on_hidden.n{number}" if number else "on_hidden": Namespace()}, branch="hidden") for number in (0, 1)
    )
    page = root.get(f"trees/@{second}/history", limit_hash=first).data

    assert [entry["commitMeta"]["hash"] for entry in page["logEntries"]] == [second, first]


@pytest.mark.parametrize("path", ["entries", "history"])
def test_filter_that_shadows_a_name_is_refused(root: NessieCaller, path: str) -> None:
    name = "entry.keyElements" if path == "entries" else "operations"
    variable = name.partition(".")[0]

    assert root.get(f"trees/main/{path}", filter=f"{name}.exists({variable}, true)").error == (400, "BAD_REQUEST")


def test_table_is_not_brought_to_a_branch_where_more_is_allowed(
    guarded: GuardedServer, root: NessieCaller, caller_of: Callable[[str], NessieCaller]
) -> None:
    guarded.make_table("secret", "kept")
    location = guarded.guest("root").get("namespaces/secret/tables/kept").data["metadata-location"]
    wide = (Privilege.TABLE_FULL_METADATA, Privilege.TABLE_WRITE_DATA, Privilege.NAMESPACE_FULL_METADATA)
    guarded.make_principal("dan", *(held(privilege, references="dev*") for privilege in wide))
    numbers = {"snapshotId": -1, "schemaId": 0, "specId": 0, "sortOrderId": 0}
    content = {"type": "ICEBERG_TABLE", "metadataLocation": location, **numbers}
    put_stolen = {"type": "PUT", "key": elements("public", "stolen"), "content": content}
    body = {"commitMeta": {"message": "m"}, "operations": [put_stolen]}
    register = {"name": "stolen", "metadata-location": location}

    assert caller_of("dan").post(f"{root.at_head('dev')}/history/commit", body).error == (403, "FORBIDDEN")
    assert guarded.guest("dan").at("acme~lake~dev").post("namespaces/public/register", register).status == 403
    guarded.grant("dan", held(Privilege.TABLE_READ_DATA, "secret"))
    assert caller_of("dan").post(f"{root.at_head('dev')}/history/commit", body).status == 200


def test_too_many_commits_are_refused_before_any_is_looked_up(eve: NessieCaller) -> None:
    picked = {"fromRefName": "dev", "hashesToTransplant": [f"{number:016x}" for number in range(1001)]}
    answer = eve.post(f"{eve.at_head()}/history/transplant", picked)

    assert answer.error == (400, "BAD_REQUEST") and "1000 can be at once" in answer.message


def test_long_pattern_of_a_configuration_is_not_compiled(root: NessieCaller) -> None:
    policy = {"referenceNamePattern": "(" * 5000, "policy": "NONE"}
    config = {"type": "GARBAGE_COLLECTOR", "perRefCutoffPolicies": [policy]}
    answer = root.post("config/repository", {"config": config})

    assert answer.error == (400, "BAD_REQUEST") and "characters of JSON" in answer.message


@pytest.mark.parametrize("since", [1, 2, 19, 20, 21, 22, 45])
def test_head_of_a_moment_ago_alone_is_read(guarded: GuardedServer, eve: NessieCaller, lake: Catalog, since: int) -> None:
    guarded.revoke("eve", held(Privilege.REFERENCE_READ_HISTORY, references="main"))
    left = eve.hash_of()
    guarded.clock.advance(120)
    recent = [put(lake, {f"n{number}": Namespace()}) for number in range(since)]
    on_dev = put(lake, {"on_dev": Namespace()}, branch="dev")

    assert eve.get(f"trees/main@{left}/entries").status == eve.get(f"trees/main@{recent[0]}/entries").status == 200
    assert eve.get(f"trees/main@{on_dev}/entries").status == 404
    guarded.clock.advance(61)
    assert eve.get(f"trees/main@{left}/entries").status == 404
    put(lake, {"last": Namespace()})
    assert eve.get(f"trees/main@{recent[-1]}/entries").status == 200
    assert eve.get(f"trees/main@{left}/entries").status == 404
