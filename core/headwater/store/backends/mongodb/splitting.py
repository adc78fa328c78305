"""Cutting a scan into splits of about as many rows each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pymongo.collection import Collection

from headwater.store.backends.mongodb.documents import Document

__all__ = ["EXACT_ROWS", "ends_of_splits"]

P = TypeVar("P", bound=tuple[Any, ...])
EXACT_ROWS = 1_000_000
"""Up to so many rows in the collection their keys are counted, in its index; with more, some are drawn."""
_DRAWN_PER_SPLIT = 200
_FEWEST_PER_SPLIT = 20


def ends_of_splits(
    rows: Collection[Document], within: Document, position: Callable[[Any], P], count: int, *, exact_rows: int = EXACT_ROWS
) -> list[P]:
    """The positions of the last rows of all splits but the last, ascending: up to ``count - 1``.

    within        a condition on ``_id``, empty for all rows
    position      what an ``_id`` stands for
    """
    if count < 2:
        return []
    if rows.estimated_document_count() > exact_rows:
        drawn = _drawn(rows, within, position, count)
        if len(drawn) >= _FEWEST_PER_SPLIT * count:
            return [drawn[len(drawn) * number // count] for number in range(1, count)]
    return _counted(rows, within, position, count)


def _counted(rows: Collection[Document], within: Document, position: Callable[[Any], P], count: int) -> list[P]:
    pipeline: list[Document] = [
        {"$match": within},
        {"$project": {"_id": 1}},
        {"$bucketAuto": {"groupBy": "$_id", "buckets": count, "output": {"last": {"$max": "$_id"}}}},
    ]
    return [position(bucket["last"]) for bucket in rows.aggregate(pipeline, allowDiskUse=True)][:-1]


def _drawn(rows: Collection[Document], within: Document, position: Callable[[Any], P], count: int) -> list[P]:
    """Positions drawn from the whole collection, ascending, those within.

    As the first stage, and for less than a twentieth of the collection, that is a walk of a random cursor and not of the collection:
    https://www.mongodb.com/docs/manual/reference/operator/aggregation/sample/
    """
    pipeline: list[Document] = [{"$sample": {"size": _DRAWN_PER_SPLIT * count}}, {"$project": {"_id": 1}}, {"$match": within}]
    return sorted({position(row["_id"]) for row in rows.aggregate(pipeline)})
