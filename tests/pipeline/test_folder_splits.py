from __future__ import annotations

from pathlib import Path

import pytest

from headwater_workers.pipeline.spark_survey import narrower


def make(root: Path, *folders: str) -> None:
    for folder in folders:
        (root / folder).mkdir(parents=True)


def test_folder_of_tables_is_listed_table_by_table(tmp_path: Path) -> None:
    make(tmp_path, "sales/orders/metadata", "sales/lines/metadata")

    assert narrower(f"file://{tmp_path}/sales") == [f"file://{tmp_path}/sales/lines", f"file://{tmp_path}/sales/orders"]


@pytest.mark.parametrize("inside", ["metadata", "data", "_delta_log"])
def test_folder_that_was_ever_a_table_is_listed_as_one(inside: str, tmp_path: Path) -> None:
    make(tmp_path, f"orders/{inside}/part=1", "orders/nested/metadata")

    assert narrower(f"file://{tmp_path}/orders") == [f"file://{tmp_path}/orders"]
    assert narrower(f"file://{tmp_path}/orders/{inside}") == [f"file://{tmp_path}/orders/{inside}"]


def test_folder_without_folders_is_left_to_who_lists_it(tmp_path: Path) -> None:
    make(tmp_path, "empty")

    assert narrower(f"file://{tmp_path}/empty") == [f"file://{tmp_path}/empty"]
    assert narrower(f"file://{tmp_path}/gone") == [f"file://{tmp_path}/gone"]
