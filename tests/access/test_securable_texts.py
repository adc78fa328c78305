"""What a grant is on, as people write it: read back as it was written, and made into the grant that is stored."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.access import (
    PRIVILEGES,
    Privilege,
    Securable,
    SecurableKind,
    checked_pattern,
    make_grant,
    parse_securable,
    rule_of,
    securable_text,
)
from headwater.errors import RefusedError

K = SecurableKind
ID = UUID(int=7)
ELEMENTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=6)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
IN_A_CATALOG = st.one_of(
    st.just(Securable(kind=K.CATALOG, catalog="lake")),
    st.builds(
        lambda kind, path: Securable(kind=kind, catalog="lake", path=path),
        st.sampled_from([K.NAMESPACE, K.TABLE, K.VIEW]),
        PATHS,
    ),
    st.builds(
        lambda kind, number: Securable(kind=kind, catalog="lake", content_id=number),
        st.sampled_from([K.TABLE, K.VIEW]),
        st.uuids(),
    ),
    st.builds(lambda pattern: Securable(kind=K.REFERENCE, catalog="lake", pattern=pattern), ELEMENTS),
)


@given(on=IN_A_CATALOG)
def test_text_is_read_back_as_it_was_meant(on: Securable) -> None:
    assert parse_securable(securable_text(on), catalog="lake") == on


@given(on=IN_A_CATALOG, references=st.sampled_from(["", "dev*", "*"]))
def test_grant_makes_the_rule_that_was_meant(on: Securable, references: str) -> None:
    privilege = next(each for each in Privilege if on.kind in PRIVILEGES[each].kinds and not each.name.endswith("_CREATE"))
    references = "" if on.kind is K.REFERENCE else references
    rule = rule_of(make_grant(privilege, on, references=references), "lake", ())

    assert rule is not None
    assert (rule.privilege, rule.on, rule.references) == (privilege, on, references)


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("namespace:sales.eu", Securable(kind=K.NAMESPACE, catalog="lake", path=("sales", "eu"))),
        ("table:sales.a\\.b", Securable(kind=K.TABLE, catalog="lake", path=("sales", "a.b"))),
        (f"table:id={ID}", Securable(kind=K.TABLE, catalog="lake", content_id=ID)),
        ("reference:dev*", Securable(kind=K.REFERENCE, catalog="lake", pattern="dev*")),
        ("catalog", Securable(kind=K.CATALOG, catalog="lake")),
        (None, Securable(kind=K.CATALOG, catalog="lake")),
    ],
)
def test_text_names_a_securable(text: str | None, on: Securable) -> None:
    assert parse_securable(text, catalog="lake") == on


@pytest.mark.parametrize("text", ["realm", None, ""])
def test_realm_is_meant_where_no_catalog_is_named(text: str | None) -> None:
    assert parse_securable(text, catalog=None) == Securable(kind=K.REALM)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sales.orders", "is nothing that a grant is on: write namespace:KEY"),
        ("table", "is nothing that a grant is on"),
        ("table:", "is nothing that a grant is on"),
        ("realm", "is nothing that a grant is on"),
        ("column:a", "is nothing that a grant is on"),
        ("table:id=7", "'7' is no content id"),
        ("table:a..b", "element 2"),
        ("reference: dev", "is no pattern of branches"),
    ],
)
def test_text_that_means_nothing_is_refused(text: str, told: str) -> None:
    with pytest.raises(RefusedError, match=told):
        parse_securable(text, catalog="lake")


def test_content_without_a_catalog_is_refused() -> None:
    with pytest.raises(RefusedError, match="lies in a catalog: name it behind the realm"):
        parse_securable("namespace:sales", catalog=None)


def test_privilege_that_means_nothing_there_is_not_granted() -> None:
    orders = Securable(kind=K.TABLE, catalog="lake", path=("sales", "orders"))

    with pytest.raises(
        RefusedError, match="VIEW_DROP cannot be granted on a table: it is granted on realm, catalog, namespace, view"
    ):
        make_grant(Privilege.VIEW_DROP, orders)
    with pytest.raises(RefusedError, match="TABLE_CREATE cannot be granted by content id"):
        make_grant(Privilege.TABLE_CREATE, Securable(kind=K.TABLE, catalog="lake", content_id=ID))
    assert make_grant(Privilege.TABLE_CREATE, orders).path == ("sales", "orders")


def test_grant_on_references_has_no_other_ones() -> None:
    with pytest.raises(RefusedError, match="names its branches itself"):
        make_grant(Privilege.REFERENCE_DROP, Securable(kind=K.REFERENCE, catalog="lake", pattern="dev*"), references="main")


@pytest.mark.parametrize("pattern", ["", " dev", "dev\n", "x" * 256])
def test_pattern_that_no_name_matches_is_refused(pattern: str) -> None:
    with pytest.raises(RefusedError, match="is no pattern of branches"):
        checked_pattern(pattern)
