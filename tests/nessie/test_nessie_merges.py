"""Merges and transplants through both versions of Nessie's API: what they bring, their conflicts, and what callers may merge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nessie_caller import NessieAnswer, NessieCaller, elements

from file_writing_client import FileWritingClient, with_snapshot
from guarded_server import GuardedServer, held
from headwater import Store
from headwater.access import Privilege
from headwater.catalogs import Catalog, ContentKey, Delete, Namespace, Put
from headwater.iceberg_catalog import IcebergCatalog
from headwater.realms import RealmRegistry
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import id_text
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

Json = dict[str, Any]


def put(lake: Catalog, branch: str, name: str, **properties: str) -> str:
    """Put a namespace at the top of a branch; returns the commit's hash."""
    present = lake.get_content(branch, ContentKey.of(name))
    content = Namespace(id=None if present is None else present.id, properties=properties)
    commit = lake.commit(branch, [Put(ContentKey.of(name), content)], message=f"put {name}").commit_id
    assert commit is not None
    return id_text(commit)


@pytest.fixture
def parted(lake: Catalog) -> Catalog:
    """main has ``base`` and ``ours``, dev has ``base`` and ``theirs``."""
    put(lake, "main", "base")
    lake.create_branch("dev")
    put(lake, "main", "ours")
    put(lake, "dev", "theirs")
    return lake


def merge(caller: NessieCaller, source: str = "dev", into: str = "main", **body: Any) -> NessieAnswer:
    wish = {"fromRefName": source, "fromHash": caller.hash_of(source), **body}
    return caller.post(f"{caller.at_head(into)}/history/merge", wish)


def transplant(caller: NessieCaller, *hashes: str, **body: Any) -> NessieAnswer:
    wish = {"fromRefName": "dev", "hashesToTransplant": list(hashes), **body}
    return caller.post(f"{caller.at_head()}/history/transplant", wish)


def conflicts(answer: NessieAnswer) -> list[tuple[str, list[str]]]:
    assert answer.error == (409, "REFERENCE_CONFLICT")
    return [(each["conflictType"], each["key"]["elements"]) for each in answer.details["conflicts"]]


def test_merge_brings_what_the_source_changed(nessie: NessieCaller, parted: Catalog) -> None:
    before = nessie.hash_of()
    done = merge(nessie).data

    assert (done["wasApplied"], done["wasSuccessful"], done["targetBranch"]) == (True, True, "main")
    assert done["resultantTargetHash"] == nessie.hash_of() != before == done["effectiveTargetHash"]
    assert [(each["key"], each["mergeBehavior"]) for each in done["details"]] == [(elements("theirs"), "NORMAL")]
    assert {entry.key.name for entry in parted.entries().entries} == {"base", "ours", "theirs"}


def test_merge_names_both_parents(nessie: NessieCaller, parted: Catalog) -> None:
    source, before = nessie.hash_of("dev"), nessie.hash_of()
    merge(nessie)

    entry = next(iter(parted.log()))
    assert [id_text(parent) for parent in (entry.parent, *entry.meta.merged) if parent is not None] == [before, source]


def test_merge_of_nothing_is_successful_and_not_applied(nessie: NessieCaller, parted: Catalog) -> None:
    merge(nessie)
    again = merge(nessie).data

    assert (again["wasApplied"], again["wasSuccessful"]) == (False, True)
    assert again["resultantTargetHash"] == nessie.hash_of()


def test_dry_run_writes_nothing(nessie: NessieCaller, parted: Catalog) -> None:
    before = nessie.hash_of()
    done = merge(nessie, dryRun=True).data

    assert (done["wasApplied"], done["wasSuccessful"], nessie.hash_of()) == (False, True, before)


def test_conflict_is_told_for_its_key_alone(nessie: NessieCaller, parted: Catalog) -> None:
    put(parted, "main", "base", owner="main")
    put(parted, "dev", "base", owner="dev")
    before = nessie.hash_of()

    assert conflicts(merge(nessie)) == [("VALUE_DIFFERS", ["base"])]
    assert nessie.hash_of() == before


