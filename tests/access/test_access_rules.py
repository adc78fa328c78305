"""Decisions of access rules, against an oracle that tries every rule in the plainest way."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.access import (
    INCLUDED,
    PRIVILEGES,
    AccessRule,
    AccessRules,
    Privilege,
    ReferenceName,
    Securable,
    SecurableKind,
    check_grantable,
    explain_access,
    parse_privilege,
)
from headwater.errors import RefusedError

K = SecurableKind
MAIN = ReferenceName("main", is_default=True)
DEV = ReferenceName("dev")
HASH = ReferenceName(None)
ONE, TWO = UUID(int=1), UUID(int=2)


def table(*path: str, content_id: UUID | None = None) -> Securable:
    return Securable(kind=K.TABLE, catalog="lake", path=path, content_id=content_id)


def namespace(*path: str) -> Securable:
    return Securable(kind=K.NAMESPACE, catalog="lake", path=path)


CATALOG = Securable(kind=K.CATALOG, catalog="lake")
REALM = Securable(kind=K.REALM)


def rules(*given_rules: tuple[Privilege, Securable, str]) -> AccessRules:
    return AccessRules([AccessRule(privilege=privilege, on=on, references=where) for privilege, on, where in given_rules])


def test_empty_rules_allow_nothing() -> None:
    assert not any(AccessRules().allows(privilege, table("a", "t"), MAIN) for privilege in Privilege)


def test_right_on_a_namespace_holds_below_it_alone() -> None:
    held = rules((Privilege.TABLE_READ_DATA, namespace("sales"), ""))

    assert held.allows(Privilege.TABLE_READ_PROPERTIES, table("sales", "eu", "t"), MAIN)
    assert not held.allows(Privilege.TABLE_READ_PROPERTIES, table("salesforce", "t"), MAIN)
    assert not held.allows(Privilege.TABLE_WRITE_DATA, table("sales", "t"), MAIN)


def test_right_on_a_content_id_follows_a_rename() -> None:
    held = rules((Privilege.TABLE_READ_DATA, Securable(kind=K.TABLE, catalog="lake", content_id=ONE), ""))

    assert held.allows(Privilege.TABLE_READ_DATA, table("elsewhere", content_id=ONE), MAIN)
    assert not held.allows(Privilege.TABLE_READ_DATA, table("elsewhere", content_id=TWO), MAIN)


def test_right_on_a_key_stays_with_the_key() -> None:
    held = rules((Privilege.TABLE_READ_DATA, table("a", "t"), ""))

    assert held.allows(Privilege.TABLE_READ_DATA, table("a", "t", content_id=TWO), MAIN)
    assert not held.allows(Privilege.TABLE_READ_DATA, table("a", "t", "below"), MAIN)
    assert not held.allows(Privilege.VIEW_READ_PROPERTIES, Securable(kind=K.VIEW, catalog="lake", path=("a", "t")), MAIN)


def test_right_without_references_holds_on_the_default_branch_alone() -> None:
    held = rules((Privilege.TABLE_READ_DATA, CATALOG, ""))

    assert [held.allows(Privilege.TABLE_LIST, table("t"), where) for where in (MAIN, DEV, HASH)] == [True, False, False]


def test_bare_hash_is_on_every_reference_only() -> None:
    on_all = rules((Privilege.TABLE_READ_DATA, CATALOG, "*"))
    on_some = rules((Privilege.TABLE_READ_DATA, CATALOG, "d*"))

    assert on_all.allows(Privilege.TABLE_LIST, table("t"), HASH)
    assert [on_some.allows(Privilege.TABLE_LIST, table("t"), where) for where in (MAIN, DEV, HASH)] == [False, True, False]


def test_pattern_has_no_sign_but_the_star() -> None:
    held = rules((Privilege.TABLE_READ_DATA, CATALOG, "d[ab]?"))

    assert not held.allows(Privilege.TABLE_LIST, table("t"), ReferenceName("dax"))
    assert held.allows(Privilege.TABLE_LIST, table("t"), ReferenceName("d[ab]?"))


def test_right_on_a_catalog_is_none_on_the_realm() -> None:
    held = rules((Privilege.CATALOG_FULL_METADATA, CATALOG, ""))

    assert held.allows(Privilege.CATALOG_DROP, CATALOG, MAIN)
    assert not held.allows(Privilege.CATALOG_CREATE, REALM, MAIN)


def test_right_on_references_is_bound_to_their_pattern() -> None:
    held = rules((Privilege.REFERENCE_CREATE, Securable(kind=K.REFERENCE, catalog="lake", pattern="dev-*"), ""))
    wanted = Securable(kind=K.REFERENCE, catalog="lake")

    assert held.allows(Privilege.REFERENCE_CREATE, wanted, ReferenceName("dev-1"))
    assert not held.allows(Privilege.REFERENCE_CREATE, wanted, ReferenceName("main", is_default=True))
    assert not held.allows(Privilege.REFERENCE_DROP, wanted, ReferenceName("dev-1"))


def test_management_of_content_on_some_branches_is_none_of_others() -> None:
    held = rules((Privilege.CATALOG_MANAGE_CONTENT, CATALOG, "dev-*"))
    wanted = Securable(kind=K.REFERENCE, catalog="lake")

    assert held.allows(Privilege.REFERENCE_ASSIGN, wanted, ReferenceName("dev-1"))
    assert not held.allows(Privilege.REFERENCE_ASSIGN, wanted, ReferenceName("main", is_default=True))


def test_management_of_the_realm_includes_everything() -> None:
    held = rules((Privilege.SERVICE_MANAGE_ACCESS, REALM, "*"))

    assert all(held.allows(privilege, table("t"), HASH) for privilege in Privilege)
    assert INCLUDED[Privilege.SERVICE_MANAGE_ACCESS] == set(Privilege)


def test_management_of_metadata_reads_no_data() -> None:
    assert Privilege.TABLE_READ_DATA not in INCLUDED[Privilege.CATALOG_MANAGE_METADATA]
    assert Privilege.CATALOG_MANAGE_ACCESS not in INCLUDED[Privilege.CATALOG_MANAGE_CONTENT]


def test_explanation_names_the_rule_or_those_near_it() -> None:
    held = rules((Privilege.TABLE_READ_DATA, namespace("sales"), "dev"))

    assert str(explain_access(held, Privilege.TABLE_LIST, table("sales", "t"), DEV).rule) == (
        "TABLE_READ_DATA on namespace sales of catalog lake on dev"
    )
    assert explain_access(held, Privilege.TABLE_LIST, table("sales", "t"), MAIN).near == tuple(held.rules)


def test_rule_that_reaches_a_reference_is_one_that_holds_there() -> None:
    held = rules((Privilege.TABLE_READ_DATA, namespace("sales"), "dev"))

    assert [held.reaches(where) for where in (MAIN, DEV, HASH)] == [False, True, False]
    assert not rules((Privilege.TASK_READ, REALM, "*")).reaches(MAIN)


@pytest.mark.parametrize("privilege", Privilege)
def test_privilege_can_be_granted_on_the_kinds_that_it_names(privilege: Privilege) -> None:
    for kind in SecurableKind:
        if kind in PRIVILEGES[privilege].kinds:
            check_grantable(privilege, kind)
        else:
            with pytest.raises(RefusedError, match="cannot be granted on a"):
                check_grantable(privilege, kind)


def test_unknown_privilege_is_refused_with_near_ones() -> None:
    assert parse_privilege("table-read-data") is Privilege.TABLE_READ_DATA
    with pytest.raises(RefusedError, match="name one of TABLE_CREATE, "):
        parse_privilege("TABLE_READ")


# the oracle

NAMES = ("a", "b", "c")
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple)
IDS = st.sampled_from([ONE, TWO])
PATTERNS = st.sampled_from(["", "*", "main", "dev", "d*", "*v"])
REFERENCES = st.sampled_from([MAIN, DEV, HASH, ReferenceName("main"), ReferenceName("other", is_default=True)])


def granted() -> st.SearchStrategy[Securable]:
    return st.one_of(
        st.just(REALM),
        st.just(CATALOG),
        st.builds(lambda path: namespace(*path), PATHS),
        st.builds(
            lambda kind, path: Securable(kind=kind, catalog="lake", path=path), st.sampled_from([K.TABLE, K.VIEW]), PATHS
        ),
        st.builds(
            lambda kind, one: Securable(kind=kind, catalog="lake", content_id=one), st.sampled_from([K.TABLE, K.VIEW]), IDS
        ),
        st.builds(lambda pattern: Securable(kind=K.REFERENCE, catalog="lake", pattern=pattern), PATTERNS.filter(bool)),
    )


def asked() -> st.SearchStrategy[Securable]:
    return st.one_of(
        st.sampled_from([REALM, CATALOG, Securable(kind=K.REFERENCE, catalog="lake")]),
        st.builds(lambda path: namespace(*path), PATHS),
        st.builds(
            lambda kind, path, one: Securable(kind=kind, catalog="lake", path=path, content_id=one),
            st.sampled_from([K.TABLE, K.VIEW]),
            PATHS,
            st.none() | IDS,
        ),
    )


RULES = st.lists(
    st.builds(lambda privilege, on, where: AccessRule(privilege=privilege, on=on, references=where),
              st.sampled_from(Privilege), granted(), PATTERNS),
    max_size=8,
)  # fmt: skip


def closure(privilege: Privilege) -> set[Privilege]:
    return {privilege}.union(*(closure(each) for each in PRIVILEGES[privilege].includes))


def matches(pattern: str, reference: ReferenceName) -> bool:
    if pattern == "":
        return reference.is_default
    if reference.name is None:
        return pattern == "*"
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), reference.name) is not None


def oracle(rule: AccessRule, privilege: Privilege, on: Securable, reference: ReferenceName) -> bool:
    if privilege not in closure(rule.privilege):
        return False
    grant = rule.on
    is_everywhere = rule.privilege.value.startswith(("REFERENCE_", "SERVICE_", "CATALOG_MANAGE_"))
    pattern = grant.pattern if grant.kind is K.REFERENCE else rule.references or ("*" if is_everywhere else "")
    if on.kind is K.REALM:
        return grant.kind is K.REALM
    if on.kind is K.CATALOG:
        return grant.kind in (K.REALM, K.CATALOG)
    if not matches(pattern, reference):
        return False
    if grant.kind in (K.REALM, K.CATALOG):
        return True
    if on.kind is K.REFERENCE or grant.kind is K.REFERENCE:
        return on.kind is grant.kind
    if grant.kind is K.NAMESPACE:
        is_below = on.path[: len(grant.path)] == grant.path
        return is_below and (on.kind is K.NAMESPACE or len(on.path) > len(grant.path))
    if grant.content_id is not None:
        return grant.content_id == on.content_id
    return grant.kind is on.kind and grant.path == on.path


@given(held=RULES, privilege=st.sampled_from(Privilege), on=asked(), reference=REFERENCES)
def test_decision_is_that_of_the_oracle(
    held: list[AccessRule], privilege: Privilege, on: Securable, reference: ReferenceName
) -> None:
    found = AccessRules(held).find_rule(privilege, on, reference)

    assert (found is not None) == any(oracle(rule, privilege, on, reference) for rule in held)
    assert found is None or oracle(found, privilege, on, reference)
