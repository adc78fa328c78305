"""The roles of a catalog: what they may do in it, and which principal roles of the realm they are given to.

cat/<id>/roles    index `by-name`: the name → object `catalog-role`
cat/<id>/grants   index `by-role`: the role's name, 0x00, 16 bytes digest of the grant → the `CatalogGrant` itself, as msgpack
                  index `by-grantee`: 8 bytes principal role, the role's name → nothing
                  index `by-name`: the role's name → object `catalog-grants`, what ``catalog_admin`` is given at the creation

All of it lies in the catalog's own references: it goes with the catalog, and comes back with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from headwater.catalogs.catalog_definition import CatalogDefinition, CatalogGrant, CatalogGrants, CatalogRole
from headwater.catalogs.registry import BY_NAME, OwnRefKind, own_reference
from headwater.commits import Head, Transaction, commit_change, complete_operation, read_head
from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmReader, RealmStore
from headwater.typed_values import msgpack_decoder

BY_ROLE = "by-role"
BY_GRANTEE = "by-grantee"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,127}")
_ENTITY_BYTES = 8
_DIGEST_BYTES = 16
_PACKED = msgspec.msgpack.Encoder()
_DECODER = msgpack_decoder(CatalogGrant)
_NOTHING = IndexValue(None, b"")


@dataclass(frozen=True, slots=True)
class CatalogAccess:
    """The roles of a catalog, what they may do and who has them, as one moment had it.

    version       another one for another moment
    """

    catalog: CatalogDefinition
    version: ObjectId | None
    _rows: RealmReader
    _head: Head | None

    def roles_of(self, principal_role: ObjectId) -> list[str]:
        """The roles that a principal role has."""
        if self._head is None:
            return []
        prefix = _bytes(principal_role)
        return [key[_ENTITY_BYTES:].decode() for key, _ in self._head.index(BY_GRANTEE).prefix(prefix)]

    def grantees_of(self, role: str) -> list[ObjectId]:
        """The principal roles that have a role."""
        keys = () if self._head is None else self._head.index(BY_GRANTEE).keys()
        return [_entity(key) for key in keys if key[_ENTITY_BYTES:].decode() == role]

    def grants_of(self, role: str) -> list[CatalogGrant]:
        """What a role may do."""
        if self._head is None:
            return []
        given = _given_at_creation(self._rows, self._head, role)
        return [*given, *(_decoded(value, role) for _, value in self._head.index(BY_ROLE).prefix(_prefix(role)))]


class CatalogRoles:
    """The roles of one catalog, to read and to change. Changes are done once, however often they are asked for."""

    def __init__(self, rows: RealmStore, definition: CatalogDefinition) -> None:
        self._rows = rows
        self._definition = definition
        self._roles, self._grants = (own_reference(definition.id, kind) for kind in (OwnRefKind.ROLES, OwnRefKind.GRANTS))

    def read_access(self, *, fresh: bool = True) -> CatalogAccess:
        """Read the grants as they are; with ``fresh`` off, the reference may be as old as its time to live in the cache."""
        head = _find_head(self._rows, self._grants, fresh=fresh)
        return CatalogAccess(self._definition, None if head is None else head.id, self._rows, head)

    def list_roles(self) -> list[CatalogRole]:
        """All roles, in the order of their names."""
        head = _find_head(self._rows, self._roles, fresh=True)
        entries = [] if head is None else list(head.index(BY_NAME).range())
        found = self._rows.read_many([value.object_id or ObjectId(0) for _, value in entries], CatalogRole)
        return [role for role in found if role is not None]

    def read_role(self, name: str) -> CatalogRole:
        """One role; raises NotFoundError where there is none of this name."""
        head = _find_head(self._rows, self._roles, fresh=True)
        value = None if head is None else head.index(BY_NAME).get(name.encode())
        role = None if value is None or value.object_id is None else self._rows.find_object(value.object_id, CatalogRole)
        if role is None:
            raise NotFoundError(f"{self._label} has no role {name[:200]!r}")
        return role

    def create_role(self, name: str) -> CatalogRole:
        """Create a role that may do nothing yet; one of this name is returned. Raises RefusedError for a name that is not allowed."""
        if not _NAME.fullmatch(name):
            raise RefusedError(
                f"{name[:200]!r} is no name for a role of {self._label}: up to 128 letters, digits and . _ @ - that begin with a letter,"
                " a digit or _"
            )

        def change(tx: Transaction) -> CatalogRole:
            index = tx.index(BY_NAME)
            value = index.get(name.encode())
            held = None if value is None or value.object_id is None else tx.reader.find_object(value.object_id, CatalogRole)
            if held is not None:
                return held
            role = CatalogRole(name=name, created=tx.time)
            index.put(name.encode(), IndexValue(tx.add_object(role), b""))
            return role

        return commit_change(self._rows, self._roles, change, message=f"create role {name}").result

    def drop_role(self, name: str) -> None:
        """Remove a role, and everything that was granted to it and by it; raises NotFoundError where there is none."""
        try:
            self._check_role(name)
        except NotFoundError:
            self._clear_role(name)  # what an interrupted call has left
            raise
        self._clear_role(name)

        def drop() -> None:
            commit_change(
                self._rows, self._roles, lambda tx: tx.index(BY_NAME).remove(name.encode()), message=f"drop role {name}"
            )
            # this:      removes the grants                    drops the role    removes them once more
            # another:                        sees the role                  grants something to it
            # grants name their role: without the second removal, the next role of this name would have what was granted to this one
            self._clear_role(name)

        complete_operation(
            self._rows,
            drop,
            done=f"role {name!r} of {self._label} may do nothing any more, and may be there still: drop it again",
        )

    def put_grants(self, role: str, grants: Iterable[CatalogGrant]) -> None:
        """Let a role do something; what it may do already stays as it is. Raises NotFoundError for an unknown role."""
        self._check_role(role)
        wanted = list(grants)

        def change(tx: Transaction) -> None:
            index = tx.index(BY_ROLE)
            for grant in wanted:
                key = _key(role, grant)
                if key not in index:
                    index.put(key, IndexValue(None, _PACKED.encode(msgspec.structs.replace(grant, created=tx.time))))

        commit_change(self._rows, self._grants, change, message=f"grant to role {role}")
        self._check_still_there(role)

    def remove_grants(self, role: str, grants: Iterable[CatalogGrant]) -> int:
        """Take back what a role may do; returns how many of these grants there were. Raises NotFoundError for an unknown role."""
        self._check_role(role)
        gone = list(grants)

        def change(tx: Transaction) -> int:
            _unpack_first_grants(tx, role)
            return sum(tx.index(BY_ROLE).remove(_key(role, grant)) for grant in gone)

        return commit_change(self._rows, self._grants, change, message=f"revoke of role {role}").result

    def assign_role(self, name: str, principal_role: ObjectId) -> None:
        """Give a role to a principal role of the realm; raises NotFoundError for an unknown role."""
        self._check_role(name)
        key = _bytes(principal_role) + name.encode()

        def change(tx: Transaction) -> None:
            if key not in tx.index(BY_GRANTEE):
                tx.index(BY_GRANTEE).put(key, _NOTHING)

        commit_change(self._rows, self._grants, change, message=f"assign role {name}")
        self._check_still_there(name)

    def unassign_role(self, name: str, principal_role: ObjectId) -> None:
        """Take a role from a principal role, which need not have it; raises NotFoundError for an unknown role."""
        self._check_role(name)
        key = _bytes(principal_role) + name.encode()
        commit_change(self._rows, self._grants, lambda tx: tx.index(BY_GRANTEE).remove(key), message=f"take role {name}")

    @property
    def _label(self) -> str:
        return f"catalog {self._definition.name!r} of realm {self._rows.realm!r}"

    def _clear_role(self, name: str) -> None:
        """Take back all that was granted to a role, and by it."""

        def change(tx: Transaction) -> None:
            for key in [key for key, _ in tx.index(BY_ROLE).prefix(_prefix(name))]:
                tx.index(BY_ROLE).remove(key)
            holders = [key for key, _ in tx.index(BY_GRANTEE).range() if key[_ENTITY_BYTES:].decode() == name]
            for key in holders:
                tx.index(BY_GRANTEE).remove(key)
            tx.index(BY_NAME).remove(name.encode())

        commit_change(self._rows, self._grants, change, message=f"take back role {name}")

    def _check_still_there(self, name: str) -> None:
        """Check that a role was not dropped while something was granted: nobody would see the grant, and it would hold."""

        def look() -> None:
            try:
                self._check_role(name)
            except NotFoundError:
                self._clear_role(name)
                raise

        done = f"role {name!r} of {self._label} has what it was given, unless it was dropped meanwhile: look, and drop it again then"
        complete_operation(self._rows, look, done=done, passed_on=(NotFoundError,))

    def _check_role(self, name: str) -> None:
        head = _find_head(self._rows, self._roles, fresh=True)
        if head is None or head.index(BY_NAME).get(name.encode()) is None:
            raise NotFoundError(f"{self._label} has no role {name[:200]!r}")


def _unpack_first_grants(tx: Transaction, role: str) -> None:
    """Write what a role was given at the creation as single grants, so that one of them can be taken back."""
    value = tx.index(BY_NAME).get(role.encode())
    if value is None or value.object_id is None:
        return
    given = tx.reader.find_object(value.object_id, CatalogGrants)
    for privilege in () if given is None else given.privileges:
        grant = CatalogGrant(privilege=privilege, created=tx.time)
        tx.index(BY_ROLE).put(_key(role, grant), IndexValue(None, _PACKED.encode(grant)))
    tx.index(BY_NAME).remove(role.encode())


def _given_at_creation(rows: RealmReader, head: Head, role: str) -> Iterator[CatalogGrant]:
    value = head.index(BY_NAME).get(role.encode())
    given = None if value is None or value.object_id is None else rows.find_object(value.object_id, CatalogGrants)
    for privilege in () if given is None else given.privileges:
        yield CatalogGrant(privilege=privilege)


def _decoded(value: IndexValue, role: str) -> CatalogGrant:
    try:
        return _DECODER.decode(value.data)
    except msgspec.MsgspecError as fault:  # a newer release's: what it means is not guessed
        raise CorruptionError(f"a grant of role {role!r} cannot be read: {fault}") from fault


def _key(role: str, grant: CatalogGrant) -> bytes:
    return _prefix(role) + _digest(grant)


def _digest(grant: CatalogGrant) -> bytes:
    """A digest that is equal for equal grants, whenever they were made."""
    plain = _PACKED.encode((grant.privilege, grant.on, grant.path, grant.content_id, grant.references))
    return hashlib.blake2b(plain, digest_size=_DIGEST_BYTES).digest()


def _prefix(role: str) -> bytes:
    return role.encode() + b"\0"


def _bytes(entity: ObjectId) -> bytes:
    return entity.to_bytes(_ENTITY_BYTES, "big")


def _entity(key: bytes) -> ObjectId:
    return ObjectId(int.from_bytes(key[:_ENTITY_BYTES], "big"))


def _find_head(rows: RealmReader, name: str, *, fresh: bool) -> Head | None:
    try:
        return read_head(rows, name, fresh=fresh)
    except NotFoundError:
        return None