def test_conflict_comes_as_result_where_it_is_wanted(nessie: NessieCaller, parted: Catalog) -> None:
    put(parted, "main", "base", owner="main")
    put(parted, "dev", "base", owner="dev")
    done = merge(nessie, returnConflictAsResult=True).data

    assert (done["wasApplied"], done["wasSuccessful"]) == (False, False)
    told = {each["key"]["elements"][0]: each.get("conflict", {}).get("conflictType") for each in done["details"]}
    assert told == {"base": "VALUE_DIFFERS", "theirs": None}


@pytest.mark.parametrize(("mode", "owner"), [("FORCE", "dev"), ("DROP", "main")])
def test_mode_of_a_key_decides_its_conflict(nessie: NessieCaller, parted: Catalog, mode: str, owner: str) -> None:
    put(parted, "main", "base", owner="main")
    put(parted, "dev", "base", owner="dev")
    done = merge(nessie, keyMergeModes=[{"key": elements("base"), "mergeBehavior": mode}])

    assert done.data["wasApplied"]
    assert parted.get_content(None, ContentKey.of("base")).properties == {"owner": owner}  # type: ignore[union-attr]


def test_what_a_restore_undid_is_a_conflict_and_comes_again_by_force(
    nessie: NessieCaller, parted: Catalog, store: Store
) -> None:
    before = next(iter(parted.log())).id
    merge(nessie)
    restore = RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=before))
    restore_state(RealmRegistry(store).open_realm("acme"), before, restore)

    assert conflicts(merge(nessie)) == [("KEY_DOES_NOT_EXIST", ["theirs"])]
    assert merge(nessie, defaultKeyMergeMode="FORCE").data["wasApplied"]
    assert parted.get_content(None, ContentKey.of("theirs")) is not None


def test_resolved_content_takes_the_place_of_both(nessie: NessieCaller, parted: Catalog) -> None:
    put(parted, "main", "base", owner="main")
    put(parted, "dev", "base", owner="dev")
    held_now = parted.get_content(None, ContentKey.of("base"))
    content = {"type": "NAMESPACE", "id": str(held_now.id), "elements": ["base"]}  # type: ignore[union-attr]
    wish = {
        "key": elements("base"),
        "expectedTargetContent": {**content, "properties": {"owner": "main"}},
        "resolvedContent": {**content, "properties": {"owner": "both"}},
    }

    assert merge(nessie, keyMergeModes=[wish]).data["wasApplied"]
    assert parted.get_content(None, ContentKey.of("base")).properties == {"owner": "both"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "body",
    [
        {"keyMergeModes": [{"key": elements("nothing"), "mergeBehavior": "FORCE"}]},
        {"fromHash": "~1"},
        {"fromHash": None},
        {"commitMeta": {"message": "m", "parentCommitHashes": ["0123456789abcdef"]}},
        {"defaultKeyMergeMode": "SOMETIMES"},
    ],
)
def test_unsound_merge_is_refused(nessie: NessieCaller, parted: Catalog, body: Json) -> None:
    assert merge(nessie, **body).error == (400, "BAD_REQUEST")


def test_merge_without_a_common_ancestor_finds_nothing(nessie: NessieCaller, parted: Catalog) -> None:
    root = {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}
    nessie.post("trees", root, name="lonely", type="branch")
    put(parted, "lonely", "apart")

    assert merge(nessie, "lonely").error == (404, "REFERENCE_NOT_FOUND")


def test_table_is_branched_and_merged_for_both_protocols(
    nessie: NessieCaller, store: Store, lake: Catalog, tmp_path: Path
) -> None:
    files, key = FileWritingClient(tmp_path / "warehouse"), ContentKey.of("t")
    document = files.new_document("t")
    content_id = files.create(IcebergCatalog.open(store, "acme", "lake"), key, document)
    lake.create_branch("dev")
    content = files.content(with_snapshot(document, 7), content_id=content_id)
    body = {"type": "ICEBERG_TABLE", "id": str(content_id), "metadataLocation": content.metadata_location}  # type: ignore[union-attr]
    change = {
        "type": "PUT",
        "key": elements("t"),
        "content": {**body, "snapshotId": 7, "schemaId": 0, "specId": 0, "sortOrderId": 0},
    }
    commit = {"commitMeta": {"message": "append"}, "operations": [change]}
    assert nessie.post(f"{nessie.at_head('dev')}/history/commit", commit).status == 200
    assert merge(nessie).data["wasApplied"]

    loaded = IcebergCatalog.open(store, "acme", "lake").tables.load(key)
    assert (loaded.content_id, loaded.metadata_location) == (content_id, content.metadata_location)  # type: ignore[union-attr]
    assert b'"current-snapshot-id":7' in loaded.text


