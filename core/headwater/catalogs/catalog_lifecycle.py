"""The lifecycle of catalogs in a realm: created in idempotent steps, and taken down in the reverse order.

    ACTIVE -> DELETED, held        one commit; nothing is removed, the name is free, and undelete leads back
    held   -> being purged         by the next collection after the hold, or on request: there is no way back
    being purged -> gone           its branches and tags, then its own references, become tombstones; the collector removes them

A catalog is listed before its own references are made; these are made before its branches are listed; and a branch is listed
before its row is made. So nothing that exists is hidden from the collector, wherever the creation stops. Creating the same
catalog again completes it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, Unpack

import msgspec
import structlog

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.catalog_definition import (
    CatalogChanges,
    CatalogDefinition,
    CatalogFields,
    CatalogGrants,
    CatalogRole,
    CatalogState,
    checked_catalog_name,
)
from headwater.catalogs.catalog_gc import bury_references, end_hold
from headwater.catalogs.catalog_refs import CatalogRefs
from headwater.catalogs.registry import (
    BY_ID,
    BY_NAME,
    CATALOGS,
    CatalogEntry,
    OwnRefKind,
    RefKind,
    checked_ref_name,
    content_reference,
    definition_in,
    deleted_definitions,
    find_definition,
    hold_seconds,
    listed_definitions,
    lost_list_error,
    own_reference,
    read_definition,
    store_definition,
)
from headwater.catalogs.table_claims import normalise_location
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, complete_operation
from headwater.errors import (
    ConflictError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnknownOutcomeError,
)
from headwater.iceberg.catalog_location import check_catalog_location
from headwater.index import IndexValue
from headwater.settings import check_seconds
from headwater.store import ReadableRows, RealmStore, StoredObject, id_text

CATALOG_ADMIN = "catalog_admin"
CATALOG_ADMIN_PRIVILEGES = ("CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_CONTENT", "CATALOG_MANAGE_METADATA")

R = TypeVar("R")
Fence = Callable[[], None]
_log = structlog.get_logger()


class Catalogs:
    """The catalogs of the realm that ``rows`` is a handle on."""

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows

    def create_catalog(self, name: str, **fields: Unpack[CatalogFields]) -> CatalogDefinition:
        """Create a catalog, or complete one that was created before with the same fields. A repeated call changes nothing.

        raises        RefusedError for a bad name, branch or location; ConflictError when it is there with other fields;
                      UnknownOutcomeError when it is there and may be incomplete
        """
        checked_catalog_name(name)
        _check_fields(fields)
        catalog_id = id_text(self._rows.new_id())

        def change(tx: Transaction) -> CatalogDefinition:
            existing = definition_in(tx.reader, tx.index(BY_NAME), name)
            if existing is not None:
                _check_same(self._rows.realm, existing, fields)
                return existing
            made = CatalogDefinition(id=catalog_id, name=name, created=tx.time, updated=tx.time, unfinished=True, **fields)
            store_definition(tx, made)
            return made

        definition = self._commit(change, f"create catalog {name}")
        return self._complete(
            definition, f"catalog {name!r} of realm {self._rows.realm!r} was created, and may be incomplete: create it again"
        )

    def complete_catalog(self, definition: CatalogDefinition) -> CatalogDefinition:
        """Complete a catalog whose creation was interrupted: its own references, admin role and default branch.

        returns       the definition as it is now
        raises        RefusedError for a deleted one · CorruptionError when its list of branches was lost: a new one would be empty,
                      and all branches garbage
        """
        definition = self._reread(definition)
        if definition.state is not CatalogState.ACTIVE:
            raise RefusedError(f"catalog {definition.name!r} of realm {self._rows.realm!r} was deleted and cannot be completed")
        self._check_list(definition)
        self._rows.ensure_references([own_reference(definition.id, part) for part in OwnRefKind])
        self._ensure_role(definition)
        CatalogRefs(CatalogEntry(self._rows, definition)).ensure_branch(definition.default_branch)
        return self._finished(definition) if definition.unfinished else definition

    def _finished(self, made: CatalogDefinition) -> CatalogDefinition:
        """Mark the catalog as complete. Concurrent changes of other fields are kept."""

        def change(tx: Transaction) -> CatalogDefinition:
            stored = definition_in(tx.reader, tx.index(BY_ID), made.id)
            if stored is None:
                raise NotFoundError(f"catalog {made.name!r} ({made.id}) is gone from realm {self._rows.realm!r}")
            if not stored.unfinished or stored.state is not CatalogState.ACTIVE:
                return stored
            finished = msgspec.structs.replace(stored, unfinished=False)
            store_definition(tx, finished)
            return finished

        return self._commit(change, f"finish catalog {made.name}")

    def _complete(self, definition: CatalogDefinition, done: str) -> CatalogDefinition:
        return complete_operation(self._rows, lambda: self.complete_catalog(definition), done=done)

    def _check_list(self, definition: CatalogDefinition) -> None:
        """Detect a lost list: a branch is listed before its row is made, so a row without a list means that the list was lost."""
        names = (
            own_reference(definition.id, OwnRefKind.REFS),
            content_reference(definition.id, RefKind.BRANCH, definition.default_branch),
        )
        lists, branch = self._rows.find_rows(names)
        if branch is not None and branch.deleted is None and (lists is None or lists.deleted is not None):
            raise lost_list_error(self._rows, definition, [branch.name])

    def find_catalog(self, name: str) -> CatalogDefinition | None:
        return find_definition(self._rows, name=name)

    def read_catalog(self, name: str) -> CatalogDefinition:
        return read_definition(self._rows, name)

    def list_catalogs(self) -> ReadableRows[CatalogDefinition]:
        """List the live catalogs by name."""
        return listed_definitions(self._rows)

    def open_catalog(self, name: str) -> Catalog:
        return Catalog.open(self._rows, name)

    def update_catalog(self, seen: CatalogDefinition, **changes: Unpack[CatalogChanges]) -> CatalogDefinition:
        """Replace fields of a definition; writes nothing if none differs.

        raises        SwapConflictError when it is not as seen; RefusedError for a bad value or a default branch that is not there
        """
        _check_fields(changes)
        if changes.keys() & {"files", "base_location", "allowed_locations"}:
            changed = msgspec.structs.replace(seen, **changes)
            changed.files.check_inside(changed.base_location, changed.allowed_locations)
        branch = changes.get("default_branch", seen.default_branch)
        if branch != seen.default_branch and CatalogEntry(self._rows, seen).find_ref_row(RefKind.BRANCH, branch) is None:
            raise RefusedError(
                f"catalog {seen.name!r} of realm {self._rows.realm!r} has no branch {branch!r} that could become its default branch:"
                " create it first"
            )

        def change(tx: Transaction) -> CatalogDefinition:
            self._check_seen(tx, seen)
            if seen.state is not CatalogState.ACTIVE:
                raise RefusedError(f"catalog {seen.name!r} of realm {self._rows.realm!r} was deleted: undelete it first")
            if not _differences(seen, changes):
                return seen
            new = msgspec.structs.replace(seen, updated=tx.time, **changes)
            store_definition(tx, new)
            return new

        return self._commit(change, f"update catalog {seen.name}")

    def delete_catalog(self, name: str, *, seen: CatalogDefinition | None = None) -> CatalogDefinition:
        """Delete a catalog. Until its hold is over nothing of it is removed, and ``undelete_catalog`` restores it.

        Its name is free at once. A repeated call changes nothing.

        seen          the definition that the caller decided about; None: any catalog of this name
        raises        RefusedError while it is protected; NotFoundError when there is none; SwapConflictError when it is not as seen
        """

        def change(tx: Transaction) -> CatalogDefinition:
            if seen is not None:
                self._check_seen(tx, seen)
            stored = definition_in(tx.reader, tx.index(BY_NAME), name)
            if stored is None:
                return self._newest_deleted(tx, name)
            if stored.deletion_protection:
                raise RefusedError(
                    f"catalog {name!r} of realm {self._rows.realm!r} is protected: clear its deletion protection first"
                )
            until = Micros(tx.time + round(hold_seconds(self._rows, stored) * 1_000_000))
            deleted = msgspec.structs.replace(stored, state=CatalogState.DELETED, updated=tx.time, held_until=until)
            store_definition(tx, deleted)
            return deleted

        return self._commit(change, f"delete catalog {name}")

    def undelete_catalog(self, name: str, *, new_name: str | None = None, fence: Fence | None = None) -> CatalogDefinition:
        """Restore a deleted catalog as it was, without a manager. Works after the hold, too, until a collection has begun the purge.

        name          the name, which means the catalog deleted last under it; or a catalog's id
        new_name      the name after the restore; None: its own
        raises        NotFoundError for no such catalog · RefusedError when it is live, or is being purged · ConflictError when another
                      catalog has the name by now · UnknownOutcomeError when it is restored and may be incomplete
        """

        def change(tx: Transaction) -> CatalogDefinition:
            deleted = self._held(tx, name)
            wanted = deleted.name if new_name is None else checked_catalog_name(new_name)
            if wanted.encode() in tx.index(BY_NAME):
                raise ConflictError(
                    f"realm {self._rows.realm!r} has another catalog {wanted!r} by now: bring {deleted.id} back under another name (--as)"
                )
            back = msgspec.structs.replace(
                deleted, name=wanted, state=CatalogState.ACTIVE, updated=tx.time, manager=None, former=None, held_until=None
            )
            store_definition(tx, back)
            return back

        definition = self._commit(change, f"undelete catalog {name}", fence)
        return self._complete(
            definition,
            f"catalog {definition.name!r} of realm {self._rows.realm!r} is back, and may be incomplete: `headwater fsck --repair"
            f" --confirm {self._rows.realm}` completes it",
        )

    def purge_catalog(self, name: str, *, fence: Fence | None = None) -> CatalogDefinition:
        """End the hold of a deleted catalog now: it cannot be restored, and its objects are garbage after the grace period.

        A repeated call continues an interrupted purge, and never goes on to another catalog of the same name. ``finish_deletions``
        continues all purges, and buries the references that this call cannot bury.

        name          the name, which means the catalog deleted or purged last under it; or a catalog's id
        raises        NotFoundError for no such catalog · RefusedError while it is ACTIVE
        """

        def change(tx: Transaction) -> CatalogDefinition:
            return end_hold(tx, max(self._all_deleted(tx, name), key=_lastness))

        definition = self._commit(change, f"purge catalog {name}", fence)
        try:
            complete_operation(
                self._rows,
                lambda: bury_references(self._rows, definition, fence),
                done=f"catalog {name!r} is being purged",
            )
        except UnknownOutcomeError as fault:  # it cannot be restored any more: the request is met
            _log.warning(
                "branches of a purged catalog are left to the next collection", catalog=definition.id, fault=str(fault)
            )
        return definition

    def list_deleted(self) -> ReadableRows[CatalogDefinition]:
        """List the deleted catalogs that still exist, oldest creation first: those that can be restored, and those being purged.

        Unreadable definitions are in ``unreadable`` of the result: their state is unknown.
        """
        return deleted_definitions(self._rows)

    def read_deleted(self, name: str) -> CatalogDefinition:
        """Find the deleted catalog that ``purge_catalog`` takes by this name or id; raises what it raises."""
        definitions = listed_definitions(self._rows, index=BY_ID)
        return max(self._deleted_among(definitions, name), key=_lastness)

    def _commit(self, change: Callable[[Transaction], R], message: str, fence: Fence | None = None) -> R:
        return commit_change(self._rows, CATALOGS, change, message=message, fence=fence).result

    def _reread(self, definition: CatalogDefinition) -> CatalogDefinition:
        now = find_definition(self._rows, catalog_id=definition.id)
        if now is None:
            raise NotFoundError(f"catalog {definition.name!r} ({definition.id}) is gone from realm {self._rows.realm!r}")
        return now

    def _check_seen(self, tx: Transaction, seen: CatalogDefinition) -> None:
        now = definition_in(tx.reader, tx.index(BY_ID), seen.id)
        if now != seen:
            raise SwapConflictError(
                f"catalog {seen.name!r} of realm {self._rows.realm!r} was changed by another: read it again"
            )

    def _held(self, tx: Transaction, name: str) -> CatalogDefinition:
        """Find the deleted, restorable catalog of this name or id."""
        deleted = self._newest_deleted(tx, name)
        if not deleted.is_held:
            raise RefusedError(
                f"catalog {deleted.name!r} ({deleted.id}) of realm {self._rows.realm!r} is being purged: it cannot come back"
            )
        return deleted

    def _newest_deleted(self, tx: Transaction, name: str) -> CatalogDefinition:
        """Find the catalog of this name or id that was deleted last and is not collected yet; restorable ones come first."""
        return max(self._all_deleted(tx, name), key=lambda deleted: (deleted.is_held, deleted.updated, deleted.id))

    def _all_deleted(self, tx: Transaction, name: str) -> builtins.list[CatalogDefinition]:
        """Find the deleted catalogs of this name or id that are not collected yet: at least one."""
        entries = [key.decode() for key, _ in tx.index(BY_ID).range()]
        definitions = [definition_in(tx.reader, tx.index(BY_ID), key) for key in entries]
        return self._deleted_among([definition for definition in definitions if definition is not None], name)

    def _deleted_among(self, definitions: Iterable[CatalogDefinition], name: str) -> builtins.list[CatalogDefinition]:
        named = [definition for definition in definitions if name in (definition.name, definition.id)]
        deleted = [definition for definition in named if definition.state is CatalogState.DELETED]
        if deleted:
            return deleted
        if named:
            raise RefusedError(f"catalog {name!r} of realm {self._rows.realm!r} is {named[0].state}: it was not deleted")
        raise NotFoundError(f"realm {self._rows.realm!r} has no catalog {name!r}")

    def _ensure_role(self, definition: CatalogDefinition) -> None:
        def add(reference: OwnRefKind, make: Callable[[Transaction], StoredObject]) -> None:
            def change(tx: Transaction) -> None:
                if CATALOG_ADMIN.encode() not in tx.index(BY_NAME):
                    tx.index(BY_NAME).put(CATALOG_ADMIN.encode(), IndexValue(tx.add_object(make(tx)), b""))

            commit_change(self._rows, own_reference(definition.id, reference), change, message=f"create role {CATALOG_ADMIN}")

        add(OwnRefKind.ROLES, lambda tx: CatalogRole(name=CATALOG_ADMIN, created=tx.time))
        add(OwnRefKind.GRANTS, lambda tx: CatalogGrants(role=CATALOG_ADMIN, privileges=CATALOG_ADMIN_PRIVILEGES))


def _lastness(deleted: CatalogDefinition) -> tuple[Micros, bool, str]:
    return deleted.updated, not deleted.is_held, deleted.id


def _check_fields(fields: Mapping[str, Any]) -> None:
    if "default_branch" in fields:
        checked_ref_name(RefKind.BRANCH, fields["default_branch"])
    for location in _given_locations(fields):
        check_catalog_location(location)
        normalise_location(location)
    check_seconds(fields.get("hold_seconds"), "hold_seconds of a catalog")
    if "files" in fields and "base_location" in fields:
        fields["files"].check_inside(fields["base_location"], fields.get("allowed_locations", ()))


def _given_locations(fields: Mapping[str, Any]) -> Iterator[str]:
    if "base_location" in fields:
        yield fields["base_location"]
    yield from fields.get("allowed_locations", ())
    if "files" in fields:
        yield from fields["files"].places


def _differences(definition: CatalogDefinition, fields: Mapping[str, Any]) -> list[str]:
    return [name for name, value in fields.items() if getattr(definition, name) != value]


def _check_same(realm: str, existing: CatalogDefinition, fields: Mapping[str, Any]) -> None:
    differing = _differences(existing, fields)
    if differing:
        raise ConflictError(
            f"catalog {existing.name!r} of realm {realm!r} is there with another {', '.join(differing)}: update it instead"
        )
