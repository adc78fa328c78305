"""What the command line prints, values of the public API have: each field of a result is a field, or there is a reason why not."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from test_command_coverage import ALL_COMMANDS

import headwater
from headwater.console import ResultView

VIEWS: Mapping[str, ResultView[Any]] = {
    printed.view.name: printed.view
    for command in ALL_COMMANDS.values()
    if (printed := getattr(command.callback, "printed", None)) is not None
}


@dataclass(frozen=True)
class Value:
    """The class of a result.

    same          fields by those of the result that have another name
    without       reasons by the fields of the result that are none here
    """

    name: str
    same: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)


_CONTENT = "RefClient.content, at a commit's hash, has all of it"
VALUES: Mapping[str, Value] = {
    "access": Value("AccessInfo"),
    "branch or tag": Value("RefInfo"),
    "catalog": Value("CatalogInfo"),
    "change of one content": Value(
        "KeyHistoryInfo",
        without={**dict.fromkeys(("hash", "time", "committer", "authors", "message"), "of its commit"), "value": _CONTENT},
    ),
    "commit": Value("CommitInfo", without={"changes": "len(operations)"}),
    "content": Value("EntryInfo"),
    "content in full": Value("ContentInfo"),
    "difference": Value("DifferenceInfo", without={"before": _CONTENT, "after": _CONTENT}),
    "difference of a manifest": Value("ManifestDifferenceInfo"),
    "effective policies": Value("EffectivePoliciesInfo"),
    "engine": Value("EngineInfo"),
    "explanation": Value("KeptObjectInfo"),
    "file": Value("UnreferencedFileInfo", same={"bytes": "size_bytes"}),
    "finding": Value("FindingInfo"),
    "outcome of a manifest": Value("ManifestInfo", same={"done": "steps"}, without={"dry_run": "who asked knows it"}),
    "policy": Value(
        "PolicyInfo",
        same={"of": "table", "says": "text"},
        without=dict.fromkeys(("metadata_files", "file_collection"), "there is a field for each value that they say"),
    ),
    "principal": Value("PrincipalInfo"),
    "privilege": Value("PrivilegeInfo", same={"about": "summary"}),
    "realm": Value("RealmInfo"),
    "report of a file table": Value(
        "FileTableInfo",
        same={"key_column": "key", "sort_columns": "sort"},
        without={"conflicts": "what one process counted of its database"},
    ),
    "role": Value("RoleInfo"),
    "run": Value("RunInfo", without={"seconds": "finished - started", "result": "for people: error, or counts"}),
    "stop of maintenance": Value("StopInfo"),
    "table and its home": Value("TableHomeInfo", same={"home": "is_home"}),
    "task": Value(
        "TaskInfo",
        without={
            "realm_key": "a guard of the task's own",
            "next": "for people",
            "follow_up": "it is a task of its own, once there is one",
        },
    ),
    "task figures": Value("TaskFiguresInfo"),
}
MERELY_PRINTED = {
    **dict.fromkeys(
        (
            "adoption of a file table",
            "archive",
            "collection",
            "collection of files",
            "compaction of a file table",
            "deletion of a file table",
            "expiry",
            "import",
            "imported realm",
            "report of files",
            "snapshot",
            "split of a file table",
            "step of a restoration",
        ),
        "methods return these as mappings, as they are printed",
    ),
    **dict.fromkeys(("context", "file queue", "set-aside request", "summary"), "of commands that have no method"),
    **dict.fromkeys(("deletion plan", "purge plan"), "shown before somebody confirms, which a program does at once"),
    "explanation of a file": "Connection.explain_file returns it as a mapping",
    "file table": "RealmClient.file_tables are names, and FileTableInfo has more",
    "first manifest": "write_first_manifest returns the file",
    "grant": "RoleInfo.grants has a line for each",
    "ingested file": "FileTableClient.ingest returns how many there are",
    "merge": "MergeInfo has it by key, with the sides of each conflict",
    "released place": "RealmClient.release_location returns the places",
    "store": "connect creates it, and Connection.url names it",
    "version": "__version__",
}


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda letter: f"_{letter[1].lower()}", name)


def test_every_result_has_a_class_or_a_reason() -> None:
    assert VIEWS.keys() == VALUES.keys() | MERELY_PRINTED.keys()
    assert not VALUES.keys() & MERELY_PRINTED.keys()


@pytest.mark.parametrize("name", VALUES)
def test_every_field_of_a_result_is_one_of_its_class(name: str) -> None:
    value, printed = VALUES[name], {snake_case(each.name) for each in VIEWS[name].fields}
    fields = {each.name for each in dataclasses.fields(getattr(headwater, value.name))}

    assert {each for each in printed if value.same.get(each, each) not in fields} == value.without.keys()
    assert value.same.keys() <= printed
