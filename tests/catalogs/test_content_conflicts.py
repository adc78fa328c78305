"""The decision matrix: an operation, the key at the expected commit (E), the key at HEAD (H), and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import pytest

from headwater.catalogs import (
    CommitPlan,
    Conflict,
    ConflictKind,
    Content,
    ContentKey,
    ContentOperation,
    ContentValue,
    Delete,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    Unmodified,
    content_digest,
    content_type_of,
    plan_commit,
)
from headwater.catalogs.content import with_id, without_id
from headwater.errors import ConflictError, RefusedError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.store import ObjectId

X, Y = UUID(int=1), UUID(int=2)
KEY, OTHER = ContentKey.of("key"), ContentKey.of("other")

TABLE = IcebergTable(metadata_location="s3://b/v1.json")
NEWER = IcebergTable(metadata_location="s3://b/v2.json")
VIEW = IcebergView(metadata_location="s3://b/view.json")
SPACE = Namespace()

View = dict[ContentKey, ContentValue]


def has(content: Content, content_id: UUID = X, *, object_id: int = 1) -> ContentValue:
    return ContentValue(content_type_of(content), content_id, content_digest(content), ObjectId(object_id))


def at(value: ContentValue | None) -> View:
    return {} if value is None else {KEY: value}


def with_x(content: Content) -> Content:
    return with_id(content, X)


def kinds_of(expected: View, head: View, operations: Sequence[ContentOperation]) -> list[tuple[ConflictKind, str]]:
    """The conflicts of a commit by kind and key; none if it is possible."""
    try:
        plan_commit(expected, head, operations)
    except ConflictError as error:
        conflicts = [conflict for conflict in error.details if isinstance(conflict, Conflict)]
        assert len(conflicts) == len(error.details)
        assert all(str(conflict) in str(error) for conflict in conflicts)
        return [(conflict.kind, str(conflict.key)) for conflict in conflicts]
    return []


@dataclass(frozen=True)
class Case:
    name: str
    operation: ContentOperation
    expected: ContentValue | None
    head: ContentValue | None
    outcome: str


CASES = [
    Case("create", Put(KEY, TABLE), None, None, "written"),
    Case("create where another did", Put(KEY, TABLE), None, has(TABLE), "KEY_EXISTS"),
    Case("create where another put another type", Put(KEY, TABLE), None, has(SPACE), "KEY_EXISTS"),
    Case("change without id", Put(KEY, NEWER), has(TABLE), has(TABLE), "refused: put without an id"),
    Case("change without id of what is gone", Put(KEY, NEWER), has(TABLE), None, "refused: put without an id"),
    Case("create with an id", Put(KEY, with_x(TABLE)), None, None, "refused: is new and carries the content id"),
    Case("create with an id where another did", Put(KEY, with_x(TABLE)), None, has(TABLE), "refused: is new and carries"),
    Case(
        "change of another id",
        Put(KEY, with_x(NEWER)),
        has(TABLE, Y),
        has(TABLE, Y),
        "refused: has the content id .*2, not .*1",
    ),
    Case("change", Put(KEY, with_x(NEWER)), has(TABLE), has(TABLE), "written"),
    Case("change of an equal copy", Put(KEY, with_x(NEWER)), has(TABLE), has(TABLE, object_id=9), "written"),
    Case("change to the same", Put(KEY, with_x(TABLE)), has(TABLE), has(TABLE), "nothing"),
    Case("change of what changed", Put(KEY, with_x(NEWER)), has(TABLE), has(NEWER), "VALUE_DIFFERS"),
    Case("change of what is gone", Put(KEY, with_x(NEWER)), has(TABLE), None, "KEY_DOES_NOT_EXIST"),
    Case("change of what was replaced", Put(KEY, with_x(NEWER)), has(TABLE), has(TABLE, Y), "CONTENT_ID_DIFFERS"),
    Case("change of what became a view", Put(KEY, with_x(NEWER)), has(TABLE), has(VIEW, Y), "PAYLOAD_DIFFERS"),
    Case(
        "change of the type",
        Put(KEY, with_x(VIEW)),
        has(TABLE),
        has(TABLE),
        "refused: would turn ICEBERG_TABLE into ICEBERG_VIEW",
    ),
    Case("change of type and id", Put(KEY, with_x(VIEW)), has(TABLE, Y), has(TABLE, Y), "refused: would turn"),
    Case(
        "table over namespace",
        Put(KEY, with_x(TABLE)),
        has(SPACE),
        has(SPACE),
        "refused: would turn NAMESPACE into ICEBERG_TABLE",
    ),
    Case("delete", Delete(KEY), has(TABLE), has(TABLE), "removed"),
    Case("delete of an equal copy", Delete(KEY), has(TABLE), has(TABLE, object_id=9), "removed"),
    Case("delete of what changed", Delete(KEY), has(TABLE), has(NEWER), "VALUE_DIFFERS"),
    Case("delete of what is gone", Delete(KEY), has(TABLE), None, "KEY_DOES_NOT_EXIST"),
    Case("delete of what never was", Delete(KEY), None, None, "KEY_DOES_NOT_EXIST"),
    Case("delete of what came since", Delete(KEY), None, has(TABLE), "KEY_EXISTS"),
    Case("delete of what was replaced", Delete(KEY), has(TABLE), has(TABLE, Y), "CONTENT_ID_DIFFERS"),
    Case("delete of what became a view", Delete(KEY), has(TABLE), has(VIEW, Y), "PAYLOAD_DIFFERS"),
    Case("unmodified", Unmodified(KEY), has(TABLE), has(TABLE), "nothing"),
    Case("unmodified but changed", Unmodified(KEY), has(TABLE), has(NEWER), "VALUE_DIFFERS"),
    Case("unmodified but gone", Unmodified(KEY), has(TABLE), None, "KEY_DOES_NOT_EXIST"),
    Case("unmodified but never there", Unmodified(KEY), None, None, "KEY_DOES_NOT_EXIST"),
    Case("unmodified but come since", Unmodified(KEY), None, has(TABLE), "KEY_EXISTS"),
    Case("unmodified but replaced", Unmodified(KEY), has(TABLE), has(TABLE, Y), "CONTENT_ID_DIFFERS"),
    Case("expected content", Put(KEY, with_x(NEWER), TABLE), has(TABLE), has(TABLE), "written"),
    Case("expected content with id", Put(KEY, with_x(NEWER), with_x(TABLE)), has(TABLE), has(TABLE), "written"),
    Case("another expected content", Put(KEY, with_x(NEWER), NEWER), has(TABLE), has(TABLE), "VALUE_DIFFERS"),
    Case(
        "expected content of another id",
        Put(KEY, with_x(NEWER), with_id(TABLE, Y)),
        has(TABLE),
        has(TABLE),
        "CONTENT_ID_DIFFERS",
    ),
    Case("expected content of another type", Put(KEY, with_x(NEWER), VIEW), has(TABLE), has(TABLE), "PAYLOAD_DIFFERS"),
    Case("expected content of nothing", Put(KEY, TABLE, TABLE), None, None, "KEY_DOES_NOT_EXIST"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_decision_matrix_holds(case: Case) -> None:
    assert_outcome(case.outcome, at(case.expected), at(case.head), [case.operation])


def assert_outcome(outcome: str, expected: View, head: View, operations: Sequence[ContentOperation]) -> None:
    if outcome.startswith("refused: "):
        with pytest.raises(RefusedError, match=outcome.removeprefix("refused: ")):
            plan_commit(expected, head, operations)
    elif outcome in ConflictKind.__members__:
        assert kinds_of(expected, head, operations) == [(ConflictKind(outcome), "key")]
    else:
        assert summary(plan_commit(expected, head, operations)) == outcome


def summary(plan: CommitPlan) -> str:
    words = ["removed"] * len(plan.removals) + ["written"] * len(plan.writes)
    return " ".join(words) or "nothing"


RENAMES = [
    ("rename", {KEY: has(TABLE)}, {KEY: has(TABLE)}, TABLE, []),
    ("rename and change", {KEY: has(TABLE)}, {KEY: has(TABLE)}, NEWER, []),
    (
        "rename onto a key taken since",
        {KEY: has(TABLE)},
        {KEY: has(TABLE), OTHER: has(VIEW, Y)},
        TABLE,
        [("KEY_EXISTS", "other")],
    ),
    ("rename of what changed", {KEY: has(TABLE)}, {KEY: has(NEWER)}, TABLE, [("VALUE_DIFFERS", "key")]),
    ("rename of what is gone", {KEY: has(TABLE)}, {}, TABLE, [("KEY_DOES_NOT_EXIST", "key")]),
]


@pytest.mark.parametrize("reverse", [False, True], ids=["delete-first", "put-first"])
@pytest.mark.parametrize(("name", "expected", "head", "content", "conflicts"), RENAMES, ids=[row[0] for row in RENAMES])
def test_rename_is_a_delete_and_a_put_in_any_order(
    name: str, expected: View, head: View, content: Content, conflicts: list[tuple[str, str]], reverse: bool
) -> None:
    operations: list[ContentOperation] = [Delete(KEY), Put(OTHER, with_x(content))]

    assert kinds_of(expected, head, operations[::-1] if reverse else operations) == conflicts


def test_rename_keeps_the_id_and_the_stored_object() -> None:
    view = {KEY: has(TABLE, object_id=7)}
    plan = plan_commit(view, view, [Put(OTHER, with_x(TABLE)), Delete(KEY)])

    assert plan.removals == (KEY,)
    assert [(write.key, write.content_id, write.object_id) for write in plan.writes] == [(OTHER, X, 7)]


@pytest.mark.parametrize("reverse", [False, True], ids=["delete-first", "put-first"])
def test_new_content_replaces_a_deleted_one_under_the_same_key(reverse: bool) -> None:
    operations: list[ContentOperation] = [Delete(KEY), Put(KEY, TABLE)]
    plan = plan_commit(at(has(TABLE)), at(has(TABLE)), operations[::-1] if reverse else operations)

    assert plan.removals == ()
    assert [(write.key, write.content_id) for write in plan.writes] == [(KEY, None)]


def test_replacing_what_changed_is_one_conflict() -> None:
    assert kinds_of(at(has(TABLE)), at(has(NEWER)), [Delete(KEY), Put(KEY, TABLE)]) == [("VALUE_DIFFERS", "key")]


UNSOUND = [
    ("a key put twice", [Put(KEY, TABLE), Put(KEY, NEWER)], "key has two operations Put"),
    ("a key deleted twice", [Delete(OTHER), Delete(OTHER)], "other has two operations Delete"),
    ("deleted and unmodified", [Delete(OTHER), Unmodified(OTHER)], "other is Unmodified and something else"),
    ("put and unmodified", [Put(KEY, TABLE), Unmodified(KEY)], "key is Unmodified and something else"),
    (
        "an id put twice",
        [Delete(OTHER), Put(KEY, with_x(TABLE)), Put(KEY.child("a"), with_x(TABLE))],
        "id .*1 is put at key and at key.a",
    ),
    ("deleted and put with its id", [Delete(OTHER), Put(OTHER, with_x(TABLE))], "deleted and put with an id"),
    ("replaced by another type", [Delete(OTHER), Put(OTHER, VIEW)], "would turn ICEBERG_TABLE into ICEBERG_VIEW"),
    ("renamed into another type", [Delete(OTHER), Put(KEY, with_x(VIEW))], "would turn ICEBERG_TABLE into ICEBERG_VIEW"),
    ("a namespace called dot", [Put(ContentKey.of("."), SPACE)], "must not be"),
    ("metadata of a namespace", [Put(KEY, SPACE, metadata=MetadataParts({}, {}))], "key is NAMESPACE, and metadata belongs to"),
]


@pytest.mark.parametrize(("name", "operations", "complaint"), UNSOUND, ids=[row[0] for row in UNSOUND])
def test_unsound_request_is_refused(name: str, operations: list[ContentOperation], complaint: str) -> None:
    view = {OTHER: has(TABLE)}

    with pytest.raises(RefusedError, match=complaint):
        plan_commit(view, view, operations)


def test_all_faults_of_a_request_are_named() -> None:
    with pytest.raises(RefusedError, match=r"key is new and carries.*; other is new and carries"):
        plan_commit({}, {}, [Put(KEY, with_x(TABLE)), Put(OTHER, with_id(TABLE, Y))])


def test_all_conflicts_are_reported_at_once() -> None:
    expected, head = {KEY: has(TABLE)}, {OTHER: has(TABLE, Y)}
    operations: list[ContentOperation] = [Delete(KEY), Put(OTHER, TABLE), Put(ContentKey.of("a", "b"), TABLE)]

    assert kinds_of(expected, head, operations) == [
        ("KEY_DOES_NOT_EXIST", "key"),
        ("KEY_EXISTS", "other"),
        ("NAMESPACE_ABSENT", "a"),
    ]


def test_new_key_gets_its_id_from_the_catalog() -> None:
    (write,) = plan_commit({}, {}, [Put(KEY, TABLE)]).writes

    assert write.content_id is None
    assert without_id(write.content) == TABLE
