"""Which conditions the source fulfils, and which it uses to read less and leaves to Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    LessThan,
    Not,
    StringContains,
    StringStartsWith,
)

from headwater_workers.pipeline.source.pushdown import Selection, Span, select

SALES = StringStartsWith(("key",), "sales.")


@pytest.mark.parametrize("table", ["commits", "changes", "entries", "contents"])
@pytest.mark.parametrize("column", ["realm", "catalog", "ref", "kind"])
def test_place_is_fulfilled_and_nothing_is_left_to_spark(table: str, column: str) -> None:
    selection, rest = select(table, [EqualTo((column,), "a"), In((column,), ("a", "b")), EqualNullSafe((column,), "a")])

    assert (selection.among, rest) == ({column: {"a"}}, [])


def test_places_that_exclude_each_other_leave_none() -> None:
    selection, _ = select("entries", [EqualTo(("ref",), "main"), EqualTo(("ref",), "dev")])

    assert not selection.allows(ref="main") and not selection.allows(ref="dev")


def test_prefix_of_the_key_is_fulfilled() -> None:
    selection, rest = select("entries", [SALES])

    assert (selection.key_range[:2], rest) == ((b"sales\0", b"sales\1"), [])


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("namespace",), "sales"),
        GreaterThan(("key",), "sales.a"),
        In(("key",), ("sales.a", "sales.b")),
    ],
)
def test_condition_that_only_narrows_the_keys_is_looked_at_again(condition: Filter) -> None:
    selection, rest = select("entries", [condition])

    assert selection.key_range.start is not None and rest == [condition]


def test_bounds_of_time_and_seq_end_the_walk() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    conditions = [GreaterThan(("time",), when), GreaterThan(("seq",), 7), LessThan(("seq",), 9)]
    selection, rest = select("commits", conditions)

    assert (selection.since, selection.seq) == (when.timestamp() * 1_000_000, 7)
    assert rest == conditions


def test_ids_and_names_are_spans() -> None:
    selection, _ = select("objects", [GreaterThan(("id",), "05"), LessThan(("id",), "06")])

    assert selection.ids == Span("05", "06")


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("entries", StringContains(("key",), "x")),
        ("entries", Not(EqualTo(("ref",), "main"))),
        ("entries", IsNotNull(("namespace",))),
        ("entries", EqualTo(("realm", "deeper"), "x")),
        ("entries", EqualTo(("realm",), 7)),
        ("entries", EqualTo(("type",), "NAMESPACE")),
        ("objects", EqualTo(("type",), "commit")),
        ("objects", SALES),
        ("commits", SALES),
    ],
)
def test_other_conditions_are_left_to_spark(table: str, condition: Filter) -> None:
    assert select(table, [condition]) == (Selection({}), [condition])
