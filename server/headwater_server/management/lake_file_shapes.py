"""The shapes of what is told of the files of a catalog's lake."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from headwater_server.management.resource_shapes import ListQuery, NextPage, Time

Code = Annotated[str, Meta(description="The rule that holds for it, such as InGrace, Marked or Due")]
_URL = Annotated[str, Meta(min_length=1, max_length=4096)]


class FilesOfCode(Struct, frozen=True):
    """Files of which one thing is to be said; ``why`` says it in words."""

    files: int
    bytes: int
    why: str


class LakePlace(Struct, frozen=True):
    """A place of a table, or a prefix of the catalog, with files that nobody refers to.

    files, bytes  that may go one day
    reported      further files, which are only reported
    """

    table: str | None
    place: str
    files: int
    bytes: int
    reported: int


class BlockedLakePlace(Struct, frozen=True):
    """A place of which no file may go, and why."""

    place: str
    code: str
    why: str


class FileReportResource(Struct, frozen=True, rename="camel"):
    """The last report of a catalog's files; what it says holds for the time of its listings.

    report        its number
    files         by code
    tables        the places with the most bytes that may go
    blocked       the first places that yield nothing, of ``blockedPlaces``
    """

    realm: str
    catalog: str
    report: int
    live_as_of: Time
    listed_from: Time
    finished: Time
    reclaimable_files: int
    reclaimable_bytes: int
    due_files: int
    due_bytes: int
    files: dict[str, FilesOfCode]
    outside: int
    tables: list[LakePlace]
    blocked_places: int
    blocked: list[BlockedLakePlace]
    requests: dict[str, int]
    plan: dict[str, Any] | None


class LakeFilesQuery(ListQuery, frozen=True, rename="camel"):
    """Which files that nobody refers to."""

    code: list[str] = []
    place: _URL | None = None


class UnreferencedFile(Struct, frozen=True):
    """A file that nobody refers to.

    modified      its own time; null where its storage does not say
    since         when our listings first had it as one that nobody refers to
    due           the first time at which it may go; null: it is only reported
    """

    path: str
    code: Code
    why: str
    bytes: int
    modified: Annotated[str | None, Meta(description="RFC 3339, in UTC")]
    since: Time
    due: Annotated[str | None, Meta(description="RFC 3339, in UTC")]
    place: str


class UnreferencedFileList(Struct, frozen=True, rename="camel"):
    """A page of files by place and path. A page may be short, or empty, and be followed by another."""

    report: int
    files: list[UnreferencedFile]
    next_page_token: NextPage


class FileExplanationQuery(Struct, frozen=True):
    """The file to explain."""

    url: _URL


class ReferringVersion(Struct, frozen=True):
    """A version of a table or view that refers to a file; ``where``: the branches and tags whose heads have this version."""

    table: str
    where: list[str]
    snapshots: list[str]
    metadata: str


class TableOfFolder(Struct, frozen=True, rename="camel"):
    """A table whose files lie in a folder, around it or below it.

    where         the branches and tags that have it; none: only history does
    """

    table: str
    where: list[str]
    location: str
    dropped: Annotated[str | None, Meta(description="When it was dropped from the default branch: RFC 3339, in UTC")]
    dropped_by: str


class UnreferencedOfFolder(Struct, frozen=True):
    """Files below a folder that nobody refers to, by the last report."""

    code: Code
    files: int
    bytes: int


class ExplainedFile(Struct, frozen=True):
    """Why a file, or a folder, is there.

    exists        null where its storage could not be asked
    referrers     of this catalog, the first twenty
    tables        of a folder: those of this catalog, among the first twenty
    since, due    null where somebody refers to it, or no report has it
    """

    url: str
    exists: bool | None
    code: Code
    why: str
    catalog: str
    place: str
    table: str
    referrers: list[ReferringVersion]
    tables: list[TableOfFolder]
    unreferenced: list[UnreferencedOfFolder]
    since: Annotated[str | None, Meta(description="RFC 3339, in UTC")]
    due: Annotated[str | None, Meta(description="RFC 3339, in UTC")]
    report: int | None
