"""Who may do what in a realm: the objects that stand under its named pointers.

An entity keeps its ``entity`` number through every change of its object; grants name their two ends by it.
"""

from __future__ import annotations

from headwater.clock import Micros
from headwater.realms.root_credentials import Credentials, CredentialsHash, verify_secret
from headwater.store import ObjectId, StoredObject, object_type


@object_type("container")
class Container(StoredObject, frozen=True, kw_only=True):
    """The securable that grants for a whole realm refer to."""

    entity: ObjectId
    name: str
    created: Micros = Micros(0)


@object_type("principal")
class Principal(StoredObject, frozen=True, kw_only=True):
    """Somebody who can log in.

    former        the credentials before these, as long as they hold; ``former_until`` is None until others take their place
    renewed       when the credentials last changed; None: they are the first
    """

    entity: ObjectId
    name: str
    credentials: CredentialsHash
    created: Micros = Micros(0)
    former: CredentialsHash | None = None
    former_until: Micros | None = None
    renewed: Micros | None = None

    @property
    def clients(self) -> tuple[str, ...]:
        """The client ids that may be good for something."""
        return (self.credentials.client_id, *((self.former.client_id,) if self.former else ()))

    def accepts(self, credentials: Credentials, *, now: Micros) -> bool:
        """Whether these are its credentials at a time."""
        is_over = self.former_until is not None and now >= self.former_until
        held = (self.credentials, None if is_over else self.former)
        return any(
            one is not None and one.client_id == credentials.client_id and verify_secret(one, credentials) for one in held
        )


@object_type("principal-role")
class PrincipalRole(StoredObject, frozen=True, kw_only=True):
    """A role that is given to principals."""

    entity: ObjectId
    name: str
    created: Micros = Micros(0)


@object_type("grant")
class Grant(StoredObject, frozen=True, kw_only=True):
    """``grantee`` holds ``privilege`` on ``securable``; both are entity numbers: names, so a grant keeps no object alive."""

    securable: ObjectId
    grantee: ObjectId
    privilege: str
    created: Micros = Micros(0)


def grant_key(securable: ObjectId, grantee: ObjectId, privilege: str) -> bytes:
    """Eight bytes each for securable and grantee, then the privilege: a prefix finds all grants on a securable."""
    return securable.to_bytes(8, "big") + grantee.to_bytes(8, "big") + privilege.encode()
