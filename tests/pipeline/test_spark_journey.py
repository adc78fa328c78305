"""How many files a reader opens who follows an import on Spark, on the driver's side. Needs Java, as Spark does."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from handmade_warehouse import make_by_hand
from headwater.settings import Settings
from headwater_workers.pipeline import find_engine
from opened_files import Journey, check_limit, import_on_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]


def test_import_on_spark_opens_few_files(tmp_path: Path) -> None:
    make_by_hand(tmp_path / "warehouse")
    journey = Journey()

    # Spark forks, and each store of a process prepares for a fork: here other tests may have left some open
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own_process:
        journey.files = own_process.submit(import_on_spark, tmp_path / "warehouse", tmp_path).result()

    check_limit("import on Spark", journey)
