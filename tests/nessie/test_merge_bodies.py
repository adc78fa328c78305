"""Merges and transplants in JSON: what clients ask for, and what they are told."""

import json

import msgspec
import pytest

from headwater.catalogs import (
    CommitMeta,
    Conflict,
    ConflictKind,
    ContentKey,
    KeyMerge,
    MergedKey,
    MergeMode,
    MergeOptions,
    MergeOutcome,
    MergeResult,
    MergeStep,
    Namespace,
)
from headwater.errors import RefusedError
from headwater_server.json_body import convert_body
from headwater_server.nessie.merge_bodies import MergeRequest, TransplantRequest, merge_body, merge_body_v1
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH, ReferencePath

ONE, TWO = f"{1:016x}", f"{2:016x}"
A, B, NS = ContentKey.of("ns", "a"), ContentKey.of("ns", "b"), ContentKey.of("ns")
_KEY_A = {"elements": ["ns", "a"]}
_NAMESPACE = {"type": "NAMESPACE", "elements": ["ns", "a"]}


def _merge(**fields):
    return convert_body({"fromRefName": "dev", "fromHash": ONE, **fields}, MergeRequest)


def _transplant(**fields):
    return convert_body({"fromRefName": "dev", "hashesToTransplant": [ONE, TWO], **fields}, TransplantRequest)


def _mode(**fields):
    return {"key": _KEY_A, "mergeBehavior": "NORMAL", **fields}


def _json(body):
    return json.loads(msgspec.json.encode(body))


def test_merge_names_a_reference_and_a_commit():
    assert _merge().to_source() == ReferencePath("dev", ONE)
    assert _merge(fromRefName="DETACHED").to_source() == ReferencePath(None, ONE)
    assert _merge(fromHash=f"{ONE}~1", keepIndividualCommits=False).to_source() == ReferencePath("dev", ONE, "~1")


def test_merge_without_modes_is_a_normal_one():
    nulls = dict.fromkeys(["defaultKeyMergeMode", "keyMergeModes", "dryRun", "returnConflictAsResult", "keepIndividualCommits"])

    assert _merge().to_options() == _merge(**nulls).to_options() == MergeOptions()


def test_merge_takes_modes_by_key():
    options = _merge(defaultKeyMergeMode="DROP", keyMergeModes=[_mode(mergeBehavior="FORCE")], dryRun=True).to_options()

    assert options == MergeOptions(mode=MergeMode.DROP, keys={A: KeyMerge(mode=MergeMode.FORCE)}, dry_run=True)


@pytest.mark.parametrize("prefix", ["", "is"])
def test_switch_counts_by_both_of_its_names(prefix):
    def named(name):
        return prefix + name[:1].upper() + name[1:] if prefix else name

    assert _merge(**{named("dryRun"): True}).to_options().dry_run
    assert _transplant(**{named("dryRun"): True}).is_simulation
    assert _merge(**{named("returnConflictAsResult"): True}).returns_conflicts


def test_switch_is_off_where_nothing_is_said():
    for request in (_merge(), _transplant(isDryRun=False, dryRun=None, isReturnConflictAsResult=False)):
        assert not request.is_simulation
        assert not request.returns_conflicts


def test_merge_takes_resolved_contents():
    resolved = _mode(expectedTargetContent=_NAMESPACE, resolvedContent=_NAMESPACE | {"properties": {"x": "1"}})

    assert _merge(keyMergeModes=[resolved]).to_options().keys == {
        A: KeyMerge(expected=Namespace(), resolved=Namespace(properties={"x": "1"}))
    }


@pytest.mark.parametrize(
    ("modes", "what"),
    [
        ([_mode(resolvedContent=_NAMESPACE)], "expectedTargetContent"),
        ([_mode(mergeBehavior="FORCE", resolvedContent=_NAMESPACE, expectedTargetContent=_NAMESPACE)], "FORCE"),
        ([_mode(mergeBehavior="DROP", expectedTargetContent=_NAMESPACE)], "DROP"),
        ([_mode(), _mode(mergeBehavior="DROP")], "twice"),
        ([_mode(expectedTargetContent={"type": "NAMESPACE", "elements": ["ns"]})], "its key"),
        ([{"key": {"elements": []}}], "at least one element"),
        ([_mode(mergeBehavior="OURS")], "OURS"),
    ],
)
def test_contradictory_modes_are_refused(modes, what):
    with pytest.raises(RefusedError, match=what):
        _merge(keyMergeModes=modes).to_options()


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"fromHash": None}, "fromHash"),
        ({"fromHash": ""}, "fromHash"),
        ({"fromHash": "~1"}, "fromHash"),
        ({"fromHash": "None"}, "no hash"),
        ({"fromRefName": "a b"}, "is not a name"),
        ({"fromRefName": ""}, "fromRefName"),
        ({"keepIndividualCommits": True}, "one commit"),
    ],
)
def test_merge_without_an_exact_source_is_refused(fields, what):
    with pytest.raises(RefusedError, match=what):
        _merge(**fields).to_source()