def test_transplant_repeats_each_commit(nessie: NessieCaller, parted: Catalog) -> None:
    first, second = nessie.hash_of("dev"), put(parted, "dev", "more")
    done = transplant(nessie, first, second).data

    assert (done["wasApplied"], done["commonAncestor"]) == (True, None)
    assert [entry.message for entry in parted.log(limit=2)] == ["put more", "put theirs"]


@pytest.mark.parametrize("hashes", [[], ["~1"], ["0"]])
def test_unsound_transplant_is_refused(nessie: NessieCaller, parted: Catalog, hashes: list[str]) -> None:
    assert transplant(nessie, *hashes).error == (400, "BAD_REQUEST")


def test_version_1_merges_and_transplants(nessie: NessieCaller, parted: Catalog) -> None:
    dev, old = nessie.v1, nessie.hash_of("dev")
    new = put(parted, "dev", "more")
    picked = dev.post(
        "trees/branch/main/transplant",
        {"fromRefName": "dev", "hashesToTransplant": [new], "keepIndividualCommits": True},
        expected_hash=nessie.hash_of(),
    )
    merged = dev.post("trees/branch/main/merge", {"fromRefName": "dev", "fromHash": old}, expected_hash=nessie.hash_of())

    assert picked.data["wasApplied"] and merged.data["wasApplied"]
    assert {entry.key.name for entry in parted.entries().entries} == {"base", "more", "ours", "theirs"}


def test_merge_needs_the_rights_of_what_it_brings(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    lake = guarded.catalog()
    put(lake, "main", "base")
    lake.create_branch("dev")
    put(lake, "dev", "theirs")
    guarded.make_principal("ann", held(Privilege.NAMESPACE_LIST, references="*"))
    ann = caller_of("ann")

    assert merge(ann).error == (403, "FORBIDDEN")
    guarded.grant("ann", held(Privilege.NAMESPACE_READ_PROPERTIES, references="dev"), held(Privilege.NAMESPACE_CREATE))
    guarded.clock.advance(10)
    assert merge(ann).data["wasApplied"]
    assert next(iter(lake.log())).meta.committer == "ann"


def test_merge_cannot_drop_what_its_caller_may_not(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    lake = guarded.catalog()
    put(lake, "main", "base")
    lake.create_branch("dev")
    lake.commit("dev", [Delete(ContentKey.of("base"))])
    guarded.make_principal("ann", held(Privilege.CATALOG_MANAGE_CONTENT, references="dev"), held(Privilege.NAMESPACE_LIST))

    assert merge(caller_of("ann")).error == (403, "FORBIDDEN")
    assert lake.get_content(None, ContentKey.of("base")) is not None


def test_resolved_content_needs_rights_of_its_own(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    lake = guarded.catalog()
    put(lake, "main", "base")
    lake.create_branch("dev")
    lake.commit("dev", [Delete(ContentKey.of("base"))])
    content = lake.get_content(None, ContentKey.of("base"))
    guarded.make_principal(
        "ann", held(Privilege.NAMESPACE_DROP, references="*"), held(Privilege.NAMESPACE_LIST, references="*")
    )
    body = {"type": "NAMESPACE", "id": str(content.id), "elements": ["base"]}  # type: ignore[union-attr]
    wish = {"key": elements("base"), "expectedTargetContent": body, "resolvedContent": {**body, "properties": {"owner": "ann"}}}

    refused = merge(caller_of("ann"), keyMergeModes=[wish])
    assert refused.error == (403, "FORBIDDEN") and "NAMESPACE_WRITE_PROPERTIES" in refused.message
    assert lake.get_content(None, ContentKey.of("base")) == content
