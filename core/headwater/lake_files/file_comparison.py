"""The comparison of one bucket: which of the files that are there nobody refers to, and which live ones are not there. Pure.

Strict says live, loose says dead: a file stays whose strict key is live, and one whose loose key is that of a live path. A live file that
has to exist, lies in a place, and is in no listing is told: then something is wrong with the listing, or with the spelling.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.clock import Micros
from headwater.lake_files.file_columns import NO_NAME, digest_column, digest_of, digest_type, joined_digests
from headwater.lake_files.file_kinds import FileKind, file_kind_of, is_marker
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.file_runs import BucketFiles
from headwater.lake_files.lake_file_values import DeadFile
from headwater.lake_files.path_keys import checked_file, loose_key
from headwater.lake_files.place_index import PlaceIndex

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 20
_MOST_ROOTS = 64
"""With more, each file is looked at."""
_FORMATS = frozenset({"_delta_log", ".hoodie"})
"""Folders of other table formats."""


class ReasonCount(msgspec.Struct):
    """How many files there are of a reason in a place, and their bytes."""

    files: int = 0
    bytes: int = 0


class BucketResult(NamedTuple):
    """What a bucket has.

    dead          files that no stored version refers to, reported ones included
    missing       by place, live files that are not there: up to 20 of each, sorted
    counts        by place and reason: all listed files but those that are strictly live
    kept          how many files that are there are strictly live
    outside       how many live files lie where the catalog may have files, and in no place of the search
    held          digests of what is to be known as held from now on, each once, one behind the other
    markers       of places, ours or not
    metadata      metadata files that are there, and that no stored version names, or ever did while a search looked
    signs         by place, a file that another table format keeps
    """

    dead: list[DeadFile]
    missing: dict[str, list[str]]
    counts: dict[str, dict[FileReason, ReasonCount]]
    kept: int
    outside: int
    held: bytes
    markers: list[str]
    metadata: list[str]
    signs: dict[str, str]


def compare_bucket(
    files: BucketFiles, places: PlaceIndex, held: pa.FixedSizeBinaryArray, *, is_held_whole: bool = True
) -> BucketResult:
    """Compare the files of one bucket.

    held          digests of paths that documents of this store named, as far as they belong to this bucket
    is_held_whole whether all places were listed: otherwise what was held stays so, wherever it lies
    """
    import pyarrow.compute as pc

    live, there = files.live, _once(files.listed)
    gone = _gone(there, live["key"])
    is_there = _is_in(live["key"], there["key"])
    elsewhere = _nearby(live.filter(pc.invert(is_there)), places)
    missing, outside = _missing(elsewhere, places)
    result = BucketResult([], missing, {}, there.num_rows - gone.num_rows, outside, b"", [], [], {})
    dead, digests = _in_places(gone, places)
    are_held = _is_in(digests, held).to_pylist()
    loosely_live = _loosely_live(live, gone)
    for (path, place, size, modified), is_held in zip(dead, are_held, strict=True):
        kind = file_kind_of(path, place)
        code = _judge(path, kind, modified, loosely_live, is_held)
        _note_signs(result, path, place, kind, is_held=is_held)
        count = result.counts.setdefault(place, {}).setdefault(code, ReasonCount())
        count.files += 1
        count.bytes += size
        if code not in (FileReason.OWN_FILE, FileReason.LOOSELY_LIVE):
            result.dead.append(DeadFile(path, size, Micros(modified), place, code))
    stays = digests.filter(_is_in(digests, held)) if is_held_whole else held
    named = [live["digest"].filter(is_there), _digests_in_places(elsewhere, places), stays]
    return result._replace(held=_joined_digests(named))


def _nearby(files: pa.Table, places: PlaceIndex) -> pa.Table:
    """The files that may concern the places: the live ones of a whole store are of other catalogs, too."""
    import pyarrow.compute as pc

    roots = places.roots()
    if not 0 < len(roots) <= _MOST_ROOTS:
        return files
    return files.filter(reduce(pc.or_, (pc.starts_with(files["key"], root) for root in roots)))


def _once(listed: pa.Table) -> pa.Table:
    """A file that was listed twice counts once, as it was listed last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.count_distinct(listed["key"]).as_py() == listed.num_rows:
        return listed
    last = {key: at for at, key in enumerate(listed["key"].to_pylist())}
    return listed.take(pa.array(last.values(), pa.int64()))


