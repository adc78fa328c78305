"""What a manifest may declare of principals, roles, grants and a connection, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.catalogs import CatalogGrant
from headwater.reconcile import CatalogManifest, RealmManifest, load_manifests
from headwater.reconcile.declared_access import DeclaredConnection, DeclaredPrincipal, DeclaredRole

Faults = Callable[[str], list[str]]
ROOT = Path(__file__).parents[2]


def test_example_declares_access() -> None:
    realm, catalog = load_manifests(ROOT / "examples" / "kubernetes" / "access.yaml")

    assert isinstance(realm, RealmManifest)
    assert isinstance(catalog, CatalogManifest)
    assert realm.spec.principals[0] == DeclaredPrincipal(name="analyst", roles=("analysts",))
    assert realm.spec.roles[1] == DeclaredRole(name="watchers", privileges=("TASK_READ",))
    assert CatalogGrant(privilege="TABLE_READ_DATA", on="namespace", path=("sales",)) in catalog.spec.roles[0].all_grants()
    assert catalog.spec.connection == DeclaredConnection(roles=("loader",), uri="https://headwater.example.org")


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("principals: [{}]", "spec.principals[0].name: is missing"),
        (
            "principals: [{name: root}]",
            "spec.principals[0].name: root is every realm's own, and no manifest changes it; declare a principal of another name",
        ),
        (
            "principals: [{name: connection.lake}]",
            'spec.principals[0].name: names that begin with "connection." belong to the connections of Catalogs; take another one',
        ),
        (
            "principals: [{name: a b}]",
            'spec.principals[0].name: "a b" is not the name of a principal; use letters, digits and . _ @ - (at most 128, '
            "a letter or digit first)",
        ),
        (
            "principals: [{name: etl}, {name: etl}]",
            'spec.principals[1]: another principal is called "etl", in line 6; give each a name of its own',
        ),
        (
            "principals: [{name: etl, roles: [reader]}]",
            'spec.principals[0].roles[0]: "reader" is no role that this Realm declares in spec.roles; there is none',
        ),
        (
            "principals: [{name: etl, rolls: []}]",
            "spec.principals[0].rolls: unknown field; did you mean roles?",
        ),
        (
            "roles: [{name: service_admin}]",
            "spec.roles[0].name: service_admin is Headwater's own, and no manifest changes it; declare a role of another name",
        ),
        (
            "roles: [{name: r, privileges: [TASK_READ, TASK_READ]}]",
            'spec.roles[0].privileges[1]: "TASK_READ" stands here twice; write it once',
        ),
        ("roles: [{name: r, privileges: [task-read]}]", 'spec.roles[0].privileges[0]: write TASK_READ, not "task-read"'),
        (
            "roles: [{name: r, privileges: [TASK_WRITE]}]",
            "spec.roles[0].privileges[0]: 'TASK_WRITE' is no privilege: name one of TASK_READ, TASK_MANAGE",
        ),
    ],
)
def test_declaration_of_a_realm_that_is_wrong_is_told(realm_faults: Faults, spec: str, wanted: str) -> None:
    assert realm_faults(spec) == [f"x.yaml:6: {wanted}"]


CATALOG = "realm: acme\nstorage: {baseLocation: s3://lake/}\n"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            "roles: [{name: catalog_admin}]",
            "spec.roles[0].name: catalog_admin is Headwater's own, and no manifest changes it; ",
        ),
        ("roles: [{name: r, grantedTo: [service_admin]}]", "spec.roles[0].grantedTo[0]: service_admin is Headwater's own"),
        ("roles: [{name: r, grants: [{}]}]", "spec.roles[0].grants[0].privileges: is missing"),
        (
            "roles: [{name: r, grants: [{privileges: [TASK_READ]}]}]",
            "spec.roles[0].grants[0].privileges[0]: TASK_READ cannot be granted on a whole catalog; it can on a realm",
        ),
        (
            "roles: [{name: r, grants: [{privileges: [VIEW_LIST], table: [t]}]}]",
            "spec.roles[0].grants[0].privileges[0]: VIEW_LIST cannot be granted on a table; it can on a realm, a whole catalog, "
            "a namespace or a view",
        ),
        (
            "roles: [{name: r, grants: [{privileges: [TABLE_LIST], table: [t], namespace: [n]}]}]",
            "spec.roles[0].grants[0]: has namespace and table; a grant is on one of namespace, table, view, reference, "
            "or on the whole catalog without any",
        ),
        (
            "roles: [{name: r, grants: [{privileges: [REFERENCE_LIST], reference: '*', references: '*'}]}]",
            "spec.roles[0].grants[0].references: is for grants on content; the pattern of this one is in reference",
        ),
        (
            "roles: [{name: r, grants: [{privileges: [TABLE_LIST], references: 'a b'}]}]",
            'spec.roles[0].grants[0].references: "a b" is no pattern of branches and tags; use * for any characters',
        ),
        (
            "roles: [{name: r, grants: [{privileges: [TABLE_LIST], table: []}]}]",
            "spec.roles[0].grants[0].table: expected a list with at least 1, this one has 0",
        ),
        (
            "roles: [{name: r, grants: [{privileges: [TABLE_LIST], table: [.]}]}]",
            'spec.roles[0].grants[0].table: an element of a key must not be "."',
        ),
        ("connection: {}", "spec.connection.roles: is missing"),
        (
            "connection: {roles: [r]}",
            'spec.connection.roles[0]: "r" is no role that this Catalog declares in spec.roles; there is none',
        ),
        (
            "connection: {roles: [], uri: lake.example.org}",
            'spec.connection.uri: "lake.example.org" is no URL of a server; write for example https://headwater.example.org',
        ),
        ("connection: {roles: [], secretName: A_b}", 'spec.connection.secretName: "A_b" is not the name of a resource'),
    ],
)
def test_declaration_of_a_catalog_that_is_wrong_is_told(catalog_faults: Faults, spec: str, wanted: str) -> None:
    [told] = catalog_faults(CATALOG + spec)

    assert told.startswith(f"x.yaml:13: {wanted}")


def test_all_faults_of_a_declaration_are_told_at_once(realm_faults: Faults) -> None:
    told = realm_faults(
        "principals: [{name: root}, {name: etl, roles: [x], disabled: 1}]\nroles: [{name: r, privileges: [NONE]}]"
    )

    assert len(told) == 4
