"""Every rule of the schemas lets in what keeps it, and refuses what does not, in a sentence at the right field."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from defined_kinds import LEAST, Kind, nodes, read_kind
from rule_samples import SAMPLES, Sample

from kubeapi.admission import CompiledKind


def name_of(sample: Sample) -> str:
    return f"{sample.kind}.{sample.path}"


def is_said(told: list[str], says: str) -> bool:
    """Whether the line was told, whatever the value in it."""
    pattern = re.escape(says).replace(re.escape("..."), ".*", 1)
    return any(re.fullmatch(pattern, line, re.DOTALL) for line in told)


def rules() -> Iterator[tuple[str, str, str]]:
    """Kind, path and message of each rule."""
    for kind in LEAST:
        for path, schema in nodes(read_kind(kind).schema):
            for rule in schema.get("x-kubernetes-validations", ()):
                yield kind, ".".join(path), rule["message"]


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_resource_that_keeps_the_rule_is_taken(sample: Sample) -> None:
    kind = read_kind(sample.kind)

    assert [told for spec in sample.kept if (told := kind.refusals(spec, name=sample.name, before=sample.before))] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_resource_that_breaks_the_rule_is_told_so(sample: Sample) -> None:
    kind = read_kind(sample.kind)
    silent = [
        (spec, told)
        for spec in sample.broken
        if not is_said(told := kind.refusals(spec, name=sample.name, before=sample.before), sample.says)
    ]

    assert silent == []


def test_every_rule_has_such_samples() -> None:
    told = [(sample.kind, sample.path, sample.says) for sample in SAMPLES if sample.kept and sample.broken]
    bare = [rule for rule in rules() if not any(one[:2] == rule[:2] and one[2].endswith(rule[2]) for one in told)]

    assert bare == []


def test_password_is_not_shown_in_what_is_refused() -> None:
    specs = [sample.broken for sample in SAMPLES if "must not carry a password" in sample.says]
    told = [line for broken in specs for spec in broken for line in read_kind("Catalog").refusals(spec)]

    assert len(told) >= 9
    assert [line for line in told if "secret" in line] == []


def test_two_imports_of_one_name_are_refused(catalogs: Kind) -> None:
    one = {"name": "first", "locations": ["s3://lake/"]}

    told = catalogs.refusals({**LEAST["Catalog"], "imports": [one, {**one, "locations": ["s3://other/"]}]})

    assert told == ['spec.imports[1]: Duplicate value: {"name":"first"}']


def test_fault_is_told_once(realms: Kind, catalogs: Kind) -> None:
    told = [
        *realms.refusals({"purgeHold": "soon"}),
        *realms.refusals({"maintenance": {"schedule": "weekly"}}),
        *realms.refusals({"realmId": "::system::"}),
        *catalogs.refusals({**LEAST["Catalog"], "storage": {"baseLocation": "/tables"}}),
    ]

    assert len(told) == 4


def test_state_of_a_realm_and_most_else_may_change(realms: Kind) -> None:
    before = {"state": "Active", "purgeHold": "30d", "maintenance": {"schedule": "0 3 * * 0"}, "properties": {"a": "b"}}
    after = {"state": "Inactive", "deletionPolicy": "Purge", "deletionProtection": True, "driftPolicy": "Report"}

    assert realms.refusals(after, before=before) == []


def test_locations_of_a_catalog_may_change(catalogs: Kind) -> None:
    assert catalogs.refusals({**LEAST["Catalog"], "storage": {"baseLocation": "s3://other/"}}, before=LEAST["Catalog"]) == []


@pytest.mark.parametrize("kind", LEAST)
def test_defaults_of_a_schema_are_in_order(kind: str) -> None:
    bare = read_kind(kind).made(LEAST[kind])
    full = read_kind(kind).made(bare["spec"])

    assert full == bare


def test_both_kinds_say_of_a_schedule_the_same() -> None:
    def rules_of(kind: str, path: tuple[str, ...]) -> object:
        return dict(nodes(read_kind(kind).schema))[path]["x-kubernetes-validations"]

    schedule = ("spec", "imports", "[]", "schedule")
    assert rules_of("Realm", ("spec", "maintenance", "schedule")) == rules_of("Catalog", schedule)


@pytest.mark.parametrize("kind", LEAST)
def test_every_message_is_one_plain_line(kind: str) -> None:
    messages = [message for one, _, message in rules() if one == kind]

    assert [message for message in messages if "\n" in message or len(message) > 160 or message.endswith(".")] == []


def test_definitions_are_structural_and_their_rules_compile(realms: Kind, catalogs: Kind) -> None:
    for kind in (realms, catalogs):
        assert isinstance(kind.compiled, CompiledKind)
