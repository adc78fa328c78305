"""What the stages of a file report hand to each other: files that are live, files that are there, and places that yield nothing."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from headwater.clock import Micros
from headwater.lake_files.file_reasons import FileReason, PlaceReason
from headwater.store import StoredPart


class LiveFile(NamedTuple):
    """A path that a stored version names, exactly as it is written there.

    must_exist    False for files whose absence is normal: earlier metadata files of a log, version hints, checksums
    """

    path: str
    must_exist: bool = True


class ListedFile(NamedTuple):
    """A file of a listing.

    path          its canonical location
    modified      0 where the storage does not say
    """

    path: str
    size_bytes: int
    modified: Micros


class TablePlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place whose files are looked at.

    location      canonical, without a slash at the end
    catalog_id    the catalog that has it
    content_id    the table; None for a prefix that ``spec.files.places`` gives to the catalog
    table_uuid    of the table, where its format has one
    key           for people
    """

    location: str
    catalog_id: str
    content_id: UUID | None = None
    table_uuid: str | None = None
    key: str = ""


class BlockedPlace(StoredPart, frozen=True, kw_only=True):
    """A place, or with ``s3://bucket`` a whole bucket, of which nothing may go.

    detail        what is to be mended, for people: the file, the table, the realm
    """

    known_by = ("location",)

    location: str
    code: PlaceReason
    detail: str = ""


class DeadFile(NamedTuple):
    """A listed file that no stored version refers to, strictly or loosely.

    place         the location of the ``TablePlace`` in which it lies
    code          NEVER_HELD, UNKNOWN_KIND, TIME_UNKNOWN: it is only reported; else IN_GRACE
    """

    path: str
    size_bytes: int
    modified: Micros
    place: str
    code: FileReason
