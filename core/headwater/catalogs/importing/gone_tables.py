"""Tables that a catalog has, and whose metadata is gone from where an import looks: dropped at their source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentType, IcebergTable, IcebergView
from headwater.catalogs.iceberg import STORAGE, Scope, UnfitError, comparable, is_selected, is_within
from headwater.catalogs.iceberg.storage import Storage
from headwater.catalogs.importing.reports import ReportRow
from headwater.errors import RefusedError

__all__ = ["GoneTable", "find_gone", "gone_row", "is_there"]

_AT_ONCE = 500
_TYPES = (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW)


class GoneTable(NamedTuple):
    """A table or view of the catalog.

    keeps         why it is not dropped, whatever the import says; an empty text: it may be
    """

    key: ContentKey
    content: IcebergTable | IcebergView
    keeps: str

    @property
    def directory(self) -> str:
        return _directory(self.content.metadata_location)


def find_gone(
    catalog: Catalog, ref: str, scope: Scope, seen: Collection[str], *, storage: Storage = STORAGE
) -> Iterator[GoneTable]:
    """The tables of a commit that lie in the scope, and whose metadata files are not there any more.

    seen          the directories that the survey has looked at, comparable: a table in one of these is not gone
    raises        UnavailableError when the storage does not answer
    """
    alive = {location for location in scope.locations if any(is_within(directory, location) for directory in seen)}
    token: str | None = None
    while True:
        page = catalog.entries(ref, limit=_AT_ONCE, page_token=token)
        keys = [entry.key for entry in page.entries if entry.type in _TYPES and _is_chosen(entry.key, scope)]
        for key, content in catalog.get_many(ref, keys).items():
            if isinstance(content, IcebergTable | IcebergView):
                location = next((one for one in scope.locations if is_within(content.metadata_location, one)), None)
                if location is not None and not _is_seen(content, seen) and not is_there(content, storage):
                    keeps = "" if location in alive else f"no table at all was found below {location}"
                    yield GoneTable(key, content, keeps)
        token = page.next_token
        if token is None:
            return


def gone_row(table: GoneTable, *, commit: str, is_dropping: bool) -> ReportRow:
    """What became of it: ``gone``, or ``dropped`` by a commit (in a dry run without one)."""
    fault = f"{table.content.metadata_location} is not there any more: the table was dropped at its source, or moved"
    kept = f"; it stays in the catalog, for {table.keeps}" if table.keeps else "; it stays in the catalog"
    uuid = table.content.table_uuid if isinstance(table.content, IcebergTable) else table.content.view_uuid
    is_dropped = is_dropping and not table.keeps
    return ReportRow(
        key=table.key.elements,
        directory=table.directory,
        outcome="dropped" if is_dropped else "gone",
        message=f"{fault}; it was dropped here, too" if is_dropped else fault + kept,
        kind="table" if isinstance(table.content, IcebergTable) else "view",
        metadata_location=table.content.metadata_location,
        uuid=uuid or "",
        commit=commit if is_dropped else "",
    )


def _is_chosen(key: ContentKey, scope: Scope) -> bool:
    elements: Sequence[str] = key.elements
    is_below = elements[: len(scope.namespace)] == scope.namespace
    return is_below and is_selected(elements, scope.include, scope.exclude)


def _is_seen(content: IcebergTable | IcebergView, seen: Collection[str]) -> bool:
    try:
        return comparable(_directory(content.metadata_location)) in seen
    except RefusedError:
        return True  # a place that no survey reaches


def is_there(content: IcebergTable | IcebergView, storage: Storage = STORAGE) -> bool:
    """Whether its metadata file is there, or nobody may look.

    raises        UnavailableError when the storage does not answer
    """
    try:
        return storage.has(content.metadata_location)
    except UnfitError:
        return True


def _directory(metadata_location: str) -> str:
    folder = metadata_location.rpartition("/")[0]
    return folder.removesuffix("/metadata")
