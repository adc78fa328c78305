"""File tables in stores that Spark's processes can open, and one Spark session for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_tables import PlacedTable, make_table

from headwater_workers.pipeline.spark_session import SparkOptions, session


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("warehouse")
    conf = {
        "spark.sql.warehouse.dir": str(folder),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "America/New_York",
    }
    with session("headwater file tables", SparkOptions("local[2]", conf)) as made:
        yield made


@pytest.fixture
def new_table(tmp_path: Path) -> Callable[..., PlacedTable]:
    return lambda **fields: make_table(tmp_path, **fields)
