"""How a field of a result finds its value."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from headwater.cli.gc_commands import COLLECTION
from headwater.clock import Micros
from headwater.console import ResultView, ViewField, text_field
from headwater.gc import CollectionResult


class Color(Enum):
    RED = "red"


@dataclass
class Part:
    color: Color = Color.RED


@dataclass
class Thing:
    first_part: Part | None = field(default_factory=Part)
    names: tuple[str, ...] = ("a", "b")


def value(item: Any, *words: Any, **options: Any) -> Any:
    return ViewField(*words, **options).read(item)


def test_field_reads_the_attribute_of_its_name() -> None:
    assert value(Thing(), "firstPart", "the first") == Part()


def test_field_follows_its_way() -> None:
    assert value(Thing(), "color", "its color", "first_part.color") == "red"


def test_way_that_ends_early_is_null() -> None:
    assert value(Thing(first_part=None), "color", "its color", "first_part.color", form=text_field) is None


def test_misspelled_way_is_an_error() -> None:
    with pytest.raises(AttributeError):
        value(Thing(), "color", "its color", "firstPort.color")


def test_field_of_a_mapping_is_read_as_written() -> None:
    assert value({"firstPart": 1}, "firstPart", "the first") == 1


def test_tuples_are_printed_as_lists() -> None:
    assert value(Thing(), "names", "its names") == ["a", "b"]


def test_columns_are_the_fields_with_heads() -> None:
    view: ResultView[Thing] = ResultView(
        "thing", "things", (ViewField("names", "its names", header="NAMES"), ViewField("x", "none", len))
    )

    assert view.columns([{"names": ["a"], "x": 1}]) == ["NAMES", "a"]
    assert view.columns([]) == []


def test_collection_has_every_field_that_is_shown_of_it() -> None:
    result = CollectionResult(realm="acme", dry_run=False, writer_cutoff=Micros(0), reader_cutoff=Micros(0)).as_plain()

    assert {field.name for field in COLLECTION.fields if not field.source} <= result.keys()
