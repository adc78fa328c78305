"""The catalogs of a realm: made in steps of which each is repeated harmlessly, and taken down in the reverse order.

A catalog is listed before its own references are made, those before its branches are listed, and a branch is listed before
its row is made; so nothing that exists is hidden from the collector, wherever the making stops. Making the same catalog again
completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Unpack

import msgspec

from headwater.catalogs.branches import Branches
from headwater.catalogs.catalog import Catalog
from headwater.catalogs.claims import normalise_location
from headwater.catalogs.definitions import (
    CatalogChanges,
    CatalogDefinition,
    CatalogFields,
    CatalogGrants,
    CatalogRole,
    CatalogState,
    checked_catalog_name,
)
from headwater.catalogs.listing import BY_ID, BY_NAME, all_definitions, definition_in, find_definition
from headwater.catalogs.names import CATALOGS, NAMES, NameKind, OwnPart, checked_name, listed_names, own_reference
from headwater.commits import Transaction, commit, ensure_references, head
from headwater.errors import BeatenError, ConflictError, MissingError, RefusedError, UnavailableError
from headwater.index import Value
from headwater.store import RealmStore, StoredObject, id_text

__all__ = ["CATALOG_ADMIN", "CATALOG_ADMIN_PRIVILEGES", "Catalogs"]

CATALOG_ADMIN = "catalog_admin"
CATALOG_ADMIN_PRIVILEGES = ("CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_CONTENT", "CATALOG_MANAGE_METADATA")
_TRIES = 20

R = TypeVar("R")


class Catalogs:
    """The catalogs of the realm that ``rows`` is a handle on."""

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows

    def create(self, name: str, **fields: Unpack[CatalogFields]) -> CatalogDefinition:
        """Make a catalog, or complete one that was made before with the same fields. Run again, it changes nothing.

        raises        RefusedError for a bad name, branch or location; ConflictError when it is there with other fields
        """
        checked_catalog_name(name)
        _check_fields(fields)
        catalog_id = id_text(self._rows.new_id())

        def change(tx: Transaction) -> CatalogDefinition:
            there = definition_in(tx.rows, tx.index(BY_NAME), name)
            if there is not None:
                _check_same(there, fields)
                return there
            made = CatalogDefinition(id=catalog_id, name=name, created=tx.time, updated=tx.time, **fields)
            _store(tx, made)
            return made

        definition = self._commit(change, f"create catalog {name}")
        self.complete(definition)
        return definition

    def complete(self, definition: CatalogDefinition) -> None:
        """Make what is missing of a catalog whose making was interrupted: its own references, admin role, default branch."""
        if self._reread(definition).state is not CatalogState.ACTIVE:
            raise RefusedError(f"catalog {definition.name!r} of realm {self._rows.realm!r} was deleted and cannot be completed")
        ensure_references(self._rows, [own_reference(definition.id, part) for part in OwnPart])
        self._ensure_role(definition)
        Branches(self._rows, definition).ensure(definition.default_branch)

    def find(self, name: str) -> CatalogDefinition | None:
        return find_definition(self._rows, name=name)

    def read(self, name: str) -> CatalogDefinition:
        definition = self.find(name)
        if definition is None:
            raise MissingError(f"realm {self._rows.realm!r} has no catalog {name!r}")
        return definition

    def list(self) -> list[CatalogDefinition]:
        """The live catalogs, by name."""
        return [definition for definition, _ in all_definitions(self._rows)]

    def open(self, name: str) -> Catalog:
        return Catalog(self._rows, self.read(name))

    def update(self, seen: CatalogDefinition, **changes: Unpack[CatalogChanges]) -> CatalogDefinition:
        """Replace fields of a definition; where nothing differs, nothing is written.

        raises        BeatenError when it is not as seen; RefusedError for a bad value or a default branch that is not there
        """
        _check_fields(changes)
        branch = changes.get("default_branch", seen.default_branch)
        if branch != seen.default_branch and Branches(self._rows, seen).find(NameKind.BRANCH, branch) is None:
            raise RefusedError(
                f"catalog {seen.name!r} has no branch {branch!r} that could become its default branch: create it first"
            )

        def change(tx: Transaction) -> CatalogDefinition:
            self._check_seen(tx, seen)
            if not _differences(seen, changes):
                return seen
            new = msgspec.structs.replace(seen, updated=tx.time, **changes)
            _store(tx, new)
            return new

        return self._commit(change, f"update catalog {seen.name}")

    def delete(self, name: str, *, seen: CatalogDefinition | None = None) -> CatalogDefinition:
        """Take a catalog from the list and leave tombstones of its branches and tags; the collector removes the rest.

        Run again after an interruption it goes on where it was; ``finish_deletions`` does the same for all.

        seen          what the caller has decided about; None: whatever has the name
        raises        RefusedError while it is protected; MissingError when there is none; BeatenError when it is not as seen
        """

        def change(tx: Transaction) -> CatalogDefinition:
            if seen is not None:
                self._check_seen(tx, seen)
            there = definition_in(tx.rows, tx.index(BY_NAME), name)
            if there is None:
                return self._deleted(tx, name)
            if there.deletion_protection:
                raise RefusedError(
                    f"catalog {name!r} of realm {self._rows.realm!r} is protected: clear its deletion protection first"
                )
            deleted = msgspec.structs.replace(there, state=CatalogState.DELETED, updated=tx.time)
            _store(tx, deleted)
            return deleted

        definition = self._commit(change, f"delete catalog {name}")
        self._bury(definition)
        return definition

    def finish_deletions(self) -> int:
        """Bury what still lives of deleted catalogs: branches made while a deletion ran or left by an interrupted one, and the
        catalog's own references once no branch or tag is listed any more. Returns how many tombstones that made.
        """
        deleted = [entry for entry, _ in all_definitions(self._rows, index=BY_ID) if entry.state is CatalogState.DELETED]
        return sum(map(self._bury, deleted))

    def _commit(self, change: Callable[[Transaction], R], message: str) -> R:
        return commit(self._rows, CATALOGS, change, message=message).result

    def _reread(self, definition: CatalogDefinition) -> CatalogDefinition:
        now = find_definition(self._rows, catalog_id=definition.id)
        if now is None:
            raise MissingError(f"catalog {definition.name!r} ({definition.id}) is gone from realm {self._rows.realm!r}")
        return now

    def _check_seen(self, tx: Transaction, seen: CatalogDefinition) -> None:
        now = definition_in(tx.rows, tx.index(BY_ID), seen.id)
        if now != seen:
            raise BeatenError(f"catalog {seen.name!r} of realm {self._rows.realm!r} was changed by another: read it again")

    def _deleted(self, tx: Transaction, name: str) -> CatalogDefinition:
        """The latest deleted catalog of that name that is not collected yet."""
        entries = [key.decode() for key, _ in tx.index(BY_ID).range()]
        found = [definition_in(tx.rows, tx.index(BY_ID), key) for key in entries]
        named = [definition for definition in found if definition is not None and definition.name == name]
        if not named:
            raise MissingError(f"realm {self._rows.realm!r} has no catalog {name!r}")
        return max(named, key=lambda definition: definition.id)

    def _ensure_role(self, definition: CatalogDefinition) -> None:
        def add(reference: OwnPart, make: Callable[[Transaction], StoredObject]) -> None:
            def change(tx: Transaction) -> None:
                if CATALOG_ADMIN.encode() not in tx.index(BY_NAME):
                    tx.index(BY_NAME).put(CATALOG_ADMIN.encode(), Value(tx.add(make(tx)), b""))

            commit(self._rows, own_reference(definition.id, reference), change, message=f"create role {CATALOG_ADMIN}")

        add(OwnPart.ROLES, lambda tx: CatalogRole(name=CATALOG_ADMIN, created=tx.time))
        add(OwnPart.GRANTS, lambda tx: CatalogGrants(role=CATALOG_ADMIN, privileges=CATALOG_ADMIN_PRIVILEGES))

    def _bury(self, definition: CatalogDefinition) -> int:
        refs = own_reference(definition.id, OwnPart.REFS)
        listed = []
        if self._rows.find_reference(refs, fresh=True) is not None:
            names = head(self._rows, refs, fresh=True)
            listed = [] if names is None else list(listed_names(names.index(NAMES)))
        names_to_bury = [entry.reference(definition.id) for entry in listed]
        if not listed:  # as long as a name is listed, its list must be readable
            names_to_bury = [own_reference(definition.id, part) for part in OwnPart]
        return sum(map(self._bury_one, names_to_bury))

    def _bury_one(self, name: str) -> bool:
        for _ in range(_TRIES):
            row = self._rows.find_reference(name, fresh=True)
            if row is None:
                return False
            try:
                self._rows.delete_reference(row)
            except BeatenError:
                continue
            return True
        raise UnavailableError(
            f"reference {name!r} of realm {self._rows.realm!r} moved {_TRIES} times while it was to be deleted"
        )


def _store(tx: Transaction, definition: CatalogDefinition) -> None:
    """Put a definition into both indexes, as its state demands."""
    value = Value(tx.add(definition), b"")
    tx.index(BY_ID).put(definition.id.encode(), value)
    if definition.state is CatalogState.ACTIVE:
        tx.index(BY_NAME).put(definition.name.encode(), value)
    else:
        tx.index(BY_NAME).remove(definition.name.encode())


def _check_fields(fields: Mapping[str, Any]) -> None:
    if "default_branch" in fields:
        checked_name(NameKind.BRANCH, fields["default_branch"])
    if "base_location" in fields:
        normalise_location(fields["base_location"])
    for location in fields.get("allowed_locations", ()):
        normalise_location(location)


def _differences(definition: CatalogDefinition, fields: Mapping[str, Any]) -> list[str]:
    return [name for name, value in fields.items() if getattr(definition, name) != value]


def _check_same(there: CatalogDefinition, fields: Mapping[str, Any]) -> None:
    differing = _differences(there, fields)
    if differing:
        raise ConflictError(f"catalog {there.name!r} is there with another {', '.join(differing)}: update it instead")
