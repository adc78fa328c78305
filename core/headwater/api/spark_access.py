"""What the pipeline's package brings for Spark, found by its entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from headwater.errors import RefusedError

VIEWS, FILE_TABLE, FILE_WORK = "views", "file-table", "spark"
_NEEDS = "this needs Spark and headwater's pipeline: pip install 'headwater[spark]', and Java 17 or newer"


def load_spark(name: str, *, group: str = "headwater.spark") -> Any:
    """A function of the pipeline's package; raises RefusedError that says what to install."""
    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except ModuleNotFoundError as absent:
            raise RefusedError(_NEEDS) from absent
    raise RefusedError(_NEEDS)
