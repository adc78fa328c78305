"""Commits through both versions of Nessie's API: what they create, change and rename, their conflicts, and what both protocols see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from nessie_caller import NessieAnswer, NessieCaller, elements

from file_writing_client import FileWritingClient, with_snapshot
from guarded_server import GuardedServer, held
from headwater import Store
from headwater.access import Privilege
from headwater.catalogs import Catalog, ContentKey, Namespace, Put
from headwater.iceberg_catalog import IcebergCatalog
from headwater.store import id_text
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

Json = dict[str, Any]


@pytest.fixture
def files(tmp_path: Path) -> FileWritingClient:
    return FileWritingClient(tmp_path / "warehouse")


def put_namespace(*names: str, **properties: str) -> Json:
    content = {"type": "NAMESPACE", "elements": list(names), "properties": properties}
    return {"type": "PUT", "key": elements(*names), "content": content}


def put_table(place: str, *names: str, content_id: str | None = None, snapshot: int = -1) -> Json:
    content: Json = {"type": "ICEBERG_TABLE", "metadataLocation": place, "snapshotId": snapshot}
    content |= {"schemaId": 0, "specId": 0, "sortOrderId": 0, "id": content_id}
    return {"type": "PUT", "key": elements(*names), "content": content}


def commit(caller: NessieCaller, *operations: Json, branch: str = "main", at: str | None = None, **meta: Any) -> NessieAnswer:
    body = {"commitMeta": {"message": "change", **meta}, "operations": list(operations)}
    return caller.post(f"trees/{branch}@{at or caller.hash_of(branch)}/history/commit", body)


def kinds(answer: NessieAnswer) -> list[tuple[str, list[str]]]:
    assert answer.error == (409, "REFERENCE_CONFLICT")
    return [(each["conflictType"], each["key"]["elements"]) for each in answer.details["conflicts"]]


def test_commit_tells_the_new_head_and_ids(nessie: NessieCaller, lake: Catalog) -> None:
    done = commit(nessie, put_namespace("sales", owner="ann"), put_namespace("sales", "eu")).data

    head = lake.branch("main").hash
    assert done["targetBranch"] == {"type": "BRANCH", "name": "main", "hash": head}
    assert [each["key"] for each in done["addedContents"]] == [elements("sales"), elements("sales", "eu")]
    assert lake.get_content(None, ContentKey.of("sales")) == Namespace(
        id=UUID(done["addedContents"][0]["contentId"]), properties={"owner": "ann"}
    )


def test_version_1_tells_the_branch_alone(nessie: NessieCaller, lake: Catalog) -> None:
    body = {"commitMeta": {"message": "m", "author": "ann", "hash": None}, "operations": [put_namespace("a")]}
    done = nessie.v1.post("trees/branch/main/commit", body)

    assert done.data == {"type": "BRANCH", "name": "main", "hash": lake.branch("main").hash}


def test_table_of_nessie_is_one_of_iceberg_rest(
    nessie: NessieCaller, store: Store, lake: Catalog, files: FileWritingClient
) -> None:
    document = files.new_document("t")
    done = commit(nessie, put_namespace("ns"), put_table(files.write(document), "ns", "t")).data
    tables = IcebergCatalog.open(store, "acme", "lake").tables

    assert tables.load(ContentKey.of("ns", "t")).content_id == UUID(done["addedContents"][1]["contentId"])


def test_table_is_changed_and_renamed_with_its_id(nessie: NessieCaller, lake: Catalog, files: FileWritingClient) -> None:
    document = files.new_document("t")
    created = commit(nessie, put_namespace("ns"), put_table(files.write(document), "ns", "t")).data
    content_id = created["addedContents"][1]["contentId"]
    place = files.write(with_snapshot(document, 7))
    changed = commit(nessie, put_table(place, "ns", "t", content_id=content_id, snapshot=7))
    rename = [put_table(place, "ns", "u", content_id=content_id, snapshot=7), {"type": "DELETE", "key": elements("ns", "t")}]
    renamed = commit(nessie, *rename)

    assert changed.data["addedContents"] == renamed.data["addedContents"] == []
    assert lake.get_content(None, ContentKey.of("ns", "t")) is None
    moved = lake.get_content(None, ContentKey.of("ns", "u"))
    assert moved is not None and str(moved.id) == content_id


def test_all_conflicts_are_told(nessie: NessieCaller, lake: Catalog) -> None:
    commit(nessie, put_namespace("first"))
    at = nessie.hash_of()
    commit(nessie, put_namespace("a"))
    answer = commit(nessie, put_namespace("a"), put_namespace("b", "c"), {"type": "DELETE", "key": elements("z")}, at=at)

    assert sorted(kinds(answer)) == [("KEY_DOES_NOT_EXIST", ["z"]), ("KEY_EXISTS", ["a"]), ("NAMESPACE_ABSENT", ["b"])]


def test_namespace_that_is_not_empty_stays(nessie: NessieCaller) -> None:
    commit(nessie, put_namespace("a"), put_namespace("a", "b"))

    assert kinds(commit(nessie, {"type": "DELETE", "key": elements("a")})) == [("NAMESPACE_NOT_EMPTY", ["a"])]


def test_stale_commit_of_other_keys_succeeds(nessie: NessieCaller) -> None:
    commit(nessie, put_namespace("a"))
    at = nessie.hash_of()
    commit(nessie, put_namespace("b"))

    assert commit(nessie, put_namespace("c"), at=at).status == 200


def test_commit_from_before_the_first_one_creates_alone(nessie: NessieCaller, lake: Catalog) -> None:
    commit(nessie, put_namespace("a"))

    assert commit(nessie, put_namespace("b"), at=NO_ANCESTOR_HASH).status == 200
    assert kinds(commit(nessie, put_namespace("a"), at=NO_ANCESTOR_HASH)) == [("KEY_EXISTS", ["a"])]
    deletion = commit(nessie, {"type": "DELETE", "key": elements("a")}, at=NO_ANCESTOR_HASH)
    assert kinds(deletion) == [("KEY_DOES_NOT_EXIST", ["a"])]


@pytest.mark.parametrize(
    "meta",
    [
        {"parentCommitHashes": ["0123456789abcdef"]},
        {"committer": "eve"},
        {"hash": "0123456789abcdef"},
        {"commitTime": "2026-01-01T00:00:00Z"},
        {"message": None},
    ],
)
def test_metadata_of_the_server_is_refused_from_clients(nessie: NessieCaller, meta: Json) -> None:
    assert commit(nessie, put_namespace("a"), **meta).error == (400, "BAD_REQUEST")


@pytest.mark.parametrize("path", ["main", "main~1", "-", "main@~1"])
def test_commit_without_a_hash_is_refused(nessie: NessieCaller, path: str) -> None:
    body = {"commitMeta": {"message": "m"}, "operations": [put_namespace("a")]}

    assert nessie.post(f"trees/{path}/history/commit", body).error == (400, "BAD_REQUEST")


def test_commit_to_a_tag_is_refused(nessie: NessieCaller, lake: Catalog) -> None:
    lake.commit("main", [Put(ContentKey.of("a"), Namespace())])
    lake.create_tag("v1")

    assert commit(nessie, put_namespace("b"), branch="v1").error == (400, "BAD_REQUEST")


def test_commit_from_another_branch_finds_nothing(nessie: NessieCaller, lake: Catalog) -> None:
    lake.create_branch("dev")
    other = lake.commit("dev", [Put(ContentKey.of("a"), Namespace())]).commit_id
    assert other is not None

    assert commit(nessie, put_namespace("b"), at=id_text(other)).error == (404, "REFERENCE_NOT_FOUND")


def test_missing_metadata_file_is_named(nessie: NessieCaller, files: FileWritingClient) -> None:
    answer = commit(nessie, put_table((files.folder / "nothing.metadata.json").as_uri(), "t"))

    assert answer.error == (403, "FORBIDDEN") and "nothing.metadata.json" in answer.message


def test_file_outside_of_the_catalog_is_refused(nessie: NessieCaller, tmp_path: Path) -> None:
    outside = FileWritingClient(tmp_path / "elsewhere")

    assert commit(nessie, put_table(outside.write(outside.new_document("t")), "t")).error == (403, "FORBIDDEN")


def test_file_of_another_table_is_never_a_conflict(nessie: NessieCaller, files: FileWritingClient) -> None:
    """After a 400, 404 or 409 Iceberg's client deletes the file that it named, which it may only have been told to register."""
    place, fresh = files.write(files.new_document("t")), files.write(files.new_document("u"))
    assert commit(nessie, put_namespace("b"), put_table(place, "t")).status == 200

    assert kinds(commit(nessie, put_table(fresh, "nowhere", "u"))) == [("NAMESPACE_ABSENT", ["nowhere"])]
    assert commit(nessie, put_table(fresh, "b")).error == (400, "BAD_REQUEST")  # after which the client looks at what is there
    for key in (("nowhere", "t"), ("again",), ("b",)):
        refused = commit(nessie, put_table(place, *key))
        assert refused.error == (403, "FORBIDDEN") and key[0] in refused.message


