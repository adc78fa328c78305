"""Principals, roles and policies before and after a plan, field by field in the words of manifests: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.policies import KIND_FIELDS, PolicyKind, StoredPolicy, policy_form
from headwater.reconcile.access_actions import (
    AssignCatalogRole,
    AssignPrincipalRole,
    CreateCatalogRole,
    CreatePrincipalRole,
    DisablePrincipal,
    DropCatalogRole,
    DropPrincipalRole,
    EnablePrincipal,
    GrantInCatalog,
    GrantOnRealm,
    ProvidePrincipal,
    RetirePrincipal,
    RevokeInCatalog,
    RevokeOnRealm,
    UnassignCatalogRole,
    UnassignPrincipalRole,
    grant_texts,
)
from headwater.reconcile.actions import Action
from headwater.reconcile.observed_access import SeenCatalogAccess, SeenRealmAccess

AccessFields = dict[str, set[str] | bool]
"""A field such as ``roles.analysts.privileges`` or ``principals.ann.disabled`` to its value."""
SHOWN_BY_FIELDS = (
    *(CreatePrincipalRole, DropPrincipalRole, GrantOnRealm, RevokeOnRealm, AssignPrincipalRole, UnassignPrincipalRole),
    *(CreateCatalogRole, DropCatalogRole, GrantInCatalog, RevokeInCatalog, AssignCatalogRole, UnassignCatalogRole),
    *(EnablePrincipal, DisablePrincipal),
)
"""The actions that do nothing beyond what fields show; the others also make or remove credentials."""


def realm_access_fields(seen: SeenRealmAccess | None) -> AccessFields:
    """The fields of the principal roles and principals that a realm has; none where they were not read."""
    fields: AccessFields = {}
    for name, privileges in (seen.roles if seen else {}).items():
        fields[_privileges(name)] = set(privileges)
    for name, principal in (seen.principals if seen else {}).items():
        fields[_roles(name)] = set(principal.roles)
        fields[_disabled(name)] = principal.is_disabled
    return fields


def catalog_access_fields(seen: SeenCatalogAccess | None, catalog: str) -> AccessFields:
    """The fields of the roles that a catalog has; none where they were not read."""
    fields: AccessFields = {}
    for name, role in (seen.roles if seen else {}).items():
        fields[_grants(name)] = set(grant_texts(role.grants, catalog))
        fields[_granted_to(name)] = set(role.granted_to)
    return fields


def realm_fields_after(fields: Mapping[str, set[str] | bool], plan: Iterable[Action]) -> AccessFields:
    """The fields of a realm once a plan is carried out."""
    after: AccessFields = {name: value if isinstance(value, bool) else set(value) for name, value in fields.items()}
    for action in plan:
        match action:
            case CreatePrincipalRole(role):
                after[_privileges(role)] = set()
            case DropPrincipalRole(role):
                after.pop(_privileges(role), None)
                for name in [name for name in after if name.startswith("principals.") and name.endswith(".roles")]:
                    _set(after, name).discard(role)
            case GrantOnRealm(role, privileges):
                _set(after, _privileges(role)).update(privileges)
            case RevokeOnRealm(role, privileges):
                _set(after, _privileges(role)).difference_update(privileges)
            case ProvidePrincipal(principal):
                _set(after, _roles(principal))
                after[_disabled(principal)] = False
            case EnablePrincipal(principal):
                after[_disabled(principal)] = False
            case DisablePrincipal(principal) | RetirePrincipal(principal):
                after[_disabled(principal)] = True
            case AssignPrincipalRole(principal, role):
                _set(after, _roles(principal)).add(role)
            case UnassignPrincipalRole(principal, role):
                _set(after, _roles(principal)).discard(role)
    return after


def catalog_fields_after(fields: Mapping[str, set[str] | bool], plan: Iterable[Action], catalog: str) -> AccessFields:
    """The fields of a catalog once a plan is carried out. The principal and the principal role of its connection are no fields of it."""
    after: AccessFields = {name: value if isinstance(value, bool) else set(value) for name, value in fields.items()}
    for action in plan:
        match action:
            case CreateCatalogRole(role):
                after[_grants(role)], after[_granted_to(role)] = set(), set()
            case DropCatalogRole(role):
                after.pop(_grants(role), None)
                after.pop(_granted_to(role), None)
            case GrantInCatalog(role, grants):
                _set(after, _grants(role)).update(grant_texts(grants, catalog))
            case RevokeInCatalog(role, grants):
                _set(after, _grants(role)).difference_update(grant_texts(grants, catalog))
            case AssignCatalogRole(role, holder):
                _set(after, _granted_to(role)).add(holder)
            case UnassignCatalogRole(role, holder):
                _set(after, _granted_to(role)).discard(holder)
    return after


def policy_fields(policies: Iterable[StoredPolicy], kinds: Iterable[PolicyKind]) -> dict[str, Any]:
    """The fields of the catalog's own policies of these kinds. A rule of snapshots is named by its branches; their order counts, too."""
    fields: dict[str, Any] = {}
    own = {policy.kind: policy for policy in policies if policy.content_id is None}
    for policy in (own[kind] for kind in kinds if kind in own):
        name = f"policies.{KIND_FIELDS[policy.kind]}"
        said = policy_form(policy)[KIND_FIELDS[policy.kind]]
        if policy.kind is PolicyKind.SNAPSHOTS:
            fields[f"{name}[].branches"] = [rule["branches"] for rule in said]
            for rule in said:
                fields |= {f"{name}[{rule['branches']}].{key}": value for key, value in rule.items() if key != "branches"}
        else:
            fields |= {f"{name}.{key}": value for key, value in said.items()}
    return fields


def _privileges(role: str) -> str:
    return f"roles.{role}.privileges"


def _grants(role: str) -> str:
    return f"roles.{role}.grants"


def _granted_to(role: str) -> str:
    return f"roles.{role}.grantedTo"


def _roles(principal: str) -> str:
    return f"principals.{principal}.roles"


def _disabled(principal: str) -> str:
    return f"principals.{principal}.disabled"


def _set(fields: AccessFields, name: str) -> set[str]:
    value = fields.setdefault(name, set())
    assert isinstance(value, set)
    return value
