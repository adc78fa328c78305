"""The comparison of live files with those that are there, rule by rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from headwater.clock import Micros
from headwater.lake_files.file_columns import (
    digest_column,
    digest_of,
    listed_files,
    listed_in_columns,
    live_files,
    live_in_columns,
)
from headwater.lake_files.file_comparison import BucketResult, compare_bucket
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.file_runs import DeadRuns, FileRuns
from headwater.lake_files.lake_file_values import DeadFile, ListedFile, LiveFile, TablePlace
from headwater.lake_files.place_index import PlaceIndex

PLACE = "s3://lake/sales/orders"
FILE = f"{PLACE}/data/00000-1.parquet"
TIME = Micros(1_750_000_000_000_000)


def places(*locations: str) -> PlaceIndex:
    return PlaceIndex([TablePlace(location=place, catalog_id="0" * 16) for place in locations or (PLACE,)], ["s3://lake"])


def digests(*paths: str) -> Any:
    return digest_column(map(digest_of, paths))


def compared(
    live: Iterable[LiveFile], there: Iterable[ListedFile], *, held: Iterable[str] = (FILE,), index: PlaceIndex | None = None
) -> BucketResult:
    with FileRuns(buckets=1) as runs:
        runs.add_live(live_in_columns(live))
        runs.add_listed(listed_in_columns(there))
        return compare_bucket(runs.bucket(0), index or places(), digests(*held))


def listed(path: str = FILE, *, modified: Micros = TIME) -> ListedFile:
    return ListedFile(path, 10, modified)


def codes(result: BucketResult) -> dict[str, FileReason]:
    return {file.path: file.code for file in result.dead}


def test_file_that_was_held_and_is_not_live_is_dead() -> None:
    assert compared([], [listed()]).dead == [DeadFile(FILE, 10, TIME, PLACE, FileReason.IN_GRACE)]


def test_live_file_is_not_dead_however_its_scheme_is_spelled() -> None:
    result = compared([LiveFile(FILE.replace("s3://", "S3A://"))], [listed()])

    assert (result.dead, result.kept, result.missing) == ([], 1, {})


@pytest.mark.parametrize(
    "spelling",
    [
        FILE.replace("orders", "Orders"),
        FILE.replace("data/", "data//"),
        FILE.replace("00000-1", "00000%2D1"),
        FILE.replace("s3://lake", "s3://other"),
    ],
)
def test_file_that_is_loosely_live_stays(spelling: str) -> None:
    result = compared([LiveFile(spelling, must_exist=False)], [listed()])

    assert result.dead == []
    assert result.counts[PLACE][FileReason.LOOSELY_LIVE].files == 1


def test_live_file_that_is_listed_otherwise_is_missing() -> None:
    odd = FILE.replace("data/", "data//")

    assert compared([LiveFile(odd)], [listed()]).missing == {PLACE: [odd]}


def test_live_file_that_may_be_gone_is_not_missing() -> None:
    assert compared([LiveFile(FILE, must_exist=False)], []).missing == {}


def test_missing_file_is_told_of_all_places_around_it() -> None:
    outer = "s3://lake/sales"

    assert compared([LiveFile(FILE)], [], index=places(PLACE, outer)).missing == {PLACE: [FILE], outer: [FILE]}


def test_live_file_outside_of_all_places_is_counted() -> None:
    result = compared([LiveFile("s3://lake/hashed/ab/f.parquet"), LiveFile("s3://else/f.parquet")], [])

    assert (result.missing, result.outside) == ({}, 1)


@pytest.mark.parametrize("count", [1, 100])
def test_live_files_of_other_catalogs_do_not_matter(count: int) -> None:
    index = places(PLACE, *(f"s3://other/{number}" for number in range(count)))
    far = [LiveFile(f"s3://far/{number}.parquet") for number in range(10)]
    result = compared([*far, LiveFile("s3://other/0/f.parquet")], [listed()], index=index)

    assert (list(result.missing), result.outside) == (["s3://other/0"], 0)
    assert codes(result) == {FILE: FileReason.IN_GRACE}


def test_file_that_nobody_ever_held_is_only_reported() -> None:
    assert codes(compared([], [listed()], held=())) == {FILE: FileReason.NEVER_HELD}


def test_file_without_a_time_is_only_reported() -> None:
    assert codes(compared([], [listed(modified=Micros(0))])) == {FILE: FileReason.TIME_UNKNOWN}


@pytest.mark.parametrize(
    "name",
    [
        "_temporary/0/x.parquet",
        ".spark-staging-1/x.parquet",
        "checkpoints/offsets/7",
        "x.parquet.tmp",
        "x.csv",
        "a\ufffd.parquet",
    ],
)
def test_file_of_no_kind_that_iceberg_writes_is_only_reported(name: str) -> None:
    path = f"{PLACE}/{name}"

    assert codes(compared([], [listed(path)], held=[path])) == {path: FileReason.UNKNOWN_KIND}


@pytest.mark.parametrize(
    "name",
    [
        "data/_day=1/x.parquet",
        "data/x.orc",
        "metadata/snap-1-1-a.avro",
        "metadata/v3.gz.metadata.json",
        "metadata/version-hint.text",
        "metadata/1-a.stats",
        "data/dv-1.puffin",
    ],
)
def test_file_of_a_kind_that_iceberg_writes_is_dead(name: str) -> None:
    path = f"{PLACE}/{name}"

    assert codes(compared([], [listed(path)], held=[path])) == {path: FileReason.IN_GRACE}


def test_checksum_goes_with_its_file() -> None:
    checksum = f"{PLACE}/data/.00000-1.parquet.crc"

    assert codes(compared([LiveFile(FILE)], [listed(), listed(checksum)])) == {}
    assert set(codes(compared([], [listed(), listed(checksum)])).values()) == {FileReason.IN_GRACE}
    assert codes(compared([], [listed(checksum)], held=())) == {checksum: FileReason.NEVER_HELD}


def test_own_files_are_neither_live_nor_dead() -> None:
    marker = f"{PLACE}/_headwater-place-000001-0123456789abcdef.json"
    result = compared([], [listed(marker), listed(f"{PLACE}/_headwater/reports/1")])

    assert (result.dead, result.markers) == ([], [marker])
    assert result.counts[PLACE][FileReason.OWN_FILE].files == 2


@pytest.mark.parametrize("folder", ["_delta_log", ".hoodie"])
def test_other_table_formats_are_told(folder: str) -> None:
    path = f"{PLACE}/{folder}/00000.json"

    assert compared([], [listed(path)]).signs == {PLACE: path}


def test_metadata_that_no_version_names_is_told() -> None:
    path = f"{PLACE}/metadata/00001-a.gz.metadata.json"

    assert compared([], [listed(path)]).metadata == [path]
    assert compared([LiveFile(path)], [listed(path)]).metadata == []


def test_metadata_that_a_log_once_named_is_none_of_others() -> None:
    path = f"{PLACE}/metadata/v1.metadata.json"
    result = compared([], [listed(path)], held=[path])

    assert result.metadata == []
    assert codes(result) == {path: FileReason.IN_GRACE}


def test_file_that_was_live_is_held_from_then_on() -> None:
    first = compared([LiveFile(FILE)], [listed()], held=())

    assert first.held == digest_of(FILE)


def test_file_that_is_gone_is_held_no_longer() -> None:
    assert compared([], [], held=[FILE]).held == b""


def test_held_file_stays_so_where_a_listing_is_not_whole() -> None:
    with FileRuns(buckets=1) as runs:
        result = compare_bucket(runs.bucket(0), places(), digests(FILE), is_held_whole=False)

    assert result.held == digest_of(FILE)


def test_relative_path_is_told_as_odd() -> None:
    with FileRuns() as runs:
        runs.add_live(live_in_columns([LiveFile("data/f.parquet"), LiveFile(FILE)]))

        assert (runs.odd, runs.live) == (["data/f.parquet"], 2)


def test_files_on_disk_are_those_that_were_added() -> None:
    names = [f"{PLACE}/data/{number}-ü.parquet" for number in range(300)]
    with FileRuns(buckets=7, in_memory=20) as runs:
        runs.add_live(live_files(names[at : at + 30]) for at in range(0, 300, 30))
        runs.add_listed([listed_files((name,), (number,), (TIME,)) for number, name in enumerate(names)])
        runs.add_listed([listed_files((f"{PLACE}/dead.parquet",), (5,), (TIME,))])
        results = [compare_bucket(runs.bucket(number), places(), digests()) for number in range(7)]

    assert [file.path for result in results for file in result.dead] == [f"{PLACE}/dead.parquet"]
    assert sum(result.kept for result in results) == 300
    assert not any(result.missing for result in results)


def test_dead_files_come_sorted_from_disk() -> None:
    dead = [DeadFile(f"{PLACE}/\n{number % 7}-{number}", number, TIME, PLACE, FileReason.IN_GRACE) for number in range(100)]
    with DeadRuns(in_memory=9) as runs:
        runs.add_dead(dead)

        assert list(runs) == sorted(dead, key=lambda file: (file.place, file.path))
        assert list(runs) == list(runs)
