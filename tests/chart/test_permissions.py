"""Roles: what the operator asks for and nothing else, where it looks and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from rendered_chart import NAMESPACE, VALUE_SETS, Rendered, render

from headwater_operator.permissions import LEASE_PERMISSIONS, PERMISSIONS, SCHEMA_PERMISSIONS, Permission
from headwater_operator.runtime.operator_settings import OperatorSettings

Document = Mapping[str, Any]


def permissions(roles: Iterable[Document]) -> set[Permission]:
    return {
        Permission(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def granted(rendered: Rendered, account: str) -> dict[str, set[Permission]]:
    """What is bound to a service account, by namespace; everywhere under an empty name."""
    found: dict[str, set[Permission]] = {}
    for binding in (*rendered.of("RoleBinding"), *rendered.of("ClusterRoleBinding")):
        if account in [subject["name"] for subject in binding["subjects"]]:
            role = (
                rendered.one(binding["roleRef"]["kind"], binding["roleRef"]["name"])
                if binding["kind"] == "ClusterRoleBinding"
                else None
            )
            namespace = binding["metadata"].get("namespace", "")
            roles = (
                [role]
                if role
                else [
                    one
                    for one in rendered.of(binding["roleRef"]["kind"])
                    if (one["metadata"]["name"], one["metadata"].get("namespace", ""))
                    == (binding["roleRef"]["name"], namespace)
                ]
            )
            assert roles
            found[namespace] = found.get(namespace, set()) | permissions(roles)
    return found


def operators(rendered: Rendered) -> dict[str, set[Permission]]:
    return granted(rendered, rendered.pod("-operator").spec["serviceAccountName"])


def test_operator_may_do_just_what_it_asks_for() -> None:
    assert operators(render()) == {"": {*PERMISSIONS, *SCHEMA_PERMISSIONS}, NAMESPACE: set(LEASE_PERMISSIONS)}


def test_operator_of_some_namespaces_may_nothing_beyond_them() -> None:
    assert operators(render("namespaced")) == {
        "team-a": set(PERMISSIONS),
        "team-b": set(PERMISSIONS),
        NAMESPACE: set(LEASE_PERMISSIONS),
    }
    assert render("namespaced").of("ClusterRole") == render("namespaced").of("ClusterRoleBinding") == []


def test_operator_without_a_lease_may_not_touch_leases() -> None:
    assert operators(render("minimal")) == {"": {*PERMISSIONS, *SCHEMA_PERMISSIONS}}


def test_lease_that_may_be_changed_is_the_operators_own() -> None:
    rules = render().one("Role", "-operator-lease")["rules"]

    assert [rule.get("resourceNames") for rule in rules if set(rule["verbs"]) == {"create"}] == [None]
    assert [rule["resourceNames"] for rule in rules if "update" in rule["verbs"]] == [[OperatorSettings().lease_name]]


def test_secrets_are_never_listed_or_watched() -> None:
    verbs = {
        one.verb
        for values in VALUE_SETS
        for found in operators(render(values)).values()
        for one in found
        if one.resource == "secrets"
    }

    assert verbs == {"create", "delete", "get", "update"}


@pytest.mark.parametrize("values", VALUE_SETS)
def test_no_role_has_a_wildcard(values: str) -> None:
    rendered = render(values)
    words = {
        word
        for role in (*rendered.of("Role"), *rendered.of("ClusterRole"))
        for rule in role["rules"]
        for key in ("apiGroups", "resources", "verbs")
        for word in rule[key]
    }

    assert "*" not in words


@pytest.mark.parametrize("values", [values for values in VALUE_SETS if values not in ("minimal", "everything")])
def test_workers_have_no_rights_unless_they_start_executors(values: str) -> None:
    assert granted(render(values), render(values).pod("-worker").spec["serviceAccountName"]) == {}


def test_workers_that_start_executors_may_have_pods_beside_themselves() -> None:
    rendered = render("everything")
    found = granted(rendered, rendered.pod("-worker").spec["serviceAccountName"])

    assert set(found) == {NAMESPACE}
    assert {(one.group, one.resource) for one in found[NAMESPACE]} == {("", "pods")}


def test_roles_can_be_left_to_others() -> None:
    kinds = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}

    assert [one for one in render("everything", "rbac.create=false").documents if one["kind"] in kinds] == []


@pytest.mark.parametrize(
    ("role", "verbs"),
    [
        ("view", {"get", "list", "watch"}),
        ("edit", {"get", "list", "watch", "create", "delete", "patch", "update"}),
        ("admin", {"get", "list", "watch", "create", "delete", "patch", "update", "deletecollection"}),
    ],
)
def test_people_have_the_same_rights_on_our_kinds(role: str, verbs: set[str]) -> None:
    label = f"rbac.authorization.k8s.io/aggregate-to-{role}"
    ours = [one for one in render().of("ClusterRole") if one["metadata"]["labels"].get(label) == "true"]

    assert {one.verb for one in permissions(ours)} == verbs
    assert {one.group for one in permissions(ours)} == {"headwater.dev"}
    assert {one.resource for one in permissions(ours) if one.verb not in ("get", "list", "watch")} <= {"realms", "catalogs"}
