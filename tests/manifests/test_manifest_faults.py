"""Every fault of a manifest has its file, its line, its path, and a sentence that says what would be right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater.reconcile import ManifestError, load_manifests
from headwater.reconcile.manifests import ResourceName
from headwater.store import RealmId

Faults = Callable[[str], list[str]]
Write = Callable[..., Path]

CRON_EXAMPLE = 'write minute, hour, day of month, month and day of week, for example "0 3 * * 0"'


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("realmid: acme", "x.yaml:6: spec.realmid: unknown field; did you mean realmId?"),
        ("retention: {tags: 3}", "x.yaml:6: spec.retention.tags: unknown field; there is: content, references, patterns"),
        ("state: active", 'x.yaml:6: spec.state: "active" is none of Active, Inactive; did you mean Active?'),
        ("state: [Active]", "x.yaml:6: spec.state: expected one of Active, Inactive, not a list"),
        ("deletionProtection: yes", "x.yaml:6: spec.deletionProtection: expected true or false, not yes"),
        ('deletionProtection: "true"', 'x.yaml:6: spec.deletionProtection: expected true or false, not "true"'),
        (
            "retention: {content: {age: 30 days}}",
            'x.yaml:6: spec.retention.content.age: "30 days" is not a duration; write for example 30d',
        ),
        (
            "retention: {content: {age: 30}}",
            "x.yaml:6: spec.retention.content.age: 30 is not a duration; write for example 30s",
        ),
        ("purgeHold: soon", 'x.yaml:6: spec.purgeHold: "soon" is not a duration; write for example 30d'),
        ("purgeHold: 99999999d", "x.yaml:6: spec.purgeHold: 99999999d is longer than a hundred years"),
        (
            "purgeHold: 5s",
            "x.yaml:6: spec.purgeHold: must be at least 1m15s (a realm handle's TTL plus a commit's time-out), not 5s; "
            "only the setting unsafe_short_graces lowers it",
        ),
        (
            'retention: {references: {commits: "20"}}',
            'x.yaml:6: spec.retention.references.commits: expected a whole number, not "20"; write 20 without quotes',
        ),
        (
            "retention: {references: {commits: 1.5}}",
            "x.yaml:6: spec.retention.references.commits: expected a whole number, not 1.5",
        ),
        (
            "retention: {references: {commits: 0}}",
            "x.yaml:6: spec.retention.references.commits: must be from 1 to 1000000, not 0",
        ),
        ("retention: {patterns: [{pattern: '*/main'}]}", "x.yaml:6: spec.retention.patterns[0].commits: is missing"),
        ("retention: {patterns: [{commits: 3}]}", "x.yaml:6: spec.retention.patterns[0].pattern: is missing"),
        (
            "retention: {patterns: [{pattern: a, commits: 0}]}",
            "x.yaml:6: spec.retention.patterns[0].commits: must be from 1 to 1000000, not 0",
        ),
        (
            "retention: {patterns: [" + "{pattern: a, commits: 1}, " * 33 + "]}",
            "x.yaml:6: spec.retention.patterns[32]: there may be 32 patterns, not 33",
        ),
        ("retention: 30d", 'x.yaml:6: spec.retention: expected a mapping, not "30d"'),
        (
            "maintenance: {schedule: weekly}",
            f'x.yaml:6: spec.maintenance.schedule: "weekly" is not a cron expression; {CRON_EXAMPLE}',
        ),
        (
            "maintenance: {schedule: 0 25 * * *}",
            f'x.yaml:6: spec.maintenance.schedule: "0 25 * * *" is not a cron expression (bad hour); {CRON_EXAMPLE}',
        ),
        (
            "maintenance: {timeZone: Berlin}",
            'x.yaml:6: spec.maintenance.timeZone: "Berlin" is not a time zone; write for example UTC or Europe/Berlin',
        ),
        (
            "properties: {a: 1.10}",
            'x.yaml:6: spec.properties.a: expected a text, YAML reads 1.10 otherwise; write "1.10" in quotes',
        ),
        ("realmId: a\nrealmId: b", "x.yaml:7: spec.realmId: given twice; it stands in line 6 already"),
        (
            'realmId: "::system::"',
            "x.yaml:6: spec.realmId: realm id '::system::' is reserved: ids with '::' belong to Headwater itself",
        ),
        (
            "realmId: a/b",
            "x.yaml:6: spec.realmId: 'a/b' is not a realm id: use 1 to 128 of the characters A-Z a-z 0-9 _ -",
        ),
        ("? [a]\n: b", "x.yaml:6: spec: the name of a field must be a text"),
    ],
)
def test_fault_of_a_realm_is_refused(realm_faults: Faults, spec: str, wanted: str) -> None:
    assert realm_faults(spec) == [wanted]


PLACE = "realm: acme\nstorage: {baseLocation: 's3://lake/'}\n"
NO_URL = "is not a location; write a URL such as s3://bucket/folder/, or ./folder for one beside this file"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("storage: {baseLocation: 's3://a/'}", "x.yaml:11: spec.realm: is missing"),
        ("realm: acme", "x.yaml:11: spec.storage.baseLocation: is missing"),
        (
            "realm: acne\nstorage: {baseLocation: 's3://a/'}",
            'x.yaml:11: spec.realm: "acne" is no Realm in namespace default, neither in these manifests nor in the store; there is: acme',
        ),
        (
            PLACE + "name: a b",
            "x.yaml:13: spec.name: 'a b' is not a catalog name: use 1 to 128 of the characters A-Z a-z 0-9 _ . -, "
            "with a letter, a digit or _ first",
        ),
        (
            PLACE + "defaultBranch: HEAD",
            "x.yaml:13: spec.defaultBranch: 'HEAD' is not a name for a branch: HEAD and DETACHED are reserved",
        ),
        (
            PLACE + "files: {places: ['s3://elsewhere/x/']}",
            "x.yaml:13: spec.files.places[0]: 's3://elsewhere/x/' is no place for files: name a location below the base location"
            " 's3://lake/', or in one of the allowed locations",
        ),
        (
            PLACE + "files: {places: ['s3://lake']}",
            "x.yaml:13: spec.files.places[0]: 's3://lake' is no place for files: name a location below the base location"
            " 's3://lake/', or in one of the allowed locations",
        ),
        (
            PLACE + "maintenance: {expireSnapshots: {schedule: daily}}",
            f'x.yaml:13: spec.maintenance.expireSnapshots.schedule: "daily" is not a cron expression; {CRON_EXAMPLE}',
        ),
        (
            PLACE + "policies: {fileCollection: {grace: 1h}}",
            "x.yaml:13: spec.policies.fileCollection: grace is 1h: it may be from 1d to 36500d",
        ),
        (
            PLACE + "policies:\n  snapshots:\n  - maxAge: 5d\n  - maxAge: 6d",
            "x.yaml:15: spec.policies.snapshots: two rules for the branches '*': put them together",
        ),
        (
            PLACE + "policies: {metadataFiles: {keep: 0}}",
            "x.yaml:13: spec.policies.metadataFiles.keep: must be from 1 to 1000000, not 0",
        ),
        (
            PLACE + "policies: {snapshots: []}",
            "x.yaml:13: spec.policies.snapshots: expected a list with at least 1, this one has 0",
        ),
        (PLACE + "imports: {a: b}", "x.yaml:13: spec.imports: expected a list, not a mapping"),
        (PLACE + "imports:\n- {locations: ['s3://a/']}", "x.yaml:14: spec.imports[0].name: is missing"),
        (PLACE + "imports:\n- {name: a}", "x.yaml:14: spec.imports[0].locations: is missing"),
        (
            PLACE + "imports:\n- {name: a, locations: []}",
            "x.yaml:14: spec.imports[0].locations: expected a list with at least 1, this one has 0",
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/'], mode: twice}",
            'x.yaml:14: spec.imports[0].mode: "twice" is none of once, sync',
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/'], schedule: 0 * * * *}",
            "x.yaml:14: spec.imports[0].schedule: an import of mode once has no schedule; write mode: sync, or take the schedule away",
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/'], gone: drop}",
            "x.yaml:14: spec.imports[0].gone: an import of mode once drops nothing; write mode: sync, or gone: report",
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/'], verify: all}",
            'x.yaml:14: spec.imports[0].verify: "all" is none of metadata, manifests, files',
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/'], namespace: [a, .]}",
            'x.yaml:14: spec.imports[0].namespace: an element of a namespace must not be "."',
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/'], inventory: files.csv}",
            f'x.yaml:14: spec.imports[0].inventory: "files.csv" {NO_URL}',
        ),
        (
            PLACE + "imports:\n- {name: a, locations: ['s3://a/']}\n- {name: a, locations: ['s3://b/']}",
            'x.yaml:15: spec.imports[1]: another import is called "a", in line 14; give each a name of its own',
        ),
    ],
)
def test_fault_of_a_catalog_is_refused(catalog_faults: Faults, spec: str, wanted: str) -> None:
    assert catalog_faults(spec) == [wanted]


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("lake", NO_URL),
        ("/data/lake", "is not a location; write file:///data/lake"),
        ("file://data/lake", "is not a location: a file URL has three slashes; write file:///data/lake"),
        ("s3://", "is not a location: the name after s3:// is missing"),
        ("s3:///lake", "is not a location: the name after s3:// is missing"),
        ("s3://${BUCKET}/", "is not a location: variables are not filled in; write the value itself"),
        ("s3://lake/../other", 'is not a location: it must not have the segments "." and ".."; write where it leads'),
        ("./../other", 'is not a location: it must not have the segments "." and ".."; write where it leads'),
        ("s3://lake/a b", f"is not a location: it has a space in it; {NO_URL.partition('; ')[2]}"),
        ("https://lake/?token=1", "is not a location: it must not have a query or a fragment"),
    ],
)
def test_malformed_location_is_refused(catalog_faults: Faults, location: str, wanted: str) -> None:
    faults = catalog_faults(f"realm: acme\nstorage:\n  baseLocation: '{location}'")

    assert faults == [f'x.yaml:13: spec.storage.baseLocation: "{location}" {wanted}']


def test_path_that_maps_nothing_to_a_table_is_refused(catalog_faults: Faults) -> None:
    [fault] = catalog_faults(PLACE + "imports:\n- {name: a, locations: ['s3://a/'], path: '{namespace}'}")

    assert fault.startswith("x.yaml:14: spec.imports[0].path: ")
    assert "{namespace}.db/{table}" in fault


def test_location_that_is_too_long_for_a_claim_is_refused(catalog_faults: Faults) -> None:
    [fault] = catalog_faults(f"realm: acme\nstorage: {{baseLocation: 's3://{'a' * 600}'}}")

    assert "has 605 bytes; 500 are allowed" in fault


def test_password_in_a_location_is_refused_and_not_repeated(catalog_faults: Faults) -> None:
    [fault] = catalog_faults("realm: acme\nstorage: {baseLocation: 'sftp://me:hunter2@host/lake'}")

    assert "must not carry a password" in fault
    assert "hunter2" not in fault


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("kind: Realm\nmetadata: {name: a}", "x.yaml:1: apiVersion: is missing"),
        (
            "apiVersion: v1\nkind: Realm\nmetadata: {name: a}",
            'x.yaml:1: apiVersion: "v1" is none of headwater.dev/v1alpha1',
        ),
        ("apiVersion: headwater.dev/v1alpha1", "x.yaml:1: kind: is missing"),
        (
            "apiVersion: headwater.dev/v1alpha1\nkind: Realms",
            'x.yaml:2: kind: "Realms" is none of Realm, Catalog; did you mean Realm?',
        ),
        ("apiVersion: headwater.dev/v1alpha1\nkind: Realm", "x.yaml:1: metadata.name: is missing"),
        ("- a", "x.yaml:1: expected a mapping, not a list"),
        ("a: [", "x.yaml:1: not YAML: expected the node content, but found '<stream end>'"),
        ("a: @", "x.yaml:1: not YAML: found character '@' that cannot start any token"),
    ],
)
def test_document_that_is_no_manifest_is_refused(faults_of: Faults, text: str, wanted: str) -> None:
    assert wanted in faults_of(text)


REALM = "apiVersion: headwater.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: acme\n  annotations: {{{annotations}}}\n"


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (
            'headwater.dev/delet: "true"',
            "headwater.dev/delet: unknown annotation; a Realm may have: headwater.dev/adopt, headwater.dev/confirm-purge, "
            "headwater.dev/delete, headwater.dev/release-to, headwater.dev/rotate-credentials, headwater.dev/rotate-principal, "
            "headwater.dev/run-now",
        ),
        ('headwater.dev/delete: "yes"', 'headwater.dev/delete: must be "true" or "false", in quotes'),
        (
            "headwater.dev/run-now: purge",
            "headwater.dev/run-now: must be gc, or gc:<any word of at most 63 characters> to ask again",
        ),
        (
            "headwater.dev/release-to: acme",
            "headwater.dev/release-to: must be <namespace>/<name> of the Realm that may take the realm over",
        ),
        (
            "headwater.dev/rotate-credentials: a b",
            "headwater.dev/rotate-credentials: must be a word of your own, at most 63 letters, digits, - _ and ., "
            "another one for each rotation",
        ),
        (
            "headwater.dev/rotate-principal: etl",
            "headwater.dev/rotate-principal: must be <principal>:<a word of your own>, another word for each rotation; the word has "
            "at most 63 letters, digits, - _ and .",
        ),
    ],
)
def test_annotation_that_means_nothing_is_refused(faults_of: Faults, annotation: str, wanted: str) -> None:
    assert faults_of(REALM.format(kind="Realm", annotations=annotation)) == [f"x.yaml:5: metadata.annotations.{wanted}"]


def test_annotations_of_others_are_left_alone(faults_of: Faults) -> None:
    assert faults_of(REALM.format(kind="Realm", annotations="example.com/anything: goes")) == []


def test_all_faults_of_all_files_are_told_at_once(write: Write, tmp_path: Path) -> None:
    write(REALM.format(kind="Realm", annotations="") + "spec: {purgeHold: 1s, stat: Active}", "a.yaml")
    write("a: [", "b.yaml")

    with pytest.raises(ManifestError) as refused:
        load_manifests(tmp_path)

    assert [(Path(fault.file).name, fault.path) for fault in refused.value.faults] == [
        ("a.yaml", "spec.purgeHold"),
        ("a.yaml", "spec.stat"),
        ("b.yaml", ""),
    ]
    assert isinstance(refused.value, RefusedError)


def test_same_realm_id_twice_is_refused(faults_of: Faults) -> None:
    second = REALM.format(kind="Realm", annotations="").replace("acme", "second") + "spec: {realmId: acme}"

    [fault] = faults_of(REALM.format(kind="Realm", annotations="") + "---\n" + second)

    assert fault.startswith('x.yaml:12: spec.realmId: realm id "acme" is in ')
    assert fault.endswith("x.yaml:4 already; each may be given once")


def test_same_resource_twice_is_refused(faults_of: Faults) -> None:
    one = REALM.format(kind="Realm", annotations="")

    assert "Realm default/acme is in " in faults_of(f"{one}---\n{one}")[0]


def test_same_catalog_name_twice_in_a_realm_is_refused(faults_of: Faults) -> None:
    realm = REALM.format(kind="Realm", annotations="")
    spec = "spec: {name: lake, realm: acme, storage: {baseLocation: 's3://a/'}}\n"
    first = REALM.format(kind="Catalog", annotations="") + spec

    [fault] = faults_of(f"{realm}---\n{first}---\n{first.replace('name: acme', 'name: other')}")

    assert fault.startswith('x.yaml:19: spec.name: catalog "lake" of realm "acme" is in ')
    assert fault.endswith("x.yaml:12 already; each may be given once")


def test_realm_id_of_a_resource_cannot_change(write: Write) -> None:
    file = write(REALM.format(kind="Realm", annotations="") + "spec: {realmId: new}")

    with pytest.raises(
        ManifestError, match='the realm id cannot change: this resource manages the realm "old"; write realmId: old'
    ):
        load_manifests(file, known_realms={RealmId("old"): ResourceName("default", "acme")})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=st.text(alphabet=":-[]{}&*!|>'\"%@`#,? \n\tabc01~<", max_size=80))
def test_no_text_makes_the_reader_fail_in_another_way(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)

    try:
        assert load_manifests(file) == ()
    except ManifestError as refused:
        assert refused.faults