def test_message_of_the_metadata_counts_first():
    assert _merge().to_meta() == CommitMeta()
    assert _merge(message="old").to_meta() == CommitMeta(message="old")
    assert _merge(message="old", commitMeta={"message": "", "authors": ["a"]}).to_meta() == CommitMeta(
        message="old", authors=("a",)
    )
    assert _merge(message="old", commitMeta={"message": "new"}).to_meta() == CommitMeta(message="new")


def test_caller_cannot_set_the_parents_of_a_merge():
    with pytest.raises(RefusedError, match="parentCommitHashes"):
        _merge(commitMeta={"message": "m", "parentCommitHashes": [ONE]}).to_meta()


def test_transplant_names_its_commits_in_order():
    assert _transplant(keepIndividualCommits=True).to_sources() == [ReferencePath("dev", ONE), ReferencePath("dev", TWO)]
    for fields in ({"hashesToTransplant": []}, {"keepIndividualCommits": False}, {"hashesToTransplant": [ONE, "~1"]}):
        with pytest.raises(RefusedError):
            _transplant(**fields).to_sources()


def test_transplant_of_several_commits_keeps_their_metadata():
    assert _transplant(message="m").to_override() is None
    assert _transplant(message="m", hashesToTransplant=[ONE]).to_override() == CommitMeta(message="m")
    assert _transplant(hashesToTransplant=[ONE]).to_override() is None


def _result(*conflicts, head=3):
    keys = (MergedKey(A, MergeMode.FORCE, MergeOutcome.PUT), MergedKey(B, MergeMode.NORMAL, MergeOutcome.PUT))
    step = MergeStep(1, None if conflicts else head, keys)
    return MergeResult(onto=2, head=head, base=None, steps=(step,), conflicts=conflicts)


def test_merge_tells_how_each_key_went():
    assert _json(merge_body(_result(), "main", expected_hash=TWO, is_merge=True)) == {
        "wasApplied": True,
        "wasSuccessful": True,
        "resultantTargetHash": f"{3:016x}",
        "commonAncestor": NO_ANCESTOR_HASH,
        "targetBranch": "main",
        "effectiveTargetHash": TWO,
        "expectedHash": TWO,
        "details": [
            {"key": _KEY_A, "mergeBehavior": "FORCE"},
            {"key": {"elements": ["ns", "b"]}, "mergeBehavior": "NORMAL"},
        ],
    }


def test_failed_merge_tells_real_conflicts_alone():
    result = _result(
        Conflict(ConflictKind.VALUE_DIFFERS, B, "differs"),
        Conflict(ConflictKind.KEY_CONFLICT, B, "is a second one"),
        Conflict(ConflictKind.NAMESPACE_ABSENT, NS, "would be needed"),
        head=2,
    )
    body = _json(merge_body(result, "main", expected_hash=None, is_merge=True))

    assert (body["wasApplied"], body["wasSuccessful"]) == (False, False)
    assert body["resultantTargetHash"] == body["effectiveTargetHash"] == TWO
    assert body["details"] == [
        {"key": _KEY_A, "mergeBehavior": "FORCE"},
        {
            "key": {"elements": ["ns", "b"]},
            "mergeBehavior": "NORMAL",
            "conflict": {"conflictType": "VALUE_DIFFERS", "key": {"elements": ["ns", "b"]}, "message": "ns.b: differs"},
        },
        {
            "key": {"elements": ["ns"]},
            "mergeBehavior": "NORMAL",
            "conflict": {"conflictType": "NAMESPACE_ABSENT", "key": {"elements": ["ns"]}, "message": "ns: would be needed"},
        },
    ]


def test_transplant_has_no_common_ancestor():
    assert merge_body(_result(), "main", expected_hash=None, is_merge=False).common_ancestor is None


def test_merge_of_version_1_has_the_fields_that_its_client_needs():
    body = _json(
        merge_body_v1(_result(Conflict(ConflictKind.VALUE_DIFFERS, B, "differs")), "main", expected_hash=TWO, is_merge=True)
    )

    assert body["sourceCommits"] == body["targetCommits"] == []
    assert body["details"] == [
        {"key": key, "mergeBehavior": mode, "conflictType": kind, "sourceCommits": [], "targetCommits": []}
        for key, mode, kind in [(_KEY_A, "FORCE", "NONE"), ({"elements": ["ns", "b"]}, "NORMAL", "UNRESOLVABLE")]
    ]


def test_key_of_several_transplanted_commits_stands_once():
    step = MergeStep(1, 3, (MergedKey(A, MergeMode.NORMAL, MergeOutcome.PUT),))
    result = MergeResult(onto=2, head=4, base=1, steps=(step, step))

    assert len(merge_body(result, "main", expected_hash=None, is_merge=False).details) == 1
