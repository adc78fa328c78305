"""Catalogs as resources. A list has those that its caller may see, and of each only what everybody who may see it may know.

Two fields decide more than a definition. Places are files that the server reaches, so whoever changes them needs the right to create
catalogs, too. The default branch is where grants hold that name no reference, so changing it needs the right to manage grants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from headwater.access import Privilege
from headwater.catalogs import CatalogChanges, CatalogDefinition, CatalogFields, CatalogFiles, LakeSchedule
from headwater.clock import as_text
from headwater.errors import ConflictError, RefusedError
from headwater.settings import parse_duration
from headwater_server.call import Answer, Call
from headwater_server.management.catalog_places import check_places
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.managed_realm import ManagedRealm, managed_realm, realm_under_right
from headwater_server.management.realm_resources import duration_or_none, manager_name, merged
from headwater_server.management.resource_shapes import (
    CatalogCreation,
    CatalogList,
    CatalogPatch,
    CatalogResource,
    CatalogsQuery,
    ImportOfCatalog,
    ListedCatalog,
    MaintenanceOfCatalog,
    ScheduleOfWork,
    UndeleteQuery,
)
from headwater_server.management.route_parts import CATALOG_PATH, CATALOGS_PATH, CHANGE_ERRORS, READ_ERRORS
from headwater_server.route_table import Route


def catalog_routes() -> list[Route]:
    """Make the routes of catalogs."""
    return [
        Route(
            method="GET",
            template=CATALOGS_PATH,
            handler=answer_catalogs,
            name="listCatalogs",
            needs="CATALOG_LIST on a catalog, or any right in it, for the catalog to be in the list; CATALOG_DROP for a deleted one",
            summary="List the catalogs that the caller may see, or the deleted ones that it may undelete.",
            query=CatalogsQuery,
            answers={200: CatalogList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=CATALOGS_PATH,
            handler=answer_catalog_creation,
            name="createCatalog",
            needs="CATALOG_CREATE on the realm",
            summary="Create a catalog; 200 if it is there with the same fields.",
            writes=True,
            body=CatalogCreation,
            answers={200: CatalogResource, 201: CatalogResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=CATALOG_PATH,
            handler=answer_catalog,
            name="getCatalog",
            needs="CATALOG_READ_PROPERTIES on the catalog",
            summary="Read the definition of a catalog.",
            answers={200: CatalogResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="PATCH",
            template=CATALOG_PATH,
            handler=answer_catalog_patch,
            name="updateCatalog",
            needs=(
                "CATALOG_WRITE_PROPERTIES on the catalog; for places also CATALOG_CREATE on the realm; for the default branch also"
                " CATALOG_MANAGE_ACCESS on the catalog"
            ),
            summary="Change the definition of a catalog; what is left out stays.",
            writes=True,
            body=CatalogPatch,
            answers={200: CatalogResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=CATALOG_PATH,
            handler=answer_catalog_deletion,
            name="deleteCatalog",
            needs="CATALOG_DROP on the catalog",
            summary="Delete a catalog; until its hold is over it can be undeleted.",
            writes=True,
            answers={200: CatalogResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{CATALOG_PATH}/undelete",
            handler=answer_catalog_undeletion,
            name="undeleteCatalog",
            needs="CATALOG_DROP on the catalog",
            summary="Undelete the catalog of an id, or the one of a name that was deleted last.",
            writes=True,
            query=UndeleteQuery,
            answers={200: CatalogResource},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_catalogs(call: Call[CatalogsQuery, None]) -> Answer:
    """List the live catalogs that the caller may see, or the deleted ones that it may undelete."""
    realm = managed_realm(call)
    if call.query.deleted:
        listed = sorted(_deleted(realm), key=lambda each: (each.name, each.id))
        page, token = page_by_name(listed, call.query, name=lambda each: f"{each.name} {each.id}")
    else:
        seen = [each for each in realm.catalogs.list_catalogs() if realm.is_seen(each)]
        page, token = page_by_name(seen, call.query, name=lambda each: each.name)
    return Answer(body=CatalogList([_listed(each) for each in page], token))


def answer_catalog_creation(call: Call[None, CatalogCreation]) -> Answer:
    """Create a catalog, or complete one that was created before with the same fields.

    raises        ConflictError when it is there with others, or its definition may not be read
    """
    realm, wish = realm_under_right(call, Privilege.CATALOG_CREATE), call.body
    existing = realm.catalogs.find_catalog(wish.name)
    if existing is not None and not realm.is_allowed(Privilege.CATALOG_READ_PROPERTIES, existing):
        raise ConflictError(f"realm {realm.id!r} has another catalog {wish.name!r}: choose another name")
    fields = CatalogFields(
        base_location=wish.base_location,
        allowed_locations=tuple(wish.allowed_locations),
        default_branch=wish.default_branch,
        properties=wish.properties,
        deletion_protection=wish.deletion_protection,
        hold_seconds=_seconds(wish.hold),
    )
    # also where one is there: it may be deleted before this one is made
    held = () if existing is None else (existing.base_location, *existing.allowed_locations)
    check_places(realm, [each for each in (wish.base_location, *wish.allowed_locations) if each not in held])
    made = realm.catalogs.create_catalog(wish.name, **fields)
    return Answer(201 if existing is None else 200, catalog_resource(realm, made))


def answer_catalog(call: Call[None, None]) -> Answer:
    """Read the definition of a catalog."""
    realm = managed_realm(call)
    definition = realm.allowed_catalog(call.path["catalog"], Privilege.CATALOG_READ_PROPERTIES)
    return Answer(body=catalog_resource(realm, definition))


def answer_catalog_patch(call: Call[None, CatalogPatch]) -> Answer:
    """Change the definition of a catalog; raises SwapConflictError when another change was faster."""
    realm, patch = managed_realm(call), call.body
    definition = realm.allowed_catalog(call.path["catalog"], Privilege.CATALOG_WRITE_PROPERTIES)
    changes = _changes(definition, patch)
    if changes.keys() & {"base_location", "allowed_locations", "files"}:
        realm.check_right(Privilege.CATALOG_CREATE)
        check_places(realm, [*_locations(changes)])
    if "default_branch" in changes:
        realm.check_right(Privilege.CATALOG_MANAGE_ACCESS, definition)
    return Answer(body=catalog_resource(realm, realm.catalogs.update_catalog(definition, **changes)))


def answer_catalog_deletion(call: Call[None, None]) -> Answer:
    """Delete a catalog; until its hold is over it can be undeleted."""
    realm = managed_realm(call)
    definition = realm.allowed_catalog(call.path["catalog"], Privilege.CATALOG_DROP)
    return Answer(body=catalog_resource(realm, realm.catalogs.delete_catalog(definition.name, seen=definition)))


def answer_catalog_undeletion(call: Call[UndeleteQuery, None]) -> Answer:
    """Undelete the catalog of an id, or the one of a name that was deleted last.

    raises        NotFoundError where the caller may not undelete such a one; ConflictError when its name is another one's by now
    """
    realm, wanted = managed_realm(call), call.path["catalog"]
    named = [each for each in _deleted(realm) if wanted in (each.name, each.id)]
    if not named:
        raise realm.no_catalog(wanted)
    chosen = max(named, key=lambda each: (each.updated, each.id))
    # by its id, so that it is this one that the caller has a right on: no other may be called by that id
    if any(chosen.id in (each.name, each.id) and each.id != chosen.id for each in realm.catalogs.list_deleted()):
        raise ConflictError(f"another deleted catalog of realm {realm.id!r} is called {chosen.id}: use the command line")
    restored = realm.catalogs.undelete_catalog(chosen.id, new_name=call.query.new_name)
    return Answer(body=catalog_resource(realm, restored))


def catalog_resource(realm: ManagedRealm, definition: CatalogDefinition) -> CatalogResource:
    return CatalogResource(
        realm=realm.id,
        name=definition.name,
        id=definition.id,
        state=definition.state.value,
        base_location=definition.base_location,
        allowed_locations=list(definition.allowed_locations),
        default_branch=definition.default_branch,
        file_places=list(definition.files.places),
        maintenance=MaintenanceOfCatalog(
            expire_snapshots=_schedule(definition.maintenance.expire_snapshots),
            report_files=_schedule(definition.maintenance.report_files),
        ),
        properties=definition.properties,
        imports=_imports(definition),
        created=as_text(definition.created),
        updated=as_text(definition.updated),
        deletion_policy=definition.deletion_policy,
        deletion_protection=definition.deletion_protection,
        hold=duration_or_none(definition.hold_seconds),
        held_until=_held_until(definition),
        manager=manager_name(definition.manager),
    )


def _schedule(said: LakeSchedule | None) -> ScheduleOfWork | None:
    return None if said is None else ScheduleOfWork(said.schedule or None, said.suspend)


def _imports(definition: CatalogDefinition) -> list[ImportOfCatalog]:
    return [
        ImportOfCatalog(
            name=spec.name,
            locations=list(spec.locations),
            mode=spec.mode,
            schedule=spec.schedule,
            include=list(spec.include),
            exclude=list(spec.exclude),
            done=definition.imported.get(spec.name) == spec.digest(),
        )
        for spec in definition.imports
    ]


def _listed(definition: CatalogDefinition) -> ListedCatalog:
    return ListedCatalog(
        name=definition.name,
        id=definition.id,
        state=definition.state.value,
        created=as_text(definition.created),
        updated=as_text(definition.updated),
        held_until=_held_until(definition),
    )


def _held_until(definition: CatalogDefinition) -> str | None:
    """Rounded up to a full second, so that nothing is gone before the time that is shown."""
    return None if definition.held_until is None else as_text(definition.held_until + 999_999)


def _deleted(realm: ManagedRealm) -> Sequence[CatalogDefinition]:
    """The deleted catalogs that can come back, and that the caller may bring back."""
    held = (each for each in realm.catalogs.list_deleted() if each.is_held)
    return [each for each in held if realm.is_allowed(Privilege.CATALOG_DROP, each)]


def _changes(seen: CatalogDefinition, patch: CatalogPatch) -> CatalogChanges:
    """The fields that differ."""
    changes = CatalogChanges()
    if patch.base_location is not UNSET and patch.base_location != seen.base_location:
        changes["base_location"] = patch.base_location
    if patch.allowed_locations is not UNSET and tuple(patch.allowed_locations) != seen.allowed_locations:
        changes["allowed_locations"] = tuple(patch.allowed_locations)
    if patch.file_places is not UNSET and tuple(patch.file_places) != seen.files.places:
        changes["files"] = CatalogFiles(places=tuple(patch.file_places))
    if patch.default_branch is not UNSET and patch.default_branch != seen.default_branch:
        changes["default_branch"] = patch.default_branch
    if patch.properties is not UNSET:
        changes["properties"] = merged(seen.properties, patch.properties)
    if patch.deletion_protection is not UNSET:
        changes["deletion_protection"] = patch.deletion_protection
    if patch.hold is not UNSET:
        changes["hold_seconds"] = _seconds(patch.hold)
    return changes


def _locations(changes: CatalogChanges) -> Iterator[str]:
    """The places that a change names."""
    if "base_location" in changes:
        yield changes["base_location"]
    yield from changes.get("allowed_locations", ())
    if "files" in changes:
        yield from changes["files"].places


def _seconds(hold: str | None) -> float | None:
    if hold is None:
        return None
    try:
        return parse_duration(hold)
    except RefusedError as wrong:
        raise RefusedError(f"hold: {wrong}") from None
