"""How many files a reader opens who follows an import on Spark, on the driver's side. Needs Java, as Spark does."""

from __future__ import annotations

from pathlib import Path

import pytest

from handmade_warehouse import make_by_hand
from headwater.settings import Settings
from headwater_workers.pipeline import find_engine
from journeys import check_limit, import_task

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]


def test_import_on_spark_opens_few_files(tmp_path: Path) -> None:
    make_by_hand(tmp_path / "warehouse")

    check_limit("import on Spark", import_task(tmp_path / "warehouse", tmp_path, on_spark=True))
