"""The state that would result has a namespace above every key, whatever the order of the operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.catalogs import (
    Conflict,
    ConflictKind,
    ContentKey,
    ContentOperation,
    ContentType,
    ContentValue,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    content_digest,
    content_type_of,
    plan_commit,
)
from headwater.catalogs.content import with_id
from headwater.errors import ConflictError, RefusedError
from headwater.store import ObjectId

TABLE, SPACE = IcebergTable(metadata_location="s3://b/v1.json"), Namespace()
View = dict[ContentKey, ContentValue]


def key(text: str) -> ContentKey:
    return ContentKey.parse(text)


def state(*texts: str) -> View:
    """A view with a namespace at each text that ends in a slash, and tables at the others."""
    view = {}
    for number, text in enumerate(texts, start=1):
        content = SPACE if text.endswith("/") else TABLE
        value = ContentValue(content_type_of(content), UUID(int=number), content_digest(content), ObjectId(number))
        view[key(text.rstrip("/"))] = value
    return view


def space(text: str) -> Put:
    return Put(key(text), SPACE)


def table(text: str) -> Put:
    return Put(key(text), TABLE)


def delete(text: str) -> Delete:
    return Delete(key(text))


HOLES: list[tuple[str, View, list[ContentOperation], list[tuple[str, str]]]] = [
    ("under a namespace", state("a/"), [table("a.t")], []),
    ("at the root", state(), [table("t")], []),
    ("under no namespace", state(), [table("a.t")], [("NAMESPACE_ABSENT", "a")]),
    (
        "under three that are absent, innermost first",
        state(),
        [table("a.b.c.t")],
        [("NAMESPACE_ABSENT", "a.b.c"), ("NAMESPACE_ABSENT", "a.b"), ("NAMESPACE_ABSENT", "a")],
    ),
    (
        "under absent ones below one put along",
        state(),
        [space("a"), table("a.b.c.t")],
        [("NAMESPACE_ABSENT", "a.b.c"), ("NAMESPACE_ABSENT", "a.b")],
    ),
    ("an absent one that two keys need is reported once", state(), [table("a.t"), table("a.u")], [("NAMESPACE_ABSENT", "a")]),
    ("with all its namespaces", state(), [table("a.b.t"), space("a.b"), space("a")], []),
    ("under a table", state("a"), [table("a.t")], [("NOT_A_NAMESPACE", "a")]),
    ("under a table put along", state(), [table("a"), table("a.t")], [("NOT_A_NAMESPACE", "a")]),
    ("under a table deleted along", state("a"), [delete("a"), table("a.t")], [("NAMESPACE_ABSENT", "a")]),
    ("delete an empty namespace", state("a/"), [delete("a")], []),
    ("delete above a table", state("a/", "a.t"), [delete("a")], [("NAMESPACE_NOT_EMPTY", "a")]),
    ("delete above a namespace", state("a/", "a.b/"), [delete("a")], [("NAMESPACE_NOT_EMPTY", "a")]),
    ("delete above a key that goes too", state("a/", "a.t"), [delete("a"), delete("a.t")], []),
    ("delete a whole tree", state("a/", "a.b/", "a.b.t"), [delete("a.b"), delete("a"), delete("a.b.t")], []),
    ("delete above a new child", state("a/"), [delete("a"), table("a.t")], [("NAMESPACE_NOT_EMPTY", "a")]),
    (
        "delete above a renamed child",
        state("a/", "a.t"),
        [delete("a"), delete("a.t"), Put(key("a.u"), with_id(TABLE, UUID(int=2)))],
        [("NAMESPACE_NOT_EMPTY", "a")],
    ),
    (
        "delete above a changed child",
        state("a/", "a.t"),
        [delete("a"), Put(key("a.t"), with_id(TABLE, UUID(int=2)))],
        [("NAMESPACE_NOT_EMPTY", "a")],
    ),
    ("replace a namespace above a child", state("a/", "a.t"), [delete("a"), space("a")], []),
    (
        "rename a namespace without its child",
        state("a/", "a.t"),
        [delete("a"), Put(key("b"), with_id(SPACE, UUID(int=1)))],
        [("NAMESPACE_NOT_EMPTY", "a")],
    ),
    (
        "rename a namespace with its child",
        state("a/", "a.t"),
        [delete("a"), delete("a.t"), Put(key("b"), with_id(SPACE, UUID(int=1))), Put(key("b.t"), with_id(TABLE, UUID(int=2)))],
        [],
    ),
    ("a key that only begins like a child", state("a/", "ab"), [delete("a")], []),
]


def conflicts(view: View, operations: Sequence[ContentOperation]) -> set[tuple[str, str]]:
    try:
        plan_commit(view, view, operations)
    except ConflictError as error:
        return {(str(found.kind), str(found.key)) for found in error.details if isinstance(found, Conflict)}
    return set()


@pytest.mark.parametrize(("name", "view", "operations", "outcome"), HOLES, ids=[row[0].replace(" ", "-") for row in HOLES])
def test_resulting_state_is_judged_whatever_the_order(
    name: str, view: View, operations: list[ContentOperation], outcome: list[tuple[str, str]]
) -> None:
    assert {frozenset(conflicts(view, order)) for order in permutations(operations)} == {frozenset(outcome)}


def test_missing_namespaces_are_reported_innermost_first() -> None:
    with pytest.raises(ConflictError) as caught:
        plan_commit({}, {}, [table("a.b.c.t")])

    assert [found.key for found in caught.value.details if isinstance(found, Conflict)] == list(key("a.b.c.t").ancestors())


def test_namespace_that_came_since_serves() -> None:
    assert plan_commit({}, state("a/"), [table("a.t")]).writes


def test_namespace_that_went_since_is_missed() -> None:
    with pytest.raises(ConflictError) as caught:
        plan_commit(state("a/"), {}, [table("a.t")])

    assert str(caught.value.details[0]).startswith(ConflictKind.NAMESPACE_ABSENT)


elements = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple).map(ContentKey)


@pytest.mark.long
@settings(max_examples=300)
@given(
    st.lists(st.tuples(elements, st.sampled_from(["space", "table", "delete", "replace"])), min_size=1, max_size=12), st.data()
)
def test_no_sequence_of_commits_orphans_a_key(steps: list[tuple[ContentKey, str]], data: st.DataObject) -> None:
    view: View = {}
    while steps:
        size = data.draw(st.integers(1, len(steps)))
        batch, steps = steps[:size], steps[size:]
        view = committed(view, [operation for step in batch for operation in operations_of(*step)])

        for below in view:
            assert all(above in view and view[above].type == ContentType.NAMESPACE for above in below.ancestors())


def operations_of(at: ContentKey, word: str) -> list[ContentOperation]:
    if word == "delete":
        return [Delete(at)]
    if word == "replace":
        return [Put(at, SPACE), Delete(at)]
    return [Put(at, SPACE if word == "space" else TABLE)]


def committed(view: View, operations: Sequence[ContentOperation]) -> View:
    try:
        plan = plan_commit(view, view, operations)
    except (ConflictError, RefusedError):
        return view
    after = {at: value for at, value in view.items() if at not in plan.removals}
    for write in plan.writes:
        value = ContentValue(
            content_type_of(write.content), write.content_id or UUID(int=len(after)), write.digest, ObjectId(1)
        )
        after[write.key] = value
    return after


def test_full_namespaces_are_told_in_the_order_of_keys() -> None:
    there = state(*(text for number in range(10, 30) for text in (f"n{number}/", f"n{number}.t")))
    with pytest.raises(ConflictError) as caught:
        plan_commit(there, there, [delete(f"n{number}") for number in range(10, 30)])

    keys = [conflict.key for conflict in caught.value.details if isinstance(conflict, Conflict)]
    assert keys == sorted(key for key in keys if key is not None)
    assert len(keys) == 20
