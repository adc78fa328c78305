"""Columns of files: what is told of many paths at once is what would be told of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lake_files import file_columns
from headwater.lake_files.file_columns import digest_of, listed_files, listed_rows, live_files, live_rows
from headwater.lake_files.path_keys import StrictKeys, loose_number, strict_key

SEGMENTS = st.sampled_from(
    ["a", "B", "day=1", "x" * 50, "y" * 70, ".c", ".d.crc", "..", ".", "", "%41", "é", "a b", "s3:", "\ud800"]
)
ROOTS = [
    "s3://lake",
    "s3://lake/.hidden",
    "s3://lake/./a",
    "s3://lake/../b",
    "file:///.a/B",
    "file:///a//b",
    "s3://Other",
    "gs://lake",
    "s3a://lake",
    "file://",
    "file:///",
    "",
    "hdfs://node:1",
    "data",
    "S3://lake",
    "s3:/",
]
PATHS = st.builds(
    lambda root, names: "/".join([root, *names]), st.sampled_from(ROOTS), st.lists(SEGMENTS, min_size=1, max_size=5)
)
PLAIN = st.builds("/".join, st.lists(st.sampled_from(["a", "B", "day=1", "x" * 50, "y" * 70]), min_size=1, max_size=4))
ALIKE = st.builds(lambda root, names: [f"{root}/{name}" for name in names], st.sampled_from(ROOTS), st.lists(PLAIN, max_size=6))


@given(st.lists(PATHS, max_size=6) | ALIKE | st.builds(list.__add__, ALIKE, ALIKE))
def test_columns_of_live_files_are_those_of_each(paths: list[str]) -> None:
    files = live_files(paths)
    keys = [key.replace("\ud800", "\ufffd") for path in paths if (key := strict_key(path)) is not None]

    assert files.keys.to_pylist() == keys
    assert files.numbers.to_pylist() == list(map(loose_number, keys))
    assert files.digests.to_pylist() == list(map(digest_of, keys))
    assert set(files.folders or ()) == {key.rpartition("/")[0] for key in keys}
    assert list(files.odd) == [path for path in paths if strict_key(path) is None]
    assert files.size == len(paths)


@given(st.lists(PATHS, max_size=6) | ALIKE)
def test_columns_of_listed_files_are_those_of_each(paths: list[str]) -> None:
    rows = listed_rows(listed_files(paths, range(len(paths)), [7] * len(paths)), StrictKeys())
    clean = [path.replace("\ud800", "\ufffd") for path in paths]
    keys = [strict_key(path) or path for path in clean]

    assert rows.column("key").to_pylist() == keys
    assert rows.column("number").to_pylist() == list(map(loose_number, keys))
    assert rows.column("size").to_pylist() == list(range(len(paths)))


@pytest.mark.parametrize("name", ["a", "a" * 63, "a" * 64, "a" * 65, "A/" * 100 + "b"])
@pytest.mark.parametrize("root", ["s3://lake/", "file:///", "gs://x/t/"])
def test_number_of_a_plain_path_is_its_loose_number(root: str, name: str) -> None:
    paths = [f"{root}{name}", f"{root}other/{name}"]

    assert live_files(paths).numbers.to_pylist() == list(map(loose_number, paths))


def test_folders_that_are_too_many_are_told_by_the_keys() -> None:
    files = live_files([f"s3://lake/{number}/f" for number in range(1001)])

    assert files.folders is None
    assert len(set(files.all_folders())) == 1001


def test_rows_of_some_live_files_are_those_of_each() -> None:
    rows = live_rows([live_files(["s3://lake/a", "relative"]), live_files(["s3://lake/b"], must_exist=False)])

    assert rows.column("key").to_pylist() == ["s3://lake/a", "s3://lake/b"]
    assert rows.column("must_exist").to_pylist() == [True, False]


def test_folders_that_begin_with_a_dot_are_names_like_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_columns, "loose_number", None)  # of paths that are looked at one by one
    paths = [f"file:///home/.cache/lake/{number}.parquet" for number in range(3)]

    assert live_files(paths).size == 3
    with pytest.raises(TypeError):
        live_files([*paths, "file:///home/.cache/lake/../x"])
