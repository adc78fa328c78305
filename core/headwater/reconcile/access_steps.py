"""The steps that bring roles, principals and grants to what a manifest declares. Each may be repeated, and interrupted anywhere."""

from __future__ import annotations

from collections.abc import Callable

from headwater.catalogs import CatalogDefinition, CatalogRoles
from headwater.errors import ConflictError, NotFoundError, RefusedError, SwapConflictError
from headwater.realms import (
    Credentials,
    Realm,
    RealmRegistry,
    assign_principal_role,
    create_principal,
    create_principal_role,
    disable_principal,
    drop_principal_role,
    enable_principal,
    find_principal,
    grant_on_realm,
    hash_credentials,
    list_principal_roles,
    new_credentials,
    reset_principal,
    revoke_on_realm,
    unassign_principal_role,
    verify_secret,
)
from headwater.reconcile import access_actions as access
from headwater.reconcile.access_actions import IN_CATALOG, AccessAction, done_sentence
from headwater.reconcile.credentials_sink import CredentialsSink
from headwater.reconcile.declared_access import CONNECTION
from headwater.reconcile.manifests import ROTATE_PRINCIPAL
from headwater.store import ObjectId, RealmId


class AccessSteps:
    """Takes the steps in one realm, or in one catalog of it.

    check_unchanged  raises SwapConflictError if the realm or the catalog is not the one that the plan is based on any more
    """

    def __init__(
        self,
        realms: RealmRegistry,
        realm: Realm,
        credentials: CredentialsSink,
        *,
        check_unchanged: Callable[[], None],
        catalog: CatalogDefinition | None = None,
    ) -> None:
        self._realms = realms
        self._realm = realm
        self._id: RealmId = realm.id
        self._credentials = credentials
        self._check_unchanged = check_unchanged
        self._catalog = catalog

    def take_step(self, action: AccessAction) -> str | None:
        """Take a step, and tell what it did; None when nothing was left to do.

        raises        SwapConflictError where the role or principal is gone that the plan saw: observe again, then decide
        """
        try:
            is_done = self._take_with_credentials(action) or self._give(action) or self._take_away(action)
        except NotFoundError as gone:
            raise SwapConflictError(str(gone)) from gone
        return done_sentence(action, self._subject(action)) if is_done else None

    def _subject(self, action: AccessAction) -> str:
        realm = f"realm {self._id}"
        return f"catalog {self._catalog.name} of {realm}" if self._catalog and isinstance(action, IN_CATALOG) else realm

    def _take_with_credentials(self, action: AccessAction) -> bool:
        match action:
            case access.ProvidePrincipal(principal):
                self._provide(principal, self._credentials.of_principal(principal))
            case access.ProvideConnection(form):
                self._provide(form.principal, self._credentials.of_connection(form))
            case access.RemoveCredentials(principal):
                return self._remove(self._credentials.of_principal(principal))
            case access.RemoveConnection(form):
                return self._remove(self._credentials.of_connection(form))
            case access.RotatePrincipal(principal, token, form):
                place = self._credentials.of_principal(principal) if form is None else self._credentials.of_connection(form)
                return self._rotate(principal, place, token)
            case _:
                return False
        return True

    def _give(self, action: AccessAction) -> bool:
        match action:
            case access.CreatePrincipalRole(role):
                create_principal_role(self._realms, self._id, role)
            case access.GrantOnRealm(role, privileges):
                for privilege in privileges:
                    grant_on_realm(self._realms, self._id, role, privilege)
            case access.EnablePrincipal(principal):
                enable_principal(self._realms, self._id, principal)
            case access.AssignPrincipalRole(principal, role):
                assign_principal_role(self._realms, self._id, role, principal)
            case access.CreateCatalogRole(role):
                self._catalog_roles.create_role(role)
            case access.GrantInCatalog(role, grants):
                self._catalog_roles.put_grants(role, grants)
            case access.AssignCatalogRole(role, principal_role):
                self._catalog_roles.assign_role(role, self._entity(principal_role))
            case _:
                return False
        return True

    def _take_away(self, action: AccessAction) -> bool:
        """Take rights away; of a role that is gone, they are gone, too."""
        try:
            return self._taken_away(action)
        except NotFoundError:
            return False

    def _taken_away(self, action: AccessAction) -> bool:
        match action:
            case access.DropPrincipalRole(role):
                drop_principal_role(self._realms, self._id, role)
            case access.RevokeOnRealm(role, privileges):
                for privilege in privileges:
                    revoke_on_realm(self._realms, self._id, role, privilege)
            case access.RetirePrincipal(principal):
                return self._retire(principal)
            case access.RetireConnection(form):
                return self._retire(form.principal)
            case access.DisablePrincipal(principal):
                disable_principal(self._realms, self._id, principal)
            case access.UnassignPrincipalRole(principal, role):
                unassign_principal_role(self._realms, self._id, role, principal)
            case access.DropCatalogRole(role):
                self._catalog_roles.drop_role(role)
            case access.RevokeInCatalog(role, grants):
                self._catalog_roles.remove_grants(role, grants)
            case access.UnassignCatalogRole(role, principal_role):
                self._catalog_roles.unassign_role(role, self._entity(principal_role))
            case _:
                return False
        return True

    def _provide(self, name: str, place: CredentialsSink) -> None:
        """Keep credentials, then give them to the principal: wherever this is interrupted, it ends with the one kept set."""
        kept = place.write_credentials(self._id, new_credentials())
        principal = find_principal(self._realms, self._id, name)
        if principal is None:
            self._create(name, kept)
            return
        is_right = verify_secret(principal.credentials, kept)
        if not is_right and principal.disabled is None and not name.startswith(CONNECTION):
            raise ConflictError(
                f"principal {name} of realm {self._id!r} has other credentials than those in {place.place(self._id)}, by somebody else "
                f"at the same time: annotate {ROTATE_PRINCIPAL}: {name}:<any word> to have new ones made"
            )
        if not is_right:
            replaced = principal.credentials.client_id
            reset_principal(self._realms, self._id, name, hash_credentials(kept), replaces=replaced)
        if principal.disabled is not None:
            enable_principal(self._realms, self._id, name)

    def _create(self, name: str, kept: Credentials) -> None:
        try:
            create_principal(self._realms, self._id, name, hash_credentials(kept))
        except RefusedError as beaten:
            # another process created it meanwhile, or the realm is not ACTIVE any more: observe again to see which
            raise SwapConflictError(str(beaten)) from beaten

    def _rotate(self, name: str, place: CredentialsSink, token: str) -> bool:
        """Keep new credentials under the token, then give them to the principal; a token that was used before makes none."""
        made = new_credentials()
        kept = place.rotate_credentials(self._id, made, token)
        principal = find_principal(self._realms, self._id, name)
        if principal is not None and verify_secret(principal.credentials, kept):
            return kept == made
        reset_principal(self._realms, self._id, name, hash_credentials(kept))
        return True

    def _retire(self, name: str) -> bool:
        """Disable the principal: its credentials open nothing then, and are still there if it is declared again."""
        held = find_principal(self._realms, self._id, name)
        if held is None or held.disabled is not None:
            return False
        disable_principal(self._realms, self._id, name)
        return True

    def _remove(self, place: CredentialsSink) -> bool:
        """Returns whether there were any."""
        removed: list[str] = []

        def confirm() -> None:
            self._check_unchanged()
            removed.append(place.place(self._id))

        place.remove_credentials(self._id, confirm)
        return bool(removed)

    @property
    def _catalog_roles(self) -> CatalogRoles:
        if self._catalog is None:
            raise RefusedError(f"roles of a catalog of realm {self._id!r} cannot be changed without the catalog")
        return CatalogRoles(self._realms.open_realm(self._id), self._catalog)

    def _entity(self, role: str) -> ObjectId:
        found = next((known for known in list_principal_roles(self._realms, self._id) if known.name == role), None)
        if found is None:
            raise NotFoundError(f"realm {self._id!r} has no principal role {role!r}")
        return found.entity