def _gone(there: pa.Table, live: pa.ChunkedArray) -> pa.Table:
    """The files that are there, and neither strictly live nor the checksum of one that is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gone = there.filter(pc.invert(_is_in(there["key"], live)))
    if not pc.any(pc.ends_with(gone["key"], ".crc")).as_py():
        return gone
    checked = pa.array([checked_file(path) if path.endswith(".crc") else None for path in gone["key"].to_pylist()], pa.string())
    return gone.filter(pc.or_(pc.is_null(checked), pc.invert(_is_in(checked, live))))


def _is_in(values: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.is_in(values, value_set=others)


def _in_places(gone: pa.Table, places: PlaceIndex) -> tuple[list[tuple[str, str, int, int]], pa.FixedSizeBinaryArray]:
    """The gone files that lie in places, with place, size and time; and the digests by which they are held."""
    columns = (gone[name].to_pylist() for name in ("key", "size", "time"))
    found = [
        (path, place, size, modified)
        for path, size, modified in zip(*columns, strict=True)
        if (place := places.find_place(path)) is not None
    ]
    return found, digest_column(digest_of(checked_file(path)) for path, *_ in found)  # a checksum goes with its file


def _loosely_live(live: pa.Table, gone: pa.Table) -> set[str]:
    """The loose keys of the live paths that may be loosely equal to one that is gone."""
    near = live.filter(_is_in(live["number"], gone["number"]))
    return set(map(loose_key, near["key"].to_pylist()))


def _digests_in_places(live: pa.Table, places: PlaceIndex) -> pa.FixedSizeBinaryArray:
    keys, digests = live["key"].to_pylist(), live["digest"].to_pylist()
    return digest_column(digest for key, digest in zip(keys, digests, strict=True) if places.find_place(key) is not None)


def _joined_digests(columns: Iterable[pa.Array | pa.ChunkedArray]) -> bytes:
    """The digests of some columns, each once, one behind the other."""
    import pyarrow as pa

    chunks = [chunk for column in columns for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    return joined_digests(pa.chunked_array(chunks, digest_type()).unique())


def _missing(elsewhere: pa.Table, places: PlaceIndex) -> tuple[dict[str, list[str]], int]:
    """By place, the paths that must exist and are not there; and how many such lie where the catalog may have files."""
    missing: dict[str, list[str]] = {}
    outside = 0
    for path in set(elsewhere.filter(elsewhere["must_exist"])["key"].to_pylist()):
        if places.find_place(path) is None:
            outside += places.is_in_territory(path)
            continue
        for place in places.around(path):
            missing.setdefault(place, []).append(path)
    return {place: sorted(paths)[:_SHOWN] for place, paths in missing.items()}, outside


def _note_signs(result: BucketResult, path: str, place: str, kind: FileKind, *, is_held: bool) -> None:
    """Note what tells of others who write there."""
    if kind is FileKind.METADATA:
        if not is_held:  # the log of an imported version may have named it, and no commit did
            result.metadata.append(path)
    elif kind is FileKind.OWN and is_marker(path.rpartition("/")[2]):
        result.markers.append(path)
    elif kind is FileKind.UNKNOWN and not _FORMATS.isdisjoint(path[len(place) :].split("/")):
        result.signs[place] = min(result.signs.get(place, path), path)


def _judge(path: str, kind: FileKind, modified: int, loosely_live: Collection[str], is_held: bool) -> FileReason:
    if kind is FileKind.OWN:
        return FileReason.OWN_FILE
    if loose_key(path) in loosely_live:
        return FileReason.LOOSELY_LIVE
    if kind is FileKind.UNKNOWN or NO_NAME in path:
        return FileReason.UNKNOWN_KIND
    if not is_held:
        return FileReason.NEVER_HELD
    return FileReason.TIME_UNKNOWN if modified <= 0 else FileReason.IN_GRACE
