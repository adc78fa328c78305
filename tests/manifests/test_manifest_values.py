"""What valid manifests mean: defaults, units, locations, and the order of files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.catalogs import CatalogFiles, CatalogMaintenance, ImportSpec, LakeSchedule
from headwater.errors import NotFoundError
from headwater.policies import FileRule, MetadataFileRule, SnapshotRule
from headwater.realms import HistoryRetention, KeptHistory, MaintenanceSchedule
from headwater.reconcile import CatalogManifest, ManifestError, RealmManifest, load_manifests
from headwater.reconcile.manifests import CatalogSpec, RealmSpec, ResourceName
from headwater.settings import Settings
from headwater.store import RealmId

Write = Callable[..., Path]

REALM = "apiVersion: headwater.dev/v1alpha1\nkind: Realm\nmetadata: {name: acme}\n"
CATALOG = """\
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {name: lake}
spec: {realm: acme, storage: {baseLocation: "s3://lake/"}}
"""
EXAMPLES = Path(__file__).parents[2] / "examples"

DAY = 86400.0


def test_realm_needs_no_more_than_a_name(write: Write) -> None:
    [manifest] = load_manifests(write(REALM))

    assert isinstance(manifest, RealmManifest)
    assert manifest.metadata.resource == ResourceName("default", "acme")
    assert manifest.spec == RealmSpec(realm_id=RealmId("acme"))


def test_every_field_of_a_realm_is_read(write: Write) -> None:
    [manifest] = load_manifests(
        write(
            """\
            apiVersion: headwater.dev/v1alpha1
            kind: Realm
            metadata: {name: acme, namespace: lakes, labels: {a: b}, annotations: {headwater.dev/delete: "true"}}
            spec:
              realmId: ACME_1
              state: Inactive
              deletionPolicy: Purge
              deletionProtection: true
              driftPolicy: Report
              purgeHold: 24h
              retention:
                content: {age: 30d, commits: 100}
                references: {commits: 20}
                patterns: [{pattern: "*/main", commits: 5, age: 1d}]
              maintenance: {schedule: "0 3 * * 0", timeZone: Europe/Berlin, suspend: true}
              properties: {team: lake, empty: ""}
            """
        )
    )

    assert manifest.metadata.is_deletion
    assert manifest.metadata.resource == ResourceName("lakes", "acme")
    assert manifest.spec == RealmSpec(
        realm_id=RealmId("ACME_1"),
        state="Inactive",
        deletion_policy="Purge",
        deletion_protection=True,
        drift_policy="Report",
        purge_hold_seconds=86400.0,
        retention=HistoryRetention(
            content_age_seconds=2592000.0,
            content_commits=100,
            reference_commits=20,
            references=(KeptHistory(pattern="*/main", commits=5, age_seconds=86400.0),),
        ),
        maintenance=MaintenanceSchedule(schedule="0 3 * * 0", time_zone="Europe/Berlin", suspend=True),
        properties={"team": "lake", "empty": ""},
    )


def test_catalog_needs_no_more_than_a_realm_and_a_place(write: Write) -> None:
    manifest = load_manifests(write(f"{REALM}---\n{CATALOG}"))[1]

    assert isinstance(manifest, CatalogManifest)
    assert manifest.spec == CatalogSpec(realm="acme", realm_id=RealmId("acme"), name="lake", base_location="s3://lake/")


def test_every_field_of_an_import_is_read(write: Write) -> None:
    text = CATALOG.replace("storage:", "imports: [{name: a, locations: ['s3://b/c'], mode: sync, schedule: 0 * * * *, "
                           "include: ['x.*'], exclude: [y], path: '{n}.db/{table}', namespace: [raw], inventory: 's3://b/f.csv', "
                           "verify: files, tolerate: [Invalid], gone: drop}], storage:")  # fmt: skip

    manifest = load_manifests(write(f"{REALM}---\n{text}"))[1]

    assert isinstance(manifest, CatalogManifest)
    assert manifest.spec.imports == (
        ImportSpec(
            **{"name": "a", "locations": ("s3://b/c",), "mode": "sync", "schedule": "0 * * * *"},
            **{"include": ("x.*",), "exclude": ("y",), "path": "{n}.db/{table}", "namespace": ("raw",)},
            **{"inventory": "s3://b/f.csv", "verify": "files", "tolerate": ("Invalid",), "gone": "drop"},
        ),
    )


def test_work_on_the_lake_and_its_places_are_read(write: Write) -> None:
    said = "files: {places: ['s3://lake/hashed/']}, maintenance: {expireSnapshots: {schedule: 0 3 * * *}, reportFiles: {}}, storage:"
    manifest = load_manifests(write(f"{REALM}---\n{CATALOG.replace('storage:', said)}"))[1]

    assert isinstance(manifest, CatalogManifest)
    assert manifest.spec.files == CatalogFiles(places=("s3://lake/hashed/",))
    assert manifest.spec.maintenance == CatalogMaintenance(
        expire_snapshots=LakeSchedule(schedule="0 3 * * *"), report_files=LakeSchedule()
    )


def test_policies_are_read_with_their_defaults(write: Write) -> None:
    said = (
        "policies: {snapshots: [{branches: etl/*, maxAge: 1d}, {minToKeep: 3, maxRefAge: 90d}], metadataFiles: {keep: 50, maxAge: 30d},"
        " fileCollection: {grace: 14d, delay: 0s, hold: 3d, mode: 'off'}}, storage:"
    )
    manifest = load_manifests(write(f"{REALM}---\n{CATALOG.replace('storage:', said)}"))[1]

    assert isinstance(manifest, CatalogManifest)
    assert [policy.says()[2:] for policy in manifest.spec.policies] == [
        (
            (SnapshotRule(branches="etl/*", max_age_seconds=DAY), SnapshotRule(min_to_keep=3, max_ref_age_seconds=90 * DAY)),
            None,
            None,
        ),
        ((), MetadataFileRule(keep=50, max_age_seconds=30 * DAY), None),
        ((), None, FileRule(grace_seconds=14 * DAY, delay_seconds=0, hold_seconds=3 * DAY, mode="off")),
    ]


def test_null_counts_as_not_given(write: Write) -> None:
    [manifest] = load_manifests(write(REALM + "spec: {purgeHold: null, retention: null, maintenance: {schedule: ~}}\n"))

    assert manifest.spec == RealmSpec(realm_id=RealmId("acme"))


def test_json_is_read_as_well(write: Write) -> None:
    content = {"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": {"name": "acme"}}

    [manifest] = load_manifests(write(json.dumps(content, indent=1), "x.json"))

    assert manifest.subject == "Realm acme"


def test_catalog_may_stand_before_its_realm_and_in_another_file(write: Write, tmp_path: Path) -> None:
    write(CATALOG, "a.yaml")
    write(REALM, "b.yml")
    write("not: ours", "notes.txt")
    write("not: ours", ".hidden.yaml")

    assert [manifest.subject for manifest in load_manifests(tmp_path)] == ["Catalog lake", "Realm acme"]


def test_file_that_is_named_twice_is_read_once(write: Write, tmp_path: Path) -> None:
    assert len(load_manifests([write(REALM), tmp_path, tmp_path / "." / "x.yaml"])) == 1


def test_empty_documents_and_an_empty_folder_are_nothing(write: Write, tmp_path: Path) -> None:
    assert load_manifests(tmp_path) == ()
    assert len(load_manifests(write(f"---\n# nothing\n---\n{REALM}---\n"))) == 1


def test_path_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such file or folder"):
        load_manifests(tmp_path / "nowhere")


def test_location_beside_the_manifest_becomes_absolute(write: Write, tmp_path: Path) -> None:
    manifest = load_manifests(write(f"{REALM}---\n" + CATALOG.replace("s3://lake/", "./warehouse/")))[1]

    assert isinstance(manifest, CatalogManifest)
    assert manifest.spec.base_location == f"file://{tmp_path}/warehouse/"


def test_catalog_may_name_a_realm_that_the_store_knows(write: Write) -> None:
    file = write(CATALOG)

    by_resource = load_manifests(file, known_realms={RealmId("other"): ResourceName("default", "acme")})
    by_id = load_manifests(file, known_realms={RealmId("acme"): None})

    ids = [manifest.spec.realm_id for manifest in (*by_resource, *by_id)]
    assert ids == ["other", "acme"]


def test_short_hold_is_accepted_where_the_unsafe_setting_is_on(write: Write) -> None:
    [manifest] = load_manifests(write(REALM + "spec: {purgeHold: 5s}"), settings=Settings(unsafe_short_graces=True))

    assert isinstance(manifest, RealmManifest)
    assert manifest.spec.purge_hold_seconds == 5.0


def test_quickstart_is_valid_with_the_settings_of_the_demo() -> None:
    manifests = load_manifests(EXAMPLES / "quickstart", settings=Settings(unsafe_short_graces=True))

    assert [manifest.subject for manifest in manifests] == ["Realm acme", "Catalog lake", "Realm sandbox"]


def test_quickstart_is_refused_with_the_settings_of_production() -> None:
    with pytest.raises(ManifestError) as refused:
        load_manifests(EXAMPLES / "quickstart")

    assert [fault.path for fault in refused.value.faults] == ["spec.purgeHold"]