def test_headers_add_to_the_metadata(nessie: NessieCaller, lake: Catalog) -> None:
    headers = {"nessie-commit-message": "said", "nessie-commit-authors": "ann, bob", "nessie-commit-property-run": "7"}
    commit(nessie.with_headers(**headers), put_namespace("a"))

    meta = next(iter(lake.log())).meta
    assert (meta.message, meta.authors, meta.properties) == ("said", ("ann", "bob"), {"run": ("7",)})


def test_committer_is_the_caller(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    guarded.make_principal("ann", held(Privilege.CATALOG_MANAGE_CONTENT))
    commit(caller_of("ann"), put_namespace("a"))

    meta = next(iter(guarded.catalog().log())).meta
    assert (meta.committer, meta.authors) == ("ann", ("ann",))


def test_caller_writes_where_it_may(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    guarded.make_principal("ann", held(Privilege.NAMESPACE_CREATE, "a"), held(Privilege.NAMESPACE_LIST, "a"))
    guarded.catalog().commit("main", [Put(ContentKey.of(name), Namespace()) for name in ("a", "b")])
    ann = caller_of("ann")

    assert commit(ann, put_namespace("a", "c")).status == 200
    assert kinds(commit(ann, put_namespace("b", "c"))) == [("NAMESPACE_ABSENT", ["b"])]
    assert guarded.catalog().get_content(None, ContentKey.of("b", "c")) is None


def test_conflict_tells_nothing_of_what_is_hidden(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    guarded.make_principal("ann", held(Privilege.NAMESPACE_CREATE, "a"), held(Privilege.NAMESPACE_LIST, "a"))
    guarded.catalog().commit("main", [Put(ContentKey.of(name), Namespace()) for name in ("a", "secret")])
    ann = caller_of("ann")
    told = [commit(ann, {"type": "DELETE", "key": elements(name)}) for name in ("secret", "nothing")]

    assert len({answer.error for answer in told}) == 1
    assert told[0].message.replace("secret", "nothing") == told[1].message


def test_commit_without_effect_moves_the_head(nessie: NessieCaller, lake: Catalog) -> None:
    before = nessie.hash_of()
    commit(nessie, put_namespace("a"))
    done = commit(nessie, message="nothing").data

    assert done["addedContents"] == [] and done["targetBranch"]["hash"] == nessie.hash_of() != before
    assert next(iter(lake.log())).message == "nothing"


def test_commit_that_comes_twice_is_answered_as_before(nessie: NessieCaller, lake: Catalog, files: FileWritingClient) -> None:
    at, wish = nessie.hash_of(), put_table(files.write(files.new_document("t")), "t")
    first = commit(nessie, wish, at=at).data
    commit(nessie, put_namespace("between"))

    assert commit(nessie, wish, at=at).data == first
    assert [entry.message for entry in lake.log()] == ["change", "change"]


def test_commit_that_comes_again_with_more_is_not_answered_as_before(
    nessie: NessieCaller, lake: Catalog, files: FileWritingClient
) -> None:
    commit(nessie, put_namespace("old"))
    at, table = nessie.hash_of(), put_table(files.write(files.new_document("t")), "t")
    commit(nessie, table, at=at)
    head = nessie.hash_of()

    for more in (put_namespace("sales"), {"type": "DELETE", "key": elements("old")}):
        # not "conflict", after which the client deletes the file that the first commit has
        assert commit(nessie, table, more, at=at).status == 403
    assert nessie.hash_of() == head


def test_change_that_comes_twice_is_answered_as_before(nessie: NessieCaller, lake: Catalog, files: FileWritingClient) -> None:
    document = files.new_document("t")
    content_id = commit(nessie, put_table(files.write(document), "t")).data["addedContents"][0]["contentId"]
    at, places = nessie.hash_of(), [files.write(with_snapshot(document, number)) for number in (7, 8)]
    seven, eight = (put_table(place, "t", content_id=content_id, snapshot=n) for place, n in zip(places, (7, 8), strict=True))
    first = commit(nessie, seven, at=at).data

    assert commit(nessie, seven, at=at).data == first
    assert kinds(commit(nessie, eight, at=at)) == [("VALUE_DIFFERS", ["t"])]
    assert commit(nessie, eight).status == 200
    assert commit(nessie, seven, at=at).data == first
