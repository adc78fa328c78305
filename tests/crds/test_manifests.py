"""The resources and the manifests of files are one form: same fields, same defaults, same words, same verdict.

Where the verdicts differ on purpose, the difference is listed here, and docs/reference/resources.md tells it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from defined_kinds import LEAST, Kind, nodes, placed, read_kind
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_strategies import CATALOG_SPECS, NAMES, REALM_SPECS

from headwater.catalogs import ImportSpec
from headwater.reconcile import ManifestError, read_manifest
from headwater.reconcile.actions import name_in_manifest
from headwater.reconcile.manifests import CatalogSpec, RealmSpec
from headwater.settings import Settings

WIDER = {
    "maintenance.schedule": r"never comes|is not a cron expression \(bad",
    "imports.[].schedule": r"never comes|is not a cron expression \(bad",
    "maintenance.timeZone": r"is not a time zone",
    "maintenance.expireSnapshots.schedule": r"never comes|is not a cron expression \(bad",
    "maintenance.reportFiles.schedule": r"never comes|is not a cron expression \(bad",
    "files.places.[]": r"is no place for files",
    "imports.[].namespace": r"are allowed",
    "imports.[].path": r"uses a placeholder twice",
    "principals.[].roles.[]": r"is no role that this Realm declares",
    "connection.roles.[]": r"is no role that this Catalog declares",
    "roles.[].grants.[].privileges.[]": r"cannot be granted on",
    "roles.[].grantedTo.[]": r"Headwater's own|belong to the connections",
    **{f"roles.[].grants.[].{place}": r"are allowed|must not be" for place in ("namespace", "table", "view")},
    **{f"roles.[].grants.[].{place}.[]": r"this one is empty" for place in ("namespace", "table", "view")},
}
"""What a server lets in and Headwater does not: a rule cannot know every zone, nor whether a range is empty or a date never comes, and
cannot add up how long the elements of a key are, nor compare names in braces. Rules about what is
granted, and to whom, would cost more than a server allows."""
DURATION_FIELDS = (
    *("purgeHold", "retention.content.age", "retention.patterns.[].age"),
    *("policies.snapshots.[].maxAge", "policies.snapshots.[].maxRefAge", "policies.metadataFiles.maxAge"),
    *("policies.fileCollection.grace", "policies.fileCollection.delay", "policies.fileCollection.hold"),
)
SCHEDULE_FIELDS = (
    *("maintenance.schedule", "imports.[].schedule"),
    *("maintenance.expireSnapshots.schedule", "maintenance.reportFiles.schedule"),
)
CANONICAL_DURATION = re.compile(r"([0-9]{1,5}d)?([0-9]{1,6}h)?([0-9]{1,8}m)?([0-9]{1,10}s)?([0-9]{1,13}ms)?")
RESOURCE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
CANONICAL_SCHEDULE = re.compile(r"\S+( +\S+){4}")


def body_of(kind: str, spec: Any, name: str = "acme") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": json.loads(json.dumps(spec))}


def read(kind: str, spec: Any, name: str = "acme") -> Any:
    return read_manifest(body_of(kind, spec, name), settings=Settings()).spec


def faults(kind: str, spec: Any, name: str = "acme") -> dict[str, str]:
    """What Headwater finds wrong with the spec, by path."""
    try:
        read(kind, spec, name)
    except ManifestError as error:
        return {fault.path.removeprefix("spec."): fault.message for fault in error.faults}
    return {}


def refusals(kind: str, spec: Any, name: str = "acme") -> list[str]:
    """What a server finds wrong with it, unknown fields included, which kubectl has refused."""
    compiled, body = read_kind(kind).compiled, body_of(kind, spec, name)
    unknown = compiled.decode(body)
    compiled.default(body)
    return unknown + list(map(str, compiled.validate(body)))


def is_wider(path: str, message: str) -> bool:
    said = WIDER.get(re.sub(r"\[\d+\]", ".[]", path))
    return said is not None and re.search(said, message) is not None


def values(spec: Any, path: str) -> Iterator[Any]:
    """What stands at the path, in all items of lists."""
    found = [spec]
    for name in path.split("."):
        inner = [member for value in found for member in (value if name == "[]" and isinstance(value, list) else [])]
        found = inner or [value[name] for value in found if isinstance(value, Mapping) and name in value]
    yield from found


def is_narrower(spec: Any) -> bool:
    """Whether it has what Headwater reads and a server refuses: durations and schedules in other than their plain form, or the
    name of a Realm that no resource can have."""
    if any(isinstance(name, str) and not RESOURCE_NAME.fullmatch(name) for name in values(spec, "realm")):
        return True
    durations = [value for path in DURATION_FIELDS for value in values(spec, path)]
    schedules = [value for path in SCHEDULE_FIELDS for value in values(spec, path)]
    return any(isinstance(value, str) and not CANONICAL_DURATION.fullmatch(value) for value in durations) or any(
        isinstance(value, str) and (not CANONICAL_SCHEDULE.fullmatch(value) or value.endswith(" ")) for value in schedules
    )


@pytest.mark.parametrize("kind", LEAST)
def test_blocks_of_a_resource_have_the_manifests_fields(kind: str) -> None:
    blocks = [(path, schema) for path, schema in nodes(read_kind(kind).schema["properties"]["spec"]) if "properties" in schema]
    for path, schema in blocks:
        told = faults(kind, placed(kind, path, {"zzz": 1}) if path else {**LEAST[kind], "zzz": 1})
        (message,) = [message for where, message in told.items() if where.endswith("zzz")]

        assert set(message.removeprefix("unknown field; there is: ").split(", ")) == schema["properties"].keys(), path

    assert len(blocks) == {"Realm": 8, "Catalog": 14}[kind]


@pytest.mark.parametrize(("kind", "type_"), [("Realm", RealmSpec), ("Catalog", CatalogSpec)])
def test_each_field_of_the_type_is_in_the_resource(kind: str, type_: type) -> None:
    elsewhere = {"Realm": {}, "Catalog": {"realmId": "realm", "baseLocation": "storage", "allowedLocations": "storage"}}[kind]
    names = {name_in_manifest(field.name) for field in dataclasses.fields(type_)}

    assert {elsewhere.get(name, name) for name in names} == dict(nodes(read_kind(kind).schema))["spec",]["properties"].keys()


@pytest.mark.parametrize(
    ("kind", "type_", "path"),
    [("Realm", RealmSpec, ()), ("Catalog", CatalogSpec, ()), ("Catalog", ImportSpec, ("imports", "[]"))],
)
def test_each_choice_has_the_words_of_the_type(kind: str, type_: type, path: tuple[str, ...]) -> None:
    fields = dict(nodes(read_kind(kind).schema["properties"]["spec"]))[path]["properties"]
    choices = {
        name_in_manifest(name): get_args(hint) for name, hint in get_type_hints(type_).items() if get_origin(hint) is Literal
    }

    assert {name: tuple(schema["enum"]) for name, schema in fields.items() if "enum" in schema} == choices
    assert choices


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Realm", {}),
        ("Realm", {"retention": {}, "maintenance": {}}),
        ("Realm", {"retention": {"content": {}, "references": {}}, "maintenance": {"suspend": True}}),
        ("Catalog", LEAST["Catalog"]),
        ("Catalog", placed("Catalog", ("imports",), [{"name": "first", "locations": ["s3://lake/"]}])),
        ("Catalog", placed("Catalog", ("policies", "snapshots"), [{"maxAge": "5d"}])),
        ("Catalog", placed("Catalog", ("maintenance",), {"expireSnapshots": {}, "reportFiles": {"suspend": True}})),
    ],
)
def test_defaults_of_a_server_are_those_of_headwater(kind: str, spec: dict[str, Any]) -> None:
    filled = read_kind(kind).made(spec)["spec"]

    assert read(kind, filled) == read(kind, spec)
    assert filled != spec


def test_realm_without_a_spec_is_one_of_defaults(realms: Kind) -> None:
    assert read("Realm", None) == read("Realm", realms.made(None)["spec"]) == read("Realm", {})


@pytest.mark.long
@settings(max_examples=400)
@given(st.one_of(st.tuples(st.just("Realm"), REALM_SPECS, NAMES), st.tuples(st.just("Catalog"), CATALOG_SPECS, NAMES)))
def test_resource_that_a_server_lets_in_is_a_manifest(drawn: tuple[str, Any, str]) -> None:
    if refusals(*drawn) == []:
        assert {path: message for path, message in faults(*drawn).items() if not is_wider(path, message)} == {}


@pytest.mark.long
@settings(max_examples=400)
@given(st.one_of(st.tuples(st.just("Realm"), REALM_SPECS, NAMES), st.tuples(st.just("Catalog"), CATALOG_SPECS, NAMES)))
def test_manifest_is_let_in_by_a_server(drawn: tuple[str, Any, str]) -> None:
    if faults(*drawn) == {} and not is_narrower(drawn[1]):
        assert refusals(*drawn) == []


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Realm", "maintenance.schedule", "0 0 31 2 *"),
        ("Realm", "maintenance.schedule", "0 0 * * 5-1"),
        ("Catalog", "imports.[].schedule", "0 0 31 2 *"),
        ("Catalog", "maintenance.reportFiles.schedule", "0 0 31 2 *"),
        ("Catalog", "files.places", ["s3://elsewhere/"]),
        ("Realm", "maintenance.timeZone", "Europe/Atlantis"),
        ("Catalog", "imports.[].namespace", ["n" * 250, "n" * 250]),
        ("Catalog", "imports.[].path", "{a}/{a}/{table}"),
        ("Realm", "principals.[].roles", ["writer"]),
        ("Catalog", "connection.roles", ["writer"]),
        ("Catalog", "roles.[].grants.[].namespace", ["n" * 250, "n" * 250]),
        ("Catalog", "roles.[].grants.[].table", ["n" * 250, "n" * 250]),
        ("Catalog", "roles.[].grants.[].view", ["n" * 250, "n" * 250]),
        ("Catalog", "roles.[].grants.[].namespace", ["."]),
        ("Catalog", "roles.[].grantedTo", ["service_admin"]),
        ("Catalog", "roles.[].grantedTo", ["connection.lake"]),
    ],
)
def test_headwater_refuses_what_a_rule_cannot_see(kind: str, path: str, value: str) -> None:
    spec = placed(kind, tuple(path.split(".")), value)

    assert refusals(kind, spec) == []
    assert [is_wider(*fault) for fault in faults(kind, spec).items()] == [True]


def test_headwater_refuses_a_privilege_that_means_nothing_there() -> None:
    spec = placed("Catalog", ("roles", "[]", "grants", "[]"), {"table": ["t"], "privileges": ["NAMESPACE_DROP"]})

    assert refusals("Catalog", spec) == []
    assert [is_wider(*fault) for fault in faults("Catalog", spec).items()] == [True]


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Realm", "purgeHold", "30m1h"),
        ("Realm", "retention.content.age", "1h1h"),
        ("Realm", "maintenance.schedule", " 0 3 * * 0"),
        ("Realm", "maintenance.schedule", "0\t3 * * 0"),
    ],
)
def test_server_wants_durations_and_schedules_in_their_plain_form(kind: str, path: str, value: str) -> None:
    spec = placed(kind, tuple(path.split(".")), value)

    assert faults(kind, spec) == {}
    assert refusals(kind, spec) != []


def test_unsafe_setting_lowers_the_holds_floor_in_files_alone() -> None:
    unsafe = Settings(unsafe_short_graces=True)

    assert read_manifest(body_of("Realm", {"purgeHold": "5s"}), settings=unsafe).spec.purge_hold_seconds == 5
    assert refusals("Realm", {"purgeHold": "5s"}) != []


def test_floor_of_the_hold_is_that_of_the_settings() -> None:
    floor = Settings().purge_hold_floor_seconds

    assert refusals("Realm", {"purgeHold": f"{floor:.0f}s"}) == []
    assert refusals("Realm", {"purgeHold": f"{floor * 1000 - 1:.0f}ms"}) != []
