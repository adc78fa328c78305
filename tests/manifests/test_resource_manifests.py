"""Resources as Kubernetes gives them, read by the same rules as files."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.reconcile import CatalogManifest, ManifestError, RealmManifest, read_manifest
from headwater.settings import Settings
from headwater.store import RealmId

LAKE = {"realm": "acme", "storage": {"baseLocation": "s3://lake/"}}


def body(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    named = {"name": "x", "namespace": "team", "uid": "1-2", "generation": 3, "managedFields": [], **metadata}
    return {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": named, "spec": spec, "status": {"state": "?"}}


def faults(value: dict[str, Any]) -> str:
    with pytest.raises(ManifestError) as caught:
        read_manifest(value, settings=Settings())
    return str(caught.value)


def test_resource_reads_as_its_file_does() -> None:
    spec = {"realmId": "acme", "purgeHold": "2d", "retention": {"content": {"commits": 7}}, "deletionProtection": True}
    manifest = read_manifest(body("Realm", spec), settings=Settings())

    assert isinstance(manifest, RealmManifest)
    assert str(manifest.metadata.resource) == "team/x"
    assert (manifest.spec.realm_id, manifest.spec.purge_hold_seconds) == ("acme", 172800.0)
    assert (manifest.spec.retention.content_commits, manifest.spec.deletion_protection) == (7, True)


def test_catalog_belongs_to_the_realm_that_its_reader_names() -> None:
    manifest = read_manifest(body("Catalog", LAKE), settings=Settings(), realm_id=RealmId("acme-prod"))

    assert isinstance(manifest, CatalogManifest)
    assert (manifest.spec.realm, manifest.spec.realm_id, manifest.spec.name) == ("acme", "acme-prod", "x")


def test_resource_with_a_deletion_time_is_a_deletion() -> None:
    manifest = read_manifest(body("Realm", {}, deletionTimestamp="2026-11-22T10:00:00Z"), settings=Settings())

    assert manifest.metadata.is_deletion


def test_annotations_of_others_are_not_read() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": " ", "headwater.dev/run-now": "gc"}
    manifest = read_manifest(body("Realm", {}, annotations=annotations), settings=Settings())

    assert manifest.metadata.annotations == {"headwater.dev/run-now": "gc"}


@pytest.mark.parametrize(
    ("kind", "spec", "annotations", "wanted"),
    [
        ("Realm", {"stat": "Active"}, {}, "spec.stat: unknown field; did you mean state?"),
        ("Realm", {"purgeHold": 5}, {}, "spec.purgeHold: 5 is not a duration; write for example 5s"),
        (
            "Realm",
            {"retention": {"content": {"commits": True}}},
            {},
            "spec.retention.content.commits: expected a whole number, not true",
        ),
        ("Realm", {}, {"headwater.dev/delete": "true"}, "is for files; here a resource is deleted by kubectl delete"),
        (
            "Catalog",
            {**LAKE, "storage": {"baseLocation": "./lake"}},
            {},
            '"./lake" is beside no file here; write the whole URL',
        ),
        ("Catalog", {"storage": {"baseLocation": "s3://lake/"}}, {}, "spec.realm: is missing"),
        ("Catalog", [], {}, "spec: expected a mapping, not a list"),
    ],
)
def test_fault_names_its_field_and_what_would_be_right(kind: str, spec: Any, annotations: dict[str, str], wanted: str) -> None:
    assert wanted in faults(body(kind, spec, annotations=annotations))


GONE = {"deletionTimestamp": "2026-11-22T10:00:00Z"}


@pytest.mark.parametrize(
    ("kind", "spec", "annotations"),
    [
        ("Realm", {"maintenance": {"timeZone": "Europe/Berln"}}, {}),
        ("Realm", {"nonsense": 1, "purgeHold": "1s"}, {}),
        ("Realm", {}, {"headwater.dev/delete": "true", "headwater.dev/adpt": "x"}),
        ("Catalog", {"realm": "acme", "storage": {"baseLocation": "./x"}, "imports": [{}]}, {"headwater.dev/nonsense": "x"}),
    ],
)
def test_resource_can_be_deleted_whatever_else_is_wrong(kind: str, spec: dict[str, Any], annotations: dict[str, str]) -> None:
    manifest = read_manifest(body(kind, spec, annotations=annotations, **GONE), settings=Settings())

    assert manifest.metadata.is_deletion
    assert manifest.spec.deletion_policy == "Retain"


def test_deletion_policy_is_read_from_a_resource_that_is_wrong() -> None:
    spec = {"deletionPolicy": "Purge", "deletionProtection": True, "purgeHold": "2d", "nonsense": 1}
    given = {"headwater.dev/confirm-purge": "x", "headwater.dev/run-now": "gc"}
    manifest = read_manifest(body("Realm", spec, annotations=given, **GONE), settings=Settings())

    assert isinstance(manifest, RealmManifest)
    assert (manifest.spec.deletion_policy, manifest.spec.deletion_protection) == ("Purge", True)
    assert manifest.spec.purge_hold_seconds == 172800.0
    assert manifest.metadata.annotations == {"headwater.dev/delete": "true", "headwater.dev/confirm-purge": "x"}


def test_purge_whose_hold_cannot_be_read_is_no_manifest() -> None:
    assert "spec.purgeHold" in faults(body("Realm", {"deletionPolicy": "Purge", "purgeHold": "soon"}, **GONE))
