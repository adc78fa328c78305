"""The plan for roles, principals and grants: pure functions from what a manifest declares and what the store has to actions.

What a manifest declares is made to be so exactly: a declared role has the declared privileges and no others, a declared principal the
declared roles. What it does not name is left alone, unless the record says that its resource made it: then the principal is disabled and
the role dropped. Credentials are kept for the realm's purge hold, and a principal that is declared again before has them again. The record
is written before anything is made, and again when everything is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from headwater.catalogs import CatalogDefinition
from headwater.clock import Micros
from headwater.realms import Realm, RealmState
from headwater.reconcile import access_actions as access
from headwater.reconcile.access_actions import AccessAction, access_sentence
from headwater.reconcile.actions import Action, RecordHandled, RefuseManifest, ReportDrift, WaitUntil
from headwater.reconcile.connection_form import ConnectionForm
from headwater.reconcile.declared_access import (
    ACCESS,
    AccessRecord,
    DeclaredCatalogRole,
    DeclaredPrincipal,
    DeclaredRole,
    access_digest,
    connection_name,
    read_record,
)
from headwater.reconcile.manifests import (
    ROTATE_CREDENTIALS,
    ROTATE_PRINCIPAL,
    CatalogManifest,
    CatalogSpec,
    RealmManifest,
    RealmSpec,
)
from headwater.reconcile.observed_access import SeenCatalogAccess, SeenCatalogRole, SeenPrincipal, SeenRealmAccess


def plan_realm_access(manifest: RealmManifest, realm: Realm, seen: SeenRealmAccess | None, now: Micros) -> list[Action]:
    """The actions for the principals and principal roles of a realm that its manifest declares.

    seen          None where they were not read: there are none to keep, or the realm is not ACTIVE
    """
    spec, record = manifest.spec, read_record(realm.acted.get(ACCESS))
    digest = access_digest(spec.principals, spec.roles) if spec.principals or spec.roles else ""
    is_new = record.applied != digest
    if seen is None or realm.state is not RealmState.ACTIVE:
        waits = f"principals and roles of realm {realm.id} are made as declared once it is ACTIVE; it is {realm.state}"
        return [ReportDrift("AccessWaits", waits)] if is_new and realm.state is not RealmState.ACTIVE else []
    steps = list(_realm_steps(spec, record, seen))
    foreign = _foreign_principals(manifest, realm, record, seen)
    ended = _ended(record, now)
    removed = [
        access.RemoveCredentials(name) for name in ended if name not in {principal.name for principal in spec.principals}
    ]
    if not is_new and spec.drift_policy == "Report":
        return [*_recorded(record, _without_kept(record, ended), removed), *_report(steps, realm), *foreign]
    return [*_recorded(record, _realm_record(spec, record, seen, digest, ended), [*steps, *removed]), *foreign]


def _ended(record: AccessRecord, now: Micros) -> list[str]:
    """Whose credentials were kept for long enough after they ceased to be declared."""
    return sorted(name for name, until in record.kept.items() if until <= now)


def _without_kept(record: AccessRecord, names: Iterable[str]) -> AccessRecord:
    kept = {name: until for name, until in record.kept.items() if name not in set(names)}
    return msgspec.structs.replace(record, kept=kept)


def _recorded(record: AccessRecord, done: AccessRecord, steps: Sequence[AccessAction]) -> list[AccessAction]:
    """The steps between two records: of what is about to be made, and of what holds then."""
    begun = record.with_made(done.roles, set(done.principals) - set(record.retired))
    first = [access.RecordAccess(begun)] if steps and begun != record else []
    last = [access.RecordAccess(done)] if done != (begun if first else record) else []
    return [*first, *steps, *last]


def _realm_record(
    spec: RealmSpec, record: AccessRecord, seen: SeenRealmAccess, digest: str, ended: Iterable[str]
) -> AccessRecord:
    """The record once everything is as declared, and what was kept for long enough is removed."""
    roles, principals = {role.name for role in spec.roles}, {principal.name for principal in spec.principals}
    mine = {*record.principals, *record.retired, *(principals - seen.principals.keys())}
    return AccessRecord(
        applied=digest,
        roles=tuple(sorted(roles & {*record.roles, *(roles - seen.roles.keys())})),
        principals=tuple(sorted(principals & mine)),
        retired=tuple(sorted(mine - principals)),
        kept=_kept(record, {*record.principals} - principals, seen.keep_until, without={*principals, *ended}),
    )


def _kept(record: AccessRecord, retired: Iterable[str], until: Micros, *, without: Iterable[str]) -> dict[str, Micros]:
    """Until when credentials are kept, with those that cease to be declared now."""
    kept = {**dict.fromkeys(retired, until), **record.kept}
    return {name: kept[name] for name in sorted(kept.keys() - set(without))}


def _realm_steps(spec: RealmSpec, record: AccessRecord, seen: SeenRealmAccess) -> Iterator[AccessAction]:
    """First what takes rights away, then what gives them."""
    declared = {principal.name for principal in spec.principals}
    for name in record.principals:
        if name not in declared and name in seen.principals:
            yield access.RetirePrincipal(name, seen.keep_until)
    roles = {role.name for role in spec.roles}
    for name in record.roles:
        if name not in roles and name in seen.roles:
            yield access.DropPrincipalRole(name)
    for role in spec.roles:
        yield from _role_steps(role, seen.roles.get(role.name))
    for principal in spec.principals:
        is_retired = principal.name in record.retired
        yield from _principal_steps(principal, seen.principals.get(principal.name), is_retired=is_retired)


def _role_steps(role: DeclaredRole, held: frozenset[str] | None) -> Iterator[AccessAction]:
    if held is None:
        yield access.CreatePrincipalRole(role.name)
    has, wanted = held or frozenset(), set(role.privileges)
    if extra := has - wanted:
        yield access.RevokeOnRealm(role.name, tuple(sorted(extra)))
    if missing := wanted - has:
        yield access.GrantOnRealm(role.name, tuple(sorted(missing)))


def _principal_steps(principal: DeclaredPrincipal, held: SeenPrincipal | None, *, is_retired: bool) -> Iterator[AccessAction]:
    is_provided = held is None or is_retired
    if is_provided:
        yield access.ProvidePrincipal(principal.name)
    is_disabled = held is not None and held.is_disabled and not is_provided
    if principal.disabled and not is_disabled:
        yield access.DisablePrincipal(principal.name)
    yield from _membership(principal.name, set(principal.roles), held)
    if is_disabled and not principal.disabled:
        yield access.EnablePrincipal(principal.name)


def _membership(principal: str, wanted: set[str], held: SeenPrincipal | None) -> Iterator[AccessAction]:
    has = frozenset[str]() if held is None else held.roles
    for role in sorted(has - wanted):
        yield access.UnassignPrincipalRole(principal, role)
    for role in sorted(wanted - has):
        yield access.AssignPrincipalRole(principal, role)


def _report(steps: Iterable[AccessAction], realm: Realm) -> list[Action]:
    told = "; ".join(access_sentence(step, f"realm {realm.id}") for step in steps)
    if not told:
        return []
    return [
        ReportDrift("Drifted", f"access to realm {realm.id} is not as its manifest says, and driftPolicy is Report: to {told}")
    ]


def _foreign_principals(
    manifest: RealmManifest, realm: Realm, record: AccessRecord, seen: SeenRealmAccess
) -> list[ReportDrift]:
    mine = {*record.principals, *record.retired}
    return [
        ReportDrift(
            "CredentialsElsewhere",
            f"principal {principal.name} of realm {realm.id} was made by somebody else, who has its credentials; annotate "
            f"{ROTATE_PRINCIPAL}: {principal.name}:<any word> to have new ones made and kept",
        )
        for principal in manifest.spec.principals
        if principal.name in seen.principals and principal.name not in mine
    ]


def plan_principal_rotation(manifest: RealmManifest, realm: Realm, seen: SeenRealmAccess | None) -> list[Action]:
    """The rotation that the annotation `rotate-principal` asks for, once for each value."""
    asked = manifest.metadata.annotations.get(ROTATE_PRINCIPAL)
    if asked is None:
        return [RecordHandled(ROTATE_PRINCIPAL, None)] if ROTATE_PRINCIPAL in realm.acted else []
    if realm.acted.get(ROTATE_PRINCIPAL) == asked:
        return []
    name, _, token = asked.rpartition(":")
    if name not in {principal.name for principal in manifest.spec.principals}:
        why = f"{ROTATE_PRINCIPAL} names {name}, which is no principal that this Realm declares"
        return [ReportDrift("RotationWaits", why)]
    if seen is None or realm.state is not RealmState.ACTIVE:
        why = f"the credentials of principal {name} of realm {realm.id} are rotated once it is ACTIVE; it is {realm.state}"
        return [ReportDrift("RotationWaits", why)]
    record = read_record(realm.acted.get(ACCESS))
    if name not in seen.principals or name in record.retired:
        return []  # it is made first, and rotated by the next plan
    taken = record.with_made((), {name})
    adopted: list[Action] = [access.RecordAccess(taken)] if taken != record else []
    return [*adopted, access.RotatePrincipal(name, token), RecordHandled(ROTATE_PRINCIPAL, asked)]


def plan_catalog_access(
    manifest: CatalogManifest, catalog: CatalogDefinition, seen: SeenCatalogAccess | None, now: Micros, *, server_url: str
) -> list[Action]:
    """The actions for the roles and the connection of a catalog that its manifest declares.

    seen          None where they were not read: there are none to keep
    server_url    where the catalog is served, unless its manifest says; empty where that is not known
    """
    if seen is None:
        return [RecordHandled(ROTATE_CREDENTIALS, None)] if ROTATE_CREDENTIALS in catalog.acted else []
    spec, record = manifest.spec, read_record(catalog.acted.get(ACCESS))
    refused = _refused_connection(manifest, record, seen, server_url)
    form = None if refused else connection_form(spec, server_url=server_url)
    ended = _ended(record, now)
    wanted = spec.connection.secret_name if spec.connection is not None else None
    removed = [access.RemoveConnection(_former_form(spec.name, secret)) for secret in ended if secret != wanted]
    steps = [*_connection_steps(manifest, record, seen, form), *_catalog_steps(manifest, record, seen, form), *removed]
    done = _catalog_record(spec, record, seen, form, ended, is_refused=bool(refused))
    return [
        *_recorded(record, done, steps),
        *_plan_rotation(manifest, catalog, record, seen, form),
        *refused,
        *_missing_roles(manifest, seen),
    ]


def connection_form(spec: CatalogSpec, *, server_url: str) -> ConnectionForm | None:
    """What the connection of a catalog is to have; None where none is declared."""
    if spec.connection is None:
        return None
    return ConnectionForm(
        principal=connection_name(spec.name),
        catalog=spec.name,
        uri=spec.connection.uri or server_url,
        secret_name=spec.connection.secret_name,
    )


def plan_connection_end(catalog: CatalogDefinition, now: Micros) -> list[Action]:
    """The end of a connection whose catalog is deleted, as its Catalog confirms: nothing of it is kept."""
    record, name = read_record(catalog.acted.get(ACCESS)), connection_name(catalog.name)
    removed = [access.RemoveConnection(_former_form(catalog.name, secret)) for secret in sorted(record.kept)]
    if name not in record.principals:
        return [*removed]
    form = _former_form(catalog.name, record.secret)
    return [access.RetireConnection(form, now), access.RemoveConnection(form), *removed, access.DropPrincipalRole(name)]


def _former_form(catalog: str, secret: str) -> ConnectionForm:
    return ConnectionForm(principal=connection_name(catalog), catalog=catalog, uri="", secret_name=secret)


def _refused_connection(
    manifest: CatalogManifest, record: AccessRecord, seen: SeenCatalogAccess, server_url: str
) -> list[RefuseManifest]:
    connection, name = manifest.spec.connection, connection_name(manifest.spec.name)
    if connection is None:
        return []
    if not (connection.uri or server_url):
        why = (
            f"where catalog {manifest.spec.name} is served is not known: write the server's URL into spec.connection.uri, "
            "or set HEADWATER_OPERATOR_SERVER_URL for all Catalogs"
        )
        return [RefuseManifest("ServerUnknown", why)]
    if seen.connection is not None and name not in (*record.principals, *record.retired):
        why = f"realm {manifest.spec.realm_id} has a principal {name} that somebody else made, so it is not given away"
        return [RefuseManifest("ConnectionTaken", why)]
    return []


def _connection_steps(
    manifest: CatalogManifest, record: AccessRecord, seen: SeenCatalogAccess, form: ConnectionForm | None
) -> Iterator[AccessAction]:
    name = connection_name(manifest.spec.name)
    former = _former_form(manifest.spec.name, record.secret)
    is_made = name in record.principals
    is_moved = form is not None and is_made and record.secret != form.secret_name
    if (manifest.spec.connection is None and is_made) or is_moved:
        yield access.RetireConnection(former, seen.keep_until)
    if manifest.spec.connection is None and is_made and name in seen.principal_roles:
        yield access.DropPrincipalRole(name)
    if form is None:
        return
    held = seen.connection
    is_outdated = record.connection != form.address_digest(manifest.spec.realm_id) or is_moved
    if held is None or held.is_disabled or name in record.retired or is_outdated:
        yield access.ProvideConnection(form)
    yield from _role_steps(DeclaredRole(name=name), seen.principal_roles.get(name))
    yield from _membership(name, {name}, held)


def _catalog_steps(
    manifest: CatalogManifest, record: AccessRecord, seen: SeenCatalogAccess, form: ConnectionForm | None
) -> Iterator[AccessAction]:
    """First what takes rights away, then what gives them."""
    spec = manifest.spec
    declared = {role.name for role in spec.roles}
    for name in record.roles:
        if name not in declared and name in seen.roles:
            yield access.DropCatalogRole(name)
    principal = connection_name(spec.name)
    for name, role in seen.roles.items():
        if form is not None and name not in declared and name not in record.roles and principal in role.granted_to:
            yield access.UnassignCatalogRole(name, principal)
    for wanted in spec.roles:
        is_connected = spec.connection is not None and wanted.name in spec.connection.roles
        holders = {*wanted.granted_to} & seen.principal_roles.keys()
        connected = {principal} if is_connected and form is not None else set()
        yield from _catalog_role_steps(wanted, holders | connected, seen.roles.get(wanted.name))


def _catalog_role_steps(role: DeclaredCatalogRole, holders: set[str], held: SeenCatalogRole | None) -> Iterator[AccessAction]:
    if held is None:
        yield access.CreateCatalogRole(role.name)
    has, wanted = held or SeenCatalogRole(), role.all_grants()
    for holder in sorted(has.granted_to - holders):
        yield access.UnassignCatalogRole(role.name, holder)
    if extra := has.grants - wanted:
        yield access.RevokeInCatalog(role.name, tuple(sorted(extra, key=str)))
    if missing := wanted - has.grants:
        yield access.GrantInCatalog(role.name, tuple(sorted(missing, key=str)))
    for holder in sorted(holders - has.granted_to):
        yield access.AssignCatalogRole(role.name, holder)


def _catalog_record(
    spec: CatalogSpec,
    record: AccessRecord,
    seen: SeenCatalogAccess,
    form: ConnectionForm | None,
    ended: Iterable[str],
    *,
    is_refused: bool,
) -> AccessRecord:
    """The record once everything is as declared; a connection that is refused stays as it is."""
    roles, name = {role.name for role in spec.roles}, connection_name(spec.name)
    kept = tuple(sorted(roles & {*record.roles, *(roles - seen.roles.keys())}))
    if is_refused:
        return msgspec.structs.replace(_without_kept(record, ended), roles=kept)
    wanted = {form.secret_name} if form is not None else set()
    former = {record.secret} if name in record.principals else set()
    secrets = _kept(record, former - wanted, seen.keep_until, without={*wanted, *ended})
    if form is not None:
        digest = form.address_digest(spec.realm_id)
        return AccessRecord(roles=kept, principals=(name,), connection=digest, secret=form.secret_name, kept=secrets)
    return AccessRecord(roles=kept, retired=tuple(sorted({*record.principals, *record.retired})), kept=secrets)


def _missing_roles(manifest: CatalogManifest, seen: SeenCatalogAccess) -> list[WaitUntil]:
    wanted = {holder for role in manifest.spec.roles for holder in role.granted_to}
    missing = sorted(wanted - seen.principal_roles.keys())
    if not missing:
        return []
    name = f"{manifest.spec.realm_id}/{manifest.spec.name}"
    told = ", ".join(missing)
    return [WaitUntil("RoleMissing", f"catalog {name} grants to principal roles that its realm does not have yet: {told}")]


def _plan_rotation(
    manifest: CatalogManifest,
    catalog: CatalogDefinition,
    record: AccessRecord,
    seen: SeenCatalogAccess,
    form: ConnectionForm | None,
) -> list[Action]:
    """The rotation of a connection's credentials, once for each word of the annotation."""
    asked = manifest.metadata.annotations.get(ROTATE_CREDENTIALS)
    if asked is None:
        return [RecordHandled(ROTATE_CREDENTIALS, None)] if ROTATE_CREDENTIALS in catalog.acted else []
    if catalog.acted.get(ROTATE_CREDENTIALS) == asked or form is None:
        return []
    if seen.connection is None or form.principal not in record.principals or record.secret != form.secret_name:
        return []  # it is made first, and rotated by the next plan
    return [access.RotatePrincipal(form.principal, asked, form), RecordHandled(ROTATE_CREDENTIALS, asked)]
