"""From a listing of files to table directories."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from headwater.catalogs.iceberg.names import HINT_NAME, is_hidden, parse_name

__all__ = ["File", "TableFiles", "group", "is_of_a_table", "is_selected"]

_LEFT_OVER = re.compile(r".*\.(?:parquet|orc|avro|puffin)")


class File(msgspec.Struct, frozen=True):
    """One file of a listing: its canonical location, size in bytes, and modification time in microseconds (0: unknown)."""

    path: str
    size: int
    mtime: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class TableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in one table directory, as far as an import looks at it.

    key           the folders below the import location, or what they were mapped to
    metadata      candidates for the latest metadata, sorted by path
    leftovers     how many data files and manifests there are
    has_delta_log whether the folder is a Delta Lake table, too
    is_mapped     whether the folders fit the import's pattern of paths
    """

    directory: str
    key: tuple[str, ...]
    metadata: tuple[File, ...] = ()
    hint: File | None = None
    leftovers: int = 0
    has_delta_log: bool = False
    is_mapped: bool = True


def group(location: str, files: Iterable[File]) -> list[TableFiles]:
    """The table directories below an import location, sorted by directory.

    A table directory is the parent of a folder ``metadata`` with metadata files in it. One that has only data files or
    manifests is what a dropped table left, and is handed on, too. The key of a table is its path below the location, every
    folder an element, as it is; where the location itself is the table, its own last folder.

    location      canonical
    files         below the location, in any order; paths canonical
    """
    parts: dict[str, list[TableFiles]] = defaultdict(list)
    for file in files:
        if part := _part(location, file):
            parts[part.directory].append(part)
    return _without_strangers([_merge(parts[directory]) for directory in sorted(parts)])


def is_of_a_table(location: str, file: File) -> bool:
    """Whether ``group`` looks at a file at all."""
    return _part(location, file) is not None


def _merge(parts: Sequence[TableFiles]) -> TableFiles:
    """One table directory from the parts of its listing, at least one, in any order."""
    return TableFiles(
        directory=parts[0].directory,
        key=parts[0].key,
        metadata=tuple(sorted((file for part in parts for file in part.metadata), key=lambda file: file.path)),
        hint=next((part.hint for part in parts if part.hint), None),
        leftovers=sum(part.leftovers for part in parts),
        has_delta_log=any(part.has_delta_log for part in parts),
    )


def _without_strangers(tables: Sequence[TableFiles]) -> list[TableFiles]:
    """Without directories that have no metadata, unless something was left there, not of Delta Lake, and not inside of a table."""
    real = {table.directory for table in tables if table.metadata}
    return [
        table
        for table in tables
        if table.metadata or (table.leftovers and not table.has_delta_log and not _parents(table.directory) & real)
    ]


def is_selected(key: Sequence[str], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> bool:
    """Whether a dotted name (``sales.eu.orders``) fits a pattern to include (none: all), and none of those to exclude."""
    name = ".".join(key)
    wanted = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return wanted and not any(fnmatchcase(name, pattern) for pattern in exclude)


def _part(location: str, file: File) -> TableFiles | None:
    folders = file.path.removeprefix(location).strip("/").split("/")[:-1]
    if not folders or any(folder.startswith(".") or folder == "_temporary" for folder in folders):
        return None
    if folders[-1] == "metadata" and parse_name(file.name):
        return _table(location, folders[:-1], metadata=(file,))
    if folders[-1] == "metadata" and file.name == HINT_NAME:
        return _table(location, folders[:-1], hint=file)
    if "_delta_log" in folders:
        return _table(location, folders[: folders.index("_delta_log")], has_delta_log=True)
    if _LEFT_OVER.fullmatch(file.name) and not is_hidden(file.name):
        if folders[-1] == "metadata":
            return _table(location, folders[:-1], leftovers=1)
        if "data" in folders:
            last = len(folders) - 1 - folders[::-1].index("data")
            return _table(location, folders[:last], leftovers=1)
    return None


def _table(
    location: str,
    folders: Sequence[str],
    *,
    metadata: tuple[File, ...] = (),
    hint: File | None = None,
    leftovers: int = 0,
    has_delta_log: bool = False,
) -> TableFiles:
    key = tuple(folders) or (location.rstrip("/").rpartition("/")[2],)
    return TableFiles(
        directory="/".join([location.rstrip("/"), *folders]),
        key=key,
        metadata=metadata,
        hint=hint,
        leftovers=leftovers,
        has_delta_log=has_delta_log,
    )


def _parents(directory: str) -> set[str]:
    segments = directory.split("/")
    return {"/".join(segments[:length]) for length in range(1, len(segments))}
