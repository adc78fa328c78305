"""Tables of a catalog whose metadata is gone from the surveyed locations: they were dropped at their source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.content import ContentKey, ContentType, IcebergTable, IcebergView
from headwater.catalogs.importer.import_report import ReportRow
from headwater.errors import CorruptionError, RefusedError
from headwater.iceberg import (
    STORAGE,
    RejectedTable,
    SurveyScope,
    canonical_location,
    comparable_location,
    is_selected,
    is_within,
)
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.layout import parse_metadata_name

_AT_ONCE = 500
_READERS = 16
_TYPES = (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW)

_Contents: TypeAlias = Mapping[ContentKey, IcebergTable | IcebergView]


class GoneTable(NamedTuple):
    """A table or view of the catalog whose metadata is gone.

    keeps         why it is not dropped even if the import says so; an empty text: it may be dropped
    newer         a metadata file beside the missing one that is not older: the table may continue there; else empty
    """

    key: ContentKey
    content: IcebergTable | IcebergView
    keeps: str = ""
    newer: str = ""

    @property
    def directory(self) -> str:
        return _directory(self.content.metadata_location)

    @property
    def may_go(self) -> bool:
        return not self.keeps and not self.newer


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneTables:
    """Finds the tables of a commit whose metadata files are gone.

    Candidates are the tables in the scope, and those of which a survey found nothing but data.

    surveyed      the comparable directories that the survey has looked at: a table in one of these is not gone
    left          by key, directories in which there is data without metadata
    """

    catalog: Catalog
    ref: str
    scope: SurveyScope
    surveyed: Collection[str]
    left: Mapping[ContentKey, str]
    storage: LakeStorage = STORAGE

    def pages(self) -> Iterator[list[GoneTable]]:
        """Find the missing tables, one page of the commit at a time; raises UnavailableError when the storage does not answer."""
        alive = {
            location for location in self.scope.locations if any(is_within(directory, location) for directory in self.surveyed)
        }
        token: str | None = None
        while True:
            page = self.catalog.entries(self.ref, limit=_AT_ONCE, page_token=token)
            keys = [entry.key for entry in page.entries if entry.type in _TYPES and _is_chosen(entry.key, self.scope)]
            contents = {
                key: content
                for key, content in self.catalog.get_contents(self.ref, keys).items()
                if isinstance(content, IcebergTable | IcebergView) and self._is_missed(key, content)
            }
            absent = _absent(contents, self.storage)
            locations = self._locations(absent)
            yield [self._gone(key, contents[key], locations.get(key), alive) for key in absent]
            token = page.next_token
            if token is None:
                return

    def _locations(self, keys: Sequence[ContentKey]) -> dict[ContentKey, str | CorruptionError]:
        """The locations by stored metadata; for metadata that cannot be read, the reason instead."""
        try:
            return dict(self.catalog.locations(self.ref, keys)) if keys else {}
        except CorruptionError as fault:
            if len(keys) == 1:
                return {keys[0]: fault}
        return {key: location for each in keys for key, location in self._locations([each]).items()}

    def _is_missed(self, key: ContentKey, content: IcebergTable | IcebergView) -> bool:
        """True if the survey should have met a table, and did not."""
        return key in self.left or (_location_of(content, self.scope) is not None and not _is_surveyed(content, self.surveyed))

    def _gone(
        self,
        key: ContentKey,
        content: IcebergTable | IcebergView,
        location: str | CorruptionError | None,
        alive: Collection[str],
    ) -> GoneTable:
        if isinstance(location, CorruptionError):
            return GoneTable(key, content, keeps=f"its stored metadata cannot be read ({location})")
        try:
            newer = _newer(content, location, self.storage)
        except RejectedTable as fault:
            return GoneTable(key, content, keeps=str(fault))
        if key in self.left:
            return GoneTable(key, content, newer=newer, keeps=f"{self.left[key]} still has data files")
        place = _location_of(content, self.scope)
        keeps = "" if place in alive else f"no table at all was found below {place}"
        return GoneTable(key, content, newer=newer, keeps=keeps)


def gone_row(table: GoneTable, *, commit: str, is_dropping: bool) -> ReportRow:
    """The report row of a missing table: ``gone``, or ``dropped`` by a commit (in a dry run without one)."""
    location, is_dropped = table.content.metadata_location, is_dropping and table.may_go
    if table.newer:
        fault = f"{location} is gone, and {table.newer} lies beside it. The table moved on: register it again with its latest metadata"
    else:
        fault = f"{location} is gone. The table may have been dropped or moved at its source"
    because = f" because {table.keeps}" if table.keeps else ""
    end = "it was dropped from the catalog as well" if is_dropped else f"it stays in the catalog{because}"
    uuid = table.content.table_uuid if isinstance(table.content, IcebergTable) else table.content.view_uuid
    return ReportRow(
        key=table.key.elements,
        directory=table.directory,
        outcome="dropped" if is_dropped else "gone",
        message=f"{fault}; {end}",
        kind="table" if isinstance(table.content, IcebergTable) else "view",
        metadata_location=location,
        uuid=uuid or "",
        commit=commit if is_dropped else "",
    )


def is_there(content: IcebergTable | IcebergView, storage: LakeStorage = STORAGE) -> bool:
    """True if a table's metadata file exists, or its location may not be looked at.

    raises        UnavailableError when the storage does not answer
    """
    try:
        return storage.has_file(content.metadata_location)
    except RejectedTable:
        return True


def _absent(contents: _Contents, storage: LakeStorage) -> list[ContentKey]:
    """The tables whose metadata files do not exist. Remote storages are asked for several at a time."""
    look = partial(is_there, storage=storage)
    if all(content.metadata_location.startswith(("file:", "/")) for content in contents.values()):
        return [key for key, content in contents.items() if not look(content)]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="gone") as pool:
        return [key for key, exists in zip(contents, pool.map(look, contents.values()), strict=True) if not exists]


def _newer(content: IcebergTable | IcebergView, location: str | None, storage: LakeStorage) -> str:
    """A metadata file that may be later than the missing one, in its folder or in the table's location; else an empty text.

    An engine that deletes old versions may have deleted only the missing one.

    raises        RejectedTable for a folder that may not be listed
    """
    folder, _, name = content.metadata_location.rpartition("/")
    folders = dict.fromkeys([folder, *([] if location is None else [f"{location.rstrip('/')}/metadata"])])
    for each in folders:
        for other in _names_in(each, storage):
            if not _is_older(other, name):
                return f"{each}/{other}"
    return ""


def _names_in(folder: str, storage: LakeStorage) -> list[str]:
    """The names of the metadata files in a folder, the highest first."""
    try:
        listed = [file.name for file in storage.list_folder(canonical_location(folder))]
    except RefusedError:
        return []  # it is not a location, so there is no folder to list
    return sorted((name for name in listed if parse_metadata_name(name) is not None), key=_number, reverse=True)


def _is_older(name: str, than: str) -> bool:
    """True if one metadata file is older by the numbers in names of one scheme, the only evidence of their order."""
    parsed, parsed_than = parse_metadata_name(name), parse_metadata_name(than)
    return (
        parsed is not None
        and parsed_than is not None
        and parsed.scheme is parsed_than.scheme
        and 0 <= parsed.number < parsed_than.number
    )


def _number(name: str) -> int:
    parsed = parse_metadata_name(name)
    return -1 if parsed is None else parsed.number


def _location_of(content: IcebergTable | IcebergView, scope: SurveyScope) -> str | None:
    """The location of an import that contains a table's metadata."""
    return next((location for location in scope.locations if is_within(content.metadata_location, location)), None)


def _is_chosen(key: ContentKey, scope: SurveyScope) -> bool:
    elements: Sequence[str] = key.elements
    is_below = elements[: len(scope.namespace)] == scope.namespace
    return is_below and is_selected(elements, scope.include, scope.exclude)


def _is_surveyed(content: IcebergTable | IcebergView, surveyed: Collection[str]) -> bool:
    try:
        return comparable_location(_directory(content.metadata_location)) in surveyed
    except RefusedError:
        return True  # a place that no survey reaches


def _directory(metadata_location: str) -> str:
    folder = metadata_location.rpartition("/")[0]
    return folder.removesuffix("/metadata")
