"""Conditions on the key: they leave all rows that fulfil them, and spare files, row groups and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from spark_tables import PlacedTable, make_table

from headwater.errors import RefusedError
from headwater.files import ALL_KEYS, ReadCounts, RowKeyRange, RowKeyType, ingest_rows
from headwater.files import data_files as written
from headwater_workers.pipeline.files.file_options import file_options_of
from headwater_workers.pipeline.files.file_scan import FilePiece, divide_pieces, pin_files, read_pieces
from headwater_workers.pipeline.files.key_conditions import KeySelection, select_keys

TEXTS = st.text(alphabet="abz\U0010ffff", max_size=3)
NUMBERS = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
MEANING = {
    EqualTo: lambda key, value: key == value,
    EqualNullSafe: lambda key, value: key == value,
    GreaterThan: lambda key, value: key > value,
    GreaterThanOrEqual: lambda key, value: key >= value,
    LessThan: lambda key, value: key < value,
    LessThanOrEqual: lambda key, value: key <= value,
}


def conditions_on(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    singles = st.builds(lambda kind, value: kind(("key",), value), st.sampled_from(list(MEANING)), values)
    return singles | st.builds(lambda many: In(("key",), tuple(many)), st.lists(values, max_size=3))


def is_fulfilled(condition: Any, key: Any) -> bool:
    if isinstance(condition, In):
        return key in condition.value
    if isinstance(condition, StringStartsWith):
        return bool(key.startswith(condition.value))
    return bool(MEANING[type(condition)](key, condition.value))


def selects(conditions: Sequence[Filter], key: Any, kind: RowKeyType) -> bool:
    keys = select_keys(conditions, "key", kind, within=ALL_KEYS).within(ALL_KEYS)
    return keys is not None and keys.has(kind.encode_key(key))


@given(conditions=st.lists(conditions_on(NUMBERS), max_size=3), key=NUMBERS)
def test_conditions_on_numbers_keep_every_row_that_fulfils_them(conditions: list[Filter], key: int) -> None:
    assert selects(conditions, key, RowKeyType.LONG) or not all(is_fulfilled(each, key) for each in conditions)


@given(
    conditions=st.lists(conditions_on(TEXTS) | st.builds(lambda text: StringStartsWith(("key",), text), TEXTS), max_size=3),
    key=TEXTS,
)
def test_conditions_on_texts_keep_every_row_that_fulfils_them(conditions: list[Filter], key: str) -> None:
    assert selects(conditions, key, RowKeyType.STRING) or not all(is_fulfilled(each, key) for each in conditions)


@given(condition=conditions_on(NUMBERS), key=NUMBERS)
def test_condition_other_than_a_list_is_met_exactly(condition: Filter, key: int) -> None:
    assert isinstance(condition, In) or selects([condition], key, RowKeyType.LONG) == is_fulfilled(condition, key)


def test_condition_on_another_column_selects_all() -> None:
    assert select_keys([EqualTo(("place",), 1)], "key", RowKeyType.LONG, within=ALL_KEYS) == KeySelection()


def test_condition_reads_the_row_groups_that_it_needs(place: PlacedTable) -> None:
    counts = ReadCounts()

    rows = read_where(place, [EqualTo(("key",), 155)], counts)

    assert rows == [155] and counts == ReadCounts(files=1, groups=10, groups_read=1)


def test_list_of_keys_spares_the_leaves_between(place: PlacedTable) -> None:
    with place.opened() as table:
        encode = RowKeyType.LONG.encode_key
        table.split_leaves({"r": encode(100), "r1": encode(200)})  # type: ignore[dict-item]
    counts = ReadCounts()

    rows = read_where(place, [In(("key",), (5, 250))], counts)

    assert [key for key in rows if key in (5, 250)] == [5, 250] and not any(100 <= key < 200 for key in rows)
    assert counts.groups_read == 2


def test_condition_that_no_key_fulfils_reads_nothing(place: PlacedTable) -> None:
    counts = ReadCounts()

    assert read_where(place, [GreaterThan(("key",), 9), LessThan(("key",), 5)], counts) == [] and counts == ReadCounts()


@given(rows=st.lists(st.integers(0, 3_000_000), max_size=20), tasks=st.integers(1, 8))
def test_tasks_read_every_piece_once(rows: list[int], tasks: int) -> None:
    pieces = [FilePiece(str(number), RowKeyRange(), count) for number, count in enumerate(rows)]

    bundles = divide_pieces(pieces, KeySelection(), tasks=tasks)

    shares = sorted((piece.filename, piece.share) for bundle in bundles for piece in bundle)
    assert len(bundles) <= tasks and len(set(shares)) == len(shares)
    for number in range(len(rows)):
        own = [share for filename, share in shares if filename == str(number)]
        assert own == [(index, len(own)) for index in range(len(own))]


def test_large_file_is_read_by_several_tasks() -> None:
    bundles = divide_pieces([FilePiece("large", RowKeyRange(), 4_000_000)], KeySelection(), tasks=4)

    assert [[piece.share for piece in bundle] for bundle in bundles] == [[(0, 4)], [(1, 4)], [(2, 4)], [(3, 4)]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"realm": "acme"}, "needs the option table"),
        ({"table": "orders"}, "needs the option realm"),
        (
            {"table": "orders", "realm": "acme", "path": "others"},
            "the path names file table 'others', and the option table 'orders'",
        ),
        ({"table": "orders", "realm": "acme", "form": "1"}, "has no option form: its options are table, realm, url"),
        ({"table": "orders", "realm": "acme", "url": "memory://"}, "memory:// lives in one process"),
        ({"table": "orders", "realm": "acme", "store": "postgresql://u:secret@h/d"}, "set the option url instead"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(RefusedError, match=message) as refusal:
        file_options_of(options)
    assert "secret" not in str(refusal.value)


def read_where(place: PlacedTable, conditions: Sequence[Filter], counts: ReadCounts) -> list[int]:
    with place.opened() as table:
        pinned = pin_files(table, file_options_of(place.options))
    selection = select_keys(conditions, "key", RowKeyType.LONG, within=ALL_KEYS)
    bundles = divide_pieces(pinned.pieces, selection, tasks=4)
    batches = (batch for bundle in bundles for batch in read_pieces(pinned.schema, bundle, ["key"], counts=counts))
    return sorted(key for batch in batches for key in batch.column(0).to_pylist())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlacedTable:
    """Keys from 0 to 299 in one file of ten row groups."""
    monkeypatch.setattr(written, "ROW_GROUP_ROWS", 30)
    made = make_table(tmp_path)
    with made.opened() as table:
        ingest_rows(table, [pa.table({"key": list(range(300))})])
    return made
