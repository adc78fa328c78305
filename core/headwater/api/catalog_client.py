"""A catalog of a realm: its definition, its branches and tags, its roles; policies and its lake's files stand in the modules beside."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headwater.api.access_client import AccessInfo, RoleClient, create_role, list_role_infos, tell_access
from headwater.api.api_values import RoleInfo, several
from headwater.api.catalog_lake import CatalogLake
from headwater.api.catalog_policies import CatalogPolicies
from headwater.api.catalog_values import CatalogInfo, RefInfo
from headwater.api.engine_infos import ClientConfigs
from headwater.api.ref_client import BranchClient, RefClient, TagClient
from headwater.api.role_owners import RoleScope
from headwater.api.store_session import StoreSession
from headwater.catalogs import Catalog, ReferenceExpression, RefKind
from headwater.errors import RefusedError
from headwater.store import id_of


class CatalogClient(CatalogPolicies, CatalogLake, ClientConfigs):
    """A catalog of a realm. Nothing is read before a method is called."""

    def __init__(self, session: StoreSession, realm: str, name: str) -> None:
        self._session = session
        self.realm = realm
        self.name = name

    def info(self) -> CatalogInfo:
        """Read its definition; raises NotFoundError."""
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).read_catalog(self.name))

    def branch(self, name: str | None = None) -> BranchClient:
        """A branch by its name; None: the default branch, which is looked up now."""
        chosen = self.info().default_branch if name is None else name
        return BranchClient(self._session, self.realm, self.name, chosen)

    def tag(self, name: str) -> TagClient:
        """A tag by its name."""
        return TagClient(self._session, self.realm, self.name, name)

    def ref(self, name: str) -> RefClient:
        """A branch, a tag, a commit's hash, or a way back such as ``main~2``, to be read."""
        return RefClient(self._session, self.realm, self.name, name)

    def branches(self, *, where: str | None = None) -> list[RefInfo]:
        """Its branches, by name.

        where         a condition in CEL, such as ``ref.name.startsWith('etl/')``, see docs/reference/filters.md
        """
        return self._listed(RefKind.BRANCH, where)

    def tags(self, *, where: str | None = None) -> list[RefInfo]:
        """Its tags, by name.

        where         as for ``branches``
        """
        return self._listed(RefKind.TAG, where)

    def deleted_branches(self) -> list[RefInfo]:
        """Deleted branches that can still be undeleted, by name, each with until when."""
        return self._deleted(RefKind.BRANCH)

    def deleted_tags(self) -> list[RefInfo]:
        """Deleted tags that can still be undeleted, by name, each with until when."""
        return self._deleted(RefKind.TAG)

    def create_branch(self, name: str, *, source: str | None = None, at: str | None = None) -> BranchClient:
        """Create a branch where a branch, a tag or a commit is; None: at the default branch.

        at            a commit of the source's history; None: its head
        raises        ConflictError where the name is taken
        """
        self._opened().refs.create_ref(RefKind.BRANCH, name, source=source, at=None if at is None else id_of(at))
        return self.branch(name)

    def create_tag(self, name: str, *, source: str | None = None, at: str | None = None) -> TagClient:
        """Create a tag, as ``create_branch`` does a branch."""
        self._opened().refs.create_ref(RefKind.TAG, name, source=source, at=None if at is None else id_of(at))
        return self.tag(name)

    def release(self) -> CatalogInfo:
        """Clear the owner of the catalog, so that any resource of its realm may adopt it."""
        catalogs = self._session.catalogs(self.realm)
        return CatalogInfo.of(self.realm, catalogs.update_catalog(catalogs.read_catalog(self.name), manager=None, former=None))

    def delete(self, *, confirm: str) -> CatalogInfo:
        """Delete it with all its branches and tags; until its hold is over it can be undeleted. No file of a table is touched.

        confirm       REALM/CATALOG, repeated; raises RefusedError for anything else
        """
        self._check_confirmed(confirm, "deleted")
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).delete_catalog(self.name))

    def undelete(self, *, new_name: str | None = None) -> CatalogInfo:
        """Bring the catalog of this name back that was deleted last."""
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).undelete_catalog(self.name, new_name=new_name))

    def purge(self, *, confirm: str) -> CatalogInfo:
        """End the hold of a deleted catalog now. There is no way back; collections remove what it held."""
        self._check_confirmed(confirm, "purged")
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).purge_catalog(self.name))

    def roles(self) -> list[RoleInfo]:
        """The roles of the catalog."""
        return list_role_infos(self._session, self._scope)

    def role(self, name: str) -> RoleClient:
        """A role of the catalog by its name."""
        return RoleClient(self._session, self._scope, name)

    def create_role(self, name: str, *holders: str) -> RoleClient:
        """Create a role of the catalog, and assign it to principal roles; one that is there stays."""
        return create_role(self._session, self._scope, name, holders)

    def explain_access(
        self, principal: str, privilege: str, *, on: str | None = None, ref: str | None = None, roles: str | Sequence[str] = ()
    ) -> AccessInfo:
        """Whether a principal may do something in the catalog through a server, by which grant, or what comes near it.

        on            as for ``RoleClient.grant``; None: the catalog
        ref           through which branch, tag or commit; None: the default branch
        roles         as if it had these principal roles, too
        """
        return tell_access(self._session, self._scope, principal, privilege, on=on, ref=ref, roles=several(roles))

    @property
    def _scope(self) -> RoleScope:
        return RoleScope(self.realm, self.name)

    def _opened(self) -> Catalog:
        return self._session.catalog(self.realm, self.name)

    def _listed(self, kind: RefKind, where: str | None) -> list[RefInfo]:
        expression = None if where is None else ReferenceExpression.parse(where)
        return list(map(RefInfo.of, self._opened().refs.list_page(kind=kind, where=expression).refs))

    def _deleted(self, kind: RefKind) -> list[RefInfo]:
        catalog = self._opened()
        grace = timedelta(seconds=catalog.settings.reader_grace_seconds)
        return [RefInfo.of(named, deleted=at, grace=grace) for named, at in catalog.refs.list_deleted(kind)]

    def _check_confirmed(self, confirm: str, done: str) -> None:
        wanted = f"{self.realm}/{self.name}"
        if confirm != wanted:
            raise RefusedError(f"nothing was {done}: confirm={confirm[:200]!r} does not repeat {wanted!r}")

    def __repr__(self) -> str:
        return f"CatalogClient({self.realm}/{self.name})"
