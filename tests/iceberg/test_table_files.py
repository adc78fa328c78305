from __future__ import annotations

import pytest

from headwater.iceberg import FileInfo, TableFiles, group_tables, is_selected

ROOT = "s3://lake/wh"


def grouped(*paths: str) -> dict[str, TableFiles]:
    return {
        table.directory.removeprefix(f"{ROOT}/"): table
        for table in group_tables(ROOT, [FileInfo(f"{ROOT}/{path}", 1) for path in paths])
    }


def test_key_is_the_path_below_the_location_as_it_is() -> None:
    tables = grouped("sales.db/eu/orders/metadata/v1.metadata.json")

    assert tables["sales.db/eu/orders"].key == ("sales.db", "eu", "orders")


def test_location_that_is_the_table_gives_it_its_own_name() -> None:
    (table,) = group_tables("s3://lake/orders", [FileInfo("s3://lake/orders/metadata/v1.metadata.json", 1)])

    assert (table.directory, table.key) == ("s3://lake/orders", ("orders",))


def test_hidden_and_temporary_files_count_for_nothing() -> None:
    paths = [
        "a/metadata/.v1.metadata.json.crc",
        "a/.tmp/t/metadata/v1.metadata.json",
        "a/data/_temporary/0/x.parquet",
        "a/x.parquet",
    ]

    assert grouped(*paths) == {}


def test_data_without_metadata_is_what_a_dropped_table_left() -> None:
    tables = grouped(
        "s/t/data/day=1/a.parquet", "s/t/data/b.parquet", "s/t/metadata/snap-1.avro", "s/t/metadata/version-hint.text"
    )

    assert tables["s/t"].metadata == ()
    assert tables["s/t"].leftovers == 3


def test_data_folders_inside_of_a_table_are_its_own() -> None:
    tables = grouped("s/t/metadata/v1.metadata.json", "s/t/data/deep/data/a.parquet")

    assert list(tables) == ["s/t"]


def test_namespace_may_be_called_data() -> None:
    tables = grouped("data/t/metadata/v1.metadata.json", "data/t/data/a.parquet", "data/gone/data/a.parquet")

    assert list(tables) == ["data/gone", "data/t"]
    assert tables["data/t"].leftovers == 1


def test_order_of_a_listing_does_not_matter() -> None:
    paths = [
        "b/metadata/v2.metadata.json",
        "b/metadata/version-hint.text",
        "a/metadata/v1.metadata.json",
        "b/metadata/v1.metadata.json",
    ]

    assert list(grouped(*paths).items()) == list(grouped(*reversed(paths)).items())


@pytest.mark.parametrize(
    ("include", "exclude", "selected"),
    [
        ((), (), True),
        (("sales.*",), (), True),
        (("*.orders", "web.*"), (), True),
        (("sales",), (), False),
        (("Sales.*",), (), False),
        (("sales.*",), ("*.orders",), False),
        ((), ("web.*",), True),
    ],
)
def test_patterns_select_dotted_names(include: tuple[str, ...], exclude: tuple[str, ...], selected: bool) -> None:
    assert is_selected(("sales", "orders"), include, exclude) is selected
