"""Principals, roles and grants that manifests declare: made, corrected, reported, and taken away."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.utils.config import Config

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.access import AccessReader, RoleHolder
from headwater.catalogs import CatalogRoles, Catalogs
from headwater.errors import RefusedError
from headwater.realms import (
    Credentials,
    RealmRegistry,
    RealmState,
    assign_principal_role,
    create_principal,
    create_principal_role,
    disable_principal,
    find_principal,
    grant_on_realm,
    hash_credentials,
    list_principal_roles,
    log_in,
    new_credentials,
    read_realm_grants,
)
from headwater.reconcile import CatalogManifest, FileCredentials, ManagerIdentity, RealmManifest, ReconcileOutcome, reconcile
from headwater.reconcile.declared_access import (
    ACCESS,
    DeclaredCatalogRole,
    DeclaredConnection,
    DeclaredGrant,
    DeclaredPrincipal,
    DeclaredRole,
)
from headwater.reconcile.manifests import CONFIRM_PURGE, DELETE, ROTATE_CREDENTIALS, ROTATE_PRINCIPAL, as_deletion
from headwater.store import RealmId

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]
Apply = Callable[..., list[ReconcileOutcome]]

ACME = RealmId("acme")
READERS = DeclaredRole(name="readers", privileges=("TASK_READ",))
ETL = DeclaredPrincipal(name="etl", roles=("readers",))
SALES = DeclaredCatalogRole(
    name="sales", granted_to=("readers",), grants=(DeclaredGrant(privileges=("TABLE_READ_DATA",), namespace=("sales",)),)
)
CONNECTION = DeclaredConnection(roles=("sales",), uri="https://lake.example.org")
SERVER = "http://headwater-server:443"
HOLD = 60.0


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.realms.client_credentials._COST", 16)


def content(sink: FileCredentials, principal: str) -> dict[str, str]:
    return dict(json.loads(Path(sink.of_principal(principal).place(ACME)).read_text()))


def kept(sink: FileCredentials, principal: str) -> Credentials:
    """The credentials as a client that is told them sends them, without the realm."""
    client, _, secret = content(sink, principal)["credential"].removeprefix("acme.").partition(":")
    return Credentials(client, secret)


def has_file(sink: FileCredentials, principal: str) -> bool:
    return Path(sink.of_principal(principal).place(ACME)).exists()


def roles_of(store: Store, principal: str) -> list[str]:
    found = find_principal(RealmRegistry(store), "acme", principal)
    assert found is not None
    grants = read_realm_grants(RealmRegistry(store).open_realm("acme"))
    return [role.name for role in grants.roles_of(found.entity)]


def privileges_of(store: Store, role: str) -> list[str]:
    grants = read_realm_grants(RealmRegistry(store).open_realm("acme"))
    found = grants.named(role)
    assert found is not None
    return grants.privileges_of(found.entity)


def is_disabled(store: Store, principal: str) -> bool:
    found = find_principal(RealmRegistry(store), "acme", principal)
    assert found is not None
    return found.disabled is not None


def rules_of(store: Store, principal: str) -> list[str]:
    """What a principal may do in the catalog, in words."""
    found = find_principal(RealmRegistry(store), "acme", principal)
    assert found is not None
    rows = RealmRegistry(store).open_realm("acme")
    lake = Catalogs(rows).read_catalog("lake")
    return sorted(map(str, AccessReader(rows).read_rules(RoleHolder(found.entity), lake).rules))


def test_declared_principal_logs_in_with_what_is_kept(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    [outcome] = apply(make_realm(principals=(ETL,), roles=(READERS,)))

    assert outcome.is_settled
    assert log_in(RealmRegistry(store), "acme", kept(sink, "etl")).name == "etl"
    assert roles_of(store, "etl") == ["readers"]
    assert privileges_of(store, "readers") == ["TASK_READ"]


def test_file_of_a_principal_tells_what_clients_take(apply: Apply, make_realm: MakeRealm, sink: FileCredentials) -> None:
    apply(make_realm(principals=(DeclaredPrincipal(name="etl"),)))
    found = content(sink, "etl")

    assert found.keys() == {"realm", "principal", "clientId", "clientSecret", "credential"}
    assert found["clientId"].startswith("acme.")
    assert found["credential"] == f"{found['clientId']}:{found['clientSecret']}"


def test_second_pass_changes_nothing(apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog) -> None:
    manifests = (make_realm(principals=(ETL,), roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    apply(*manifests)
    again = apply(*manifests)

    assert [step for outcome in again for step in outcome.steps] == []
    assert all(outcome.is_settled for outcome in again)


def test_pass_without_declared_access_reads_none(
    settings: Settings, clock: FakeClock, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    backend = FaultyBackend(open_store("memory://").backend)
    store = Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any
    read: list[str] = []
    manifests = (make_realm(), make_catalog())
    reconcile(store, manifests, credentials=sink, manager=ManagerIdentity(cluster="here"))
    find_references = backend.backend.read_references

    def spy(realm: object, names: list[str], *more: object, **others: object) -> object:
        read.extend(names)
        return find_references(realm, names, *more, **others)  # type: ignore[arg-type]  # passed on as it is

    backend.backend.read_references = spy  # type: ignore[method-assign,assignment]  # sees what is read
    reconcile(store, manifests, credentials=sink, manager=ManagerIdentity(cluster="here"))

    assert read
    assert not [name for name in read if name in ("principals", "principal-roles", "grants") or name.endswith("/roles")]


def test_disabled_principal_keeps_its_credentials(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    apply(make_realm(principals=(replace(ETL, disabled=True),), roles=(READERS,)))
    credentials = kept(sink, "etl")
    with pytest.raises(RefusedError):
        log_in(RealmRegistry(store), "acme", credentials)
    apply(make_realm(principals=(ETL,), roles=(READERS,)))

    assert log_in(RealmRegistry(store), "acme", credentials).name == "etl"


def test_principal_that_is_named_no_more_is_disabled(
    store: Store, clock: FakeClock, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    apply(make_realm(principals=(ETL,), roles=(READERS,)))
    apply(make_realm())

    assert is_disabled(store, "etl")
    clock.advance(HOLD - 1)
    apply(make_realm())
    assert has_file(sink, "etl")
    clock.advance(2)
    apply(make_realm())
    assert not has_file(sink, "etl")
    assert apply(make_realm())[0].steps == ()
    assert [role.name for role in list_principal_roles(RealmRegistry(store), "acme")] == ["service_admin"]


@pytest.mark.parametrize("is_late", [False, True])
def test_principal_that_is_named_again_in_time_has_its_credentials_again(
    store: Store, clock: FakeClock, apply: Apply, make_realm: MakeRealm, sink: FileCredentials, *, is_late: bool
) -> None:
    apply(make_realm(principals=(ETL,), roles=(READERS,)))
    before = kept(sink, "etl")
    apply(make_realm())
    clock.advance(HOLD + 1 if is_late else HOLD - 1)
    apply(make_realm())
    apply(make_realm(principals=(ETL,), roles=(READERS,)))

    assert log_in(RealmRegistry(store), "acme", kept(sink, "etl")).name == "etl"
    assert (kept(sink, "etl") == before) is not is_late
    clock.advance(2 * HOLD)
    apply(make_realm(principals=(ETL,), roles=(READERS,)))
    assert log_in(RealmRegistry(store), "acme", kept(sink, "etl")).name == "etl"


def test_kept_credentials_go_where_drift_is_reported_alone(
    clock: FakeClock, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    apply(make_realm(principals=(replace(ETL, roles=()),), drift_policy="Report"))
    apply(make_realm(drift_policy="Report"))
    clock.advance(HOLD + 1)
    apply(make_realm(drift_policy="Report"))

    assert not has_file(sink, "etl")


def test_kept_credentials_go_with_their_realm(
    store: Store, clock: FakeClock, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    apply(make_realm(principals=(replace(ETL, roles=()),)))
    apply(make_realm())
    realms = RealmRegistry(store)
    for state in (RealmState.INACTIVE, RealmState.PURGING, RealmState.PURGED):
        clock.advance(HOLD + 1 if state is RealmState.PURGING else 0)
        realms.move_realm(realms.read_realm("acme"), state)
    while store.backend.delete_realm(realms.read_realm("acme").key, 1000):
        pass
    apply(as_deletion(make_realm(deletion_policy="Purge")))

    assert realms.find_realm("acme") is None
    assert list(sink.folder.iterdir()) == []


def test_access_that_a_person_made_is_left_alone(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm())
    realms = RealmRegistry(store)
    create_principal(realms, "acme", "hand", hash_credentials(new_credentials()))
    create_principal_role(realms, "acme", "made")
    assign_principal_role(realms, "acme", "made", "hand")
    apply(make_realm(principals=(ETL,), roles=(READERS,)))
    apply(make_realm())

    assert roles_of(store, "hand") == ["made"]
    assert not is_disabled(store, "hand")


def test_principal_that_a_person_made_keeps_its_credentials(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    apply(make_realm())
    theirs = new_credentials()
    create_principal(RealmRegistry(store), "acme", "etl", hash_credentials(theirs))
    [outcome] = apply(make_realm(principals=(ETL,), roles=(READERS,)))

    assert log_in(RealmRegistry(store), "acme", theirs).name == "etl"
    assert [report.reason for report in outcome.reports] == ["CredentialsElsewhere"]
    assert not has_file(sink, "etl")
    assert roles_of(store, "etl") == ["readers"]


def test_rotation_takes_over_a_principal_that_a_person_made(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    apply(make_realm())
    create_principal(RealmRegistry(store), "acme", "etl", hash_credentials(new_credentials()))
    [outcome] = apply(make_realm({ROTATE_PRINCIPAL: "etl:1"}, principals=(ETL,), roles=(READERS,)))

    assert log_in(RealmRegistry(store), "acme", kept(sink, "etl")).name == "etl"
    assert outcome.reports == ()


def test_principal_is_rotated_once_for_each_value(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    seen = []
    for word in ("1", "1", "2"):
        apply(make_realm({ROTATE_PRINCIPAL: f"etl:{word}"}, principals=(ETL,), roles=(READERS,)))
        seen.append(kept(sink, "etl"))

    assert seen[0] == seen[1] != seen[2]
    assert log_in(RealmRegistry(store), "acme", seen[2]).name == "etl"


def test_rotation_of_what_is_not_declared_is_told(apply: Apply, make_realm: MakeRealm) -> None:
    [outcome] = apply(make_realm({ROTATE_PRINCIPAL: "nobody:1"}))

    assert [report.reason for report in outcome.reports] == ["RotationWaits"]


def drift(store: Store) -> None:
    realms = RealmRegistry(store)
    grant_on_realm(realms, "acme", "readers", "CATALOG_CREATE")
    assign_principal_role(realms, "acme", "service_admin", "etl")
    disable_principal(realms, "acme", "etl")


def test_drift_is_put_right(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm(principals=(ETL,), roles=(READERS,)))
    drift(store)
    apply(make_realm(principals=(ETL,), roles=(READERS,)))

    assert privileges_of(store, "readers") == ["TASK_READ"]
    assert roles_of(store, "etl") == ["readers"]
    assert not is_disabled(store, "etl")


def test_drift_is_reported_alone_where_that_is_the_policy(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm(principals=(ETL,), roles=(READERS,), drift_policy="Report"))
    drift(store)
    [outcome] = apply(make_realm(principals=(ETL,), roles=(READERS,), drift_policy="Report"))

    assert "CATALOG_CREATE" in outcome.reports[0].message
    assert outcome.steps == ()
    assert privileges_of(store, "readers") == ["CATALOG_CREATE", "TASK_READ"]


def test_changed_declaration_is_followed_where_drift_is_reported(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm(roles=(READERS,), drift_policy="Report"))
    apply(make_realm(roles=(replace(READERS, privileges=()),), drift_policy="Report"))

    assert privileges_of(store, "readers") == []


def test_inactive_realm_tells_that_access_waits(apply: Apply, make_realm: MakeRealm) -> None:
    [outcome] = apply(make_realm(principals=(ETL,), roles=(READERS,), state="Inactive"))

    assert [report.reason for report in outcome.reports] == ["AccessWaits"]


def test_retained_realm_keeps_its_access(store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials) -> None:
    apply(make_realm(principals=(ETL,), roles=(READERS,)))
    apply(make_realm({DELETE: "true"}, principals=(ETL,), roles=(READERS,)))

    assert log_in(RealmRegistry(store), "acme", kept(sink, "etl")).name == "etl"


def test_no_secret_of_a_principal_is_told(
    apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, store: Store, sink: FileCredentials
) -> None:
    outcomes = apply(make_realm(principals=(ETL,), roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    secrets = [content(sink, name)["credential"].rpartition(":")[2] for name in ("etl", "connection.lake")]
    told = str(outcomes) + str(RealmRegistry(store).read_realm("acme"))

    assert not [secret for secret in secrets if secret in told]


def test_catalog_role_is_given_to_a_principal_role(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    apply(make_realm(principals=(ETL,), roles=(replace(READERS, privileges=()),)), make_catalog(roles=(SALES,)))

    assert rules_of(store, "etl") == [
        "TABLE_READ_DATA on namespace sales of catalog lake on the default branch through readers and sales"
    ]


def test_grants_in_a_catalog_are_put_right(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    manifests = (make_realm(principals=(ETL,), roles=(READERS,)), make_catalog(roles=(SALES,)))
    apply(*manifests)
    before = rules_of(store, "etl")
    rows = RealmRegistry(store).open_realm("acme")
    roles = CatalogRoles(rows, Catalogs(rows).read_catalog("lake"))
    roles.put_grants("sales", DeclaredGrant(privileges=("CATALOG_MANAGE_CONTENT",)).grants())
    roles.remove_grants("sales", SALES.all_grants())
    apply(*manifests)

    assert rules_of(store, "etl") == before


def test_catalog_role_that_is_named_no_more_is_dropped(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,)))
    rows = RealmRegistry(store).open_realm("acme")
    roles = CatalogRoles(rows, Catalogs(rows).read_catalog("lake"))
    roles.create_role("hand")
    apply(make_realm(roles=(READERS,)), make_catalog())

    assert [role.name for role in roles.list_roles()] == ["catalog_admin", "hand"]


def test_catalog_waits_for_a_principal_role(apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog) -> None:
    apply(make_realm())
    [outcome] = apply(make_catalog(roles=(SALES,)))
    later = apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,)))

    assert [wait.reason for wait in outcome.waits] == ["RoleMissing"]
    assert all(each.is_settled for each in later)


def test_connection_has_all_that_a_workload_needs(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    found = content(sink, "connection.lake")

    assert found["uri"] == "https://lake.example.org/iceberg"
    assert found["warehouse"] == "acme/lake"
    assert found["oauth2-server-uri"] == "https://lake.example.org/iceberg/v1/oauth/tokens"
    assert found["credential"] == f"{found['client-id']}:{found['client-secret']}"
    assert f"spark.sql.catalog.lake.credential {found['credential']}\n" in found["spark-defaults.conf"]
    assert log_in(RealmRegistry(store), "acme", kept(sink, "connection.lake")).name == "connection.lake"


def test_pyiceberg_is_configured_by_a_connection(
    apply: Apply,
    make_realm: MakeRealm,
    make_catalog: MakeCatalog,
    sink: FileCredentials,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    found = content(sink, "connection.lake")
    (tmp_path / ".pyiceberg.yaml").write_text(found[".pyiceberg.yaml"])
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    read = Config().get_catalog_config("lake")

    names = ("uri", "warehouse", "credential", "oauth2-server-uri")
    assert read == {"type": "rest", **{name: found[name] for name in names}}


def test_connection_may_do_what_its_roles_may_and_nothing_else(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    manifests = (make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    apply(*manifests)
    realms = RealmRegistry(store)
    grant_on_realm(realms, "acme", "connection.lake", "SERVICE_MANAGE_ACCESS")
    assign_principal_role(realms, "acme", "service_admin", "connection.lake")
    rows = realms.open_realm("acme")
    role = next(role for role in list_principal_roles(realms, "acme") if role.name == "connection.lake")
    CatalogRoles(rows, Catalogs(rows).read_catalog("lake")).assign_role("catalog_admin", role.entity)
    apply(*manifests)

    assert rules_of(store, "connection.lake") == [
        "TABLE_READ_DATA on namespace sales of catalog lake on the default branch through connection.lake and sales"
    ]


def test_connection_follows_the_server(
    apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    manifests = (make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=replace(CONNECTION, uri="")))
    apply(*manifests, server_url=SERVER)
    first = content(sink, "connection.lake")
    apply(*manifests, server_url="https://other")
    second = content(sink, "connection.lake")

    assert first["uri"] == f"{SERVER}/iceberg"
    assert second["uri"] == "https://other/iceberg"
    assert second["credential"] == first["credential"]


def test_connection_to_nowhere_is_told(
    apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    manifest = make_catalog(roles=(SALES,), connection=replace(CONNECTION, uri=""))
    _, outcome = apply(make_realm(roles=(READERS,)), manifest)

    assert [refusal.reason for refusal in outcome.refused] == ["ServerUnknown"]
    assert not has_file(sink, "connection.lake")


def test_connection_that_is_named_no_more_is_taken_away(
    store: Store, clock: FakeClock, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    apply(make_catalog(roles=(SALES,)))

    assert is_disabled(store, "connection.lake")
    assert has_file(sink, "connection.lake")
    clock.advance(HOLD + 1)
    apply(make_catalog(roles=(SALES,)))
    assert not has_file(sink, "connection.lake")
    assert "connection.lake" not in [role.name for role in list_principal_roles(RealmRegistry(store), "acme")]


def test_connection_made_again_works_again(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    before = kept(sink, "connection.lake")
    apply(make_catalog(roles=(SALES,)))
    apply(make_catalog(roles=(SALES,), connection=CONNECTION))

    assert kept(sink, "connection.lake") == before
    assert log_in(RealmRegistry(store), "acme", kept(sink, "connection.lake")).name == "connection.lake"
    assert len(rules_of(store, "connection.lake")) == 1


def test_connection_is_not_given_to_a_principal_of_a_person(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    apply(make_realm(roles=(READERS,)))
    theirs = new_credentials()
    create_principal(RealmRegistry(store), "acme", "connection.lake", hash_credentials(theirs))
    [outcome] = apply(make_catalog(roles=(SALES,), connection=CONNECTION))

    assert [refusal.reason for refusal in outcome.refused] == ["ConnectionTaken"]
    assert log_in(RealmRegistry(store), "acme", theirs).name == "connection.lake"
    assert rules_of(store, "connection.lake") == []


def test_connection_is_rotated_once_for_each_word(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    apply(make_realm(roles=(READERS,)))
    seen = []
    for word in ("1", "1", "2"):
        apply(make_catalog({ROTATE_CREDENTIALS: word}, roles=(SALES,), connection=CONNECTION))
        seen.append(kept(sink, "connection.lake"))

    assert seen[0] == seen[1] != seen[2]
    assert log_in(RealmRegistry(store), "acme", seen[2]).name == "connection.lake"


def test_catalog_that_is_deleted_takes_its_connection_along(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, sink: FileCredentials
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,), connection=CONNECTION))
    gone = {DELETE: "true", CONFIRM_PURGE: "acme/lake"}
    apply(make_catalog(gone, roles=(SALES,), connection=CONNECTION, deletion_policy="Purge"))

    assert is_disabled(store, "connection.lake")
    assert not has_file(sink, "connection.lake")


def test_record_of_a_catalog_goes_with_its_access(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    apply(make_realm(roles=(READERS,)), make_catalog(roles=(SALES,)))
    made = Catalogs(RealmRegistry(store).open_realm("acme")).read_catalog("lake").acted
    apply(make_catalog())
    left = Catalogs(RealmRegistry(store).open_realm("acme")).read_catalog("lake").acted

    assert ACCESS in made
    assert left == {}
