"""The two keys of a path: which files are one, strictly and loosely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lake_files.path_keys import StrictKeys, loose_key, loose_number, strict_key

TEXTS = st.text(st.sampled_from("aA%2Fé/.:~e\u0301İß 25\n"), max_size=30)
PLAIN = st.text(st.sampled_from("aAb/.:"), max_size=12)
PATHS = st.builds("{}{}".format, st.sampled_from(["s3://lake/", "S3A://Lake/", "file:///", "/", ""]), TEXTS | PLAIN)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("s3a://lake/t/f.parquet", "s3://lake/t/f.parquet"),
        ("S3://Lake/t/f.parquet", "s3://Lake/t/f.parquet"),
        ("s3://lake/t/a%20b", "s3://lake/t/a%20b"),
        ("s3://lake/t//f", "s3://lake/t//f"),
        ("/lake//t/f", "file:///lake/t/f"),
        ("file:/lake/t/f", "file:///lake/t/f"),
        ("hdfs://NameNode/t/f", "hdfs://namenode/t/f"),
        ("//lake/t/f", "file:///lake/t/f"),
        ("file://lake/t/f", None),
        ("data/f.parquet", None),
        ("s3://lake/t/../f", None),
    ],
)
def test_strict_key_is_one_spelling_of_a_storage(path: str, key: str | None) -> None:
    assert strict_key(path) == key
    assert StrictKeys().strict_key_of(path) == key


@pytest.mark.parametrize(
    "other",
    [
        "s3a://lake/T/DAY=1/a b.parquet",
        "/t/day=1/a%20b.parquet",
        "s3://elsewhere/t//day=1/a%2520b.parquet",
        "hdfs://node:8020/t/./day%3D1/x/../A%20B.parquet",
        "s3://lake/t/day=1/a b.parquet/",
    ],
)
def test_careless_readers_take_these_for_one_file(other: str) -> None:
    assert loose_key(other) == loose_key("s3://lake/t/day=1/a b.parquet")


@pytest.mark.parametrize(("one", "other"), [("é", "e\u0301"), ("STRASSE", "straße"), ("%C3%A9", "é"), ("%c3%a9", "E\u0301")])
def test_letters_that_look_alike_are_loosely_one(one: str, other: str) -> None:
    assert loose_key(f"s3://lake/{one}") == loose_key(f"s3://lake/{other}")


def test_different_names_are_loosely_different() -> None:
    assert loose_key("s3://lake/t/a.parquet") != loose_key("s3://lake/t/b.parquet")


@given(PATHS)
def test_loose_key_of_a_loose_path_is_itself(path: str) -> None:
    assert loose_key(f"/{loose_key(path)}") == loose_key(path)


@given(PATHS)
def test_strict_key_has_the_loose_key_of_its_path(path: str) -> None:
    strict = strict_key(path)

    assert strict is None or loose_key(strict) == loose_key(path)


@given(st.lists(PATHS, max_size=6))
def test_many_keys_are_those_of_each(paths: list[str]) -> None:
    keys = StrictKeys()

    assert keys.strict_keys(paths) == [strict_key(path) for path in paths]


@given(PATHS)
def test_loose_number_is_that_of_the_loose_key(path: str) -> None:
    assert loose_number(path) == loose_number(f"/{loose_key(path)}")


@pytest.mark.parametrize("name", ["a", "A/b.parquet", f"{'x' * 50}/Day=1/{'y' * 40}-0001.parquet", "z" * 200])
def test_loosely_equal_paths_have_one_number(name: str) -> None:
    paths = [f"s3://lake/t/{name}", f"file:///t//{name.upper()}", f"/t/./{name}", f"s3a://other/t/{name.replace('b', '%62')}"]

    assert len(set(map(loose_number, paths))) == 1


def test_checksum_has_the_number_of_its_file() -> None:
    assert {*map(loose_number, ("s3://lake/t/.a.parquet.crc", "/T/.A.parquet.CRC"))} == {loose_number("/t/a.parquet")}
