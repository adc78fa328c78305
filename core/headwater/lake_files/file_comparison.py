"""The comparison of one bucket: which of the files that are there nobody refers to, and which live ones are not there. Pure.

Strict says live, loose says dead: a file stays whose strict key is live, and one whose loose key is that of a live path. A live file that
has to exist, lies in a place, and is in no listing is told: then something is wrong with the listing, or with the spelling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from headwater.clock import Micros
from headwater.lake_files.file_kinds import FileKind, file_kind_of, is_marker
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.file_runs import NO_NAME, BucketFiles, checked_file
from headwater.lake_files.lake_file_values import DeadFile
from headwater.lake_files.path_keys import loose_key, loose_tails
from headwater.lake_files.place_index import PlaceIndex

DIGEST_BYTES = 16
_SHOWN = 20
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
    held          digests of what is to be known as held from now on, sorted
    markers       of places, ours or not
    metadata      metadata files that are there, and that no stored version names, or ever did while a search looked
    signs         by place, a file that another table format keeps
    """

    dead: list[DeadFile]
    missing: dict[str, list[str]]
    counts: dict[str, dict[FileReason, ReasonCount]]
    kept: int
    outside: int
    held: list[bytes]
    markers: list[str]
    metadata: list[str]
    signs: dict[str, str]


def compare_bucket(
    files: BucketFiles, places: PlaceIndex, held: Collection[bytes], *, is_held_whole: bool = True
) -> BucketResult:
    """Compare the files of one bucket.

    held          digests of paths that documents of this store named, as far as they belong to this bucket
    is_held_whole whether all places were listed: otherwise what was held stays so, wherever it lies
    """
    there = dict(zip(files.listed, files.facts, strict=True))  # a file that was listed twice counts once
    live = set(files.live)
    live.update(files.maybe)
    gone = [path for path in there if path not in live and not (path.endswith(".crc") and checked_file(path) in live)]
    missing, outside = _missing(files.live, there, places)
    result = BucketResult([], missing, {}, len(there) - len(gone), outside, [], [], [], {})
    loosely_live = _loosely_live(live, gone)
    for path in gone:
        size, _, modified = there[path].partition(" ")
        place = places.find_place(path)
        if place is None:
            continue
        digest = digest_of(checked_file(path))  # nothing names a checksum: it goes with its file
        kind = file_kind_of(path, place)
        code = _judge(path, kind, int(modified), loosely_live, digest in held)
        _note_signs(result, path, place, kind, is_held=digest in held)
        count = result.counts.setdefault(place, {}).setdefault(code, ReasonCount())
        count.files += 1
        count.bytes += int(size)
        if code not in (FileReason.OWN_FILE, FileReason.LOOSELY_LIVE):
            result.dead.append(DeadFile(path, int(size), Micros(int(modified)), place, code))
        if digest in held:
            result.held.append(digest)
    digests = {digest_of(path) for path in live if path in there or places.find_place(path) is not None}
    digests.update(result.held if is_held_whole else held)
    return result._replace(held=sorted(digests))


def _loosely_live(live: Collection[str], gone: Sequence[str]) -> set[str]:
    """The loose keys of the live paths that may be loosely equal to one that is gone."""
    if not gone:
        return set()
    ordered, tails = list(live), frozenset(loose_tails(gone))
    return {loose_key(path) for path, tail in zip(ordered, loose_tails(ordered), strict=True) if tail in tails}


def digest_of(path: str) -> bytes:
    """What is remembered of a path that was held."""
    return hashlib.blake2b(path.encode(), digest_size=DIGEST_BYTES).digest()


def _missing(live: Sequence[str], there: Collection[str], places: PlaceIndex) -> tuple[dict[str, list[str]], int]:
    missing: dict[str, list[str]] = {}
    outside = 0
    for path in {path for path in live if path not in there}:
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
