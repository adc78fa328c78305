"""From a listing of files to table directories."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase

import msgspec

from headwater.catalogs.iceberg.names import HINT_NAME, is_hidden, parse_name

__all__ = ["File", "TableFiles", "group", "is_of_a_table", "is_selected"]

_LEFT_OVER = re.compile(r".*\.(?:parquet|orc|avro|puffin)")


class File(msgspec.Struct, frozen=True):
    """One file of a listing: its canonical location, size in bytes, and modification time in microseconds (0: unknown).

    size          -1 of a link to nowhere
    fault         of a folder that could not be listed, which stands in its place: why
    """

    path: str
    size: int
    mtime: int = 0
    fault: str = ""

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
    fault         the folder, or one of it, could not be listed: why
    """

    directory: str
    key: tuple[str, ...]
    metadata: tuple[File, ...] = ()
    hint: File | None = None
    leftovers: int = 0
    has_delta_log: bool = False
    is_mapped: bool = True
    fault: str = ""


class _Role(Enum):
    """What a file is to its table."""

    METADATA = auto()
    HINT = auto()
    DELTA_LOG = auto()
    LEFTOVER = auto()
    UNLISTED = auto()


class _Gathered:
    """A table directory while its files come by: a folder may hold very many of them."""

    __slots__ = ("fault", "has_delta_log", "hint", "leftovers", "metadata")

    def __init__(self) -> None:
        self.metadata: dict[str, File] = {}
        self.hint: File | None = None
        self.leftovers = 0
        self.has_delta_log = False
        self.fault = ""

    def add(self, role: _Role, file: File) -> None:
        """Inventories may list a file more than once: the version of it that was written last counts."""
        if role is _Role.METADATA:
            self.metadata[file.path] = max(self.metadata.get(file.path, file), file, key=_age)
        elif role is _Role.HINT:
            self.hint = max(self.hint or file, file, key=_age)
        elif role is _Role.DELTA_LOG:
            self.has_delta_log = True
        elif role is _Role.LEFTOVER:
            self.leftovers += 1
        else:
            self.fault = self.fault or f"{file.path} cannot be listed: {file.fault}"


def group(location: str, files: Iterable[File]) -> list[TableFiles]:
    """The table directories below an import location, sorted by directory.

    A table directory is the parent of a folder ``metadata`` with metadata files in it. One that has only data files or
    manifests is what a dropped table left, and is handed on, too; so is a folder that could not be listed. The key of a table is
    its path below the location, every folder an element, as it is; where the location itself is the table, its own last folder.

    location      canonical
    files         below the location, in any order; paths canonical
    """
    gathered: dict[tuple[str, ...], _Gathered] = defaultdict(_Gathered)
    for file in files:
        if part := _part(location, file):
            folders, role = part
            gathered[folders].add(role, file)
    tables = (_table(location, folders, files) for folders, files in gathered.items())
    return _without_strangers(sorted(tables, key=lambda table: table.directory))


def is_of_a_table(location: str, file: File) -> bool:
    """Whether ``group`` looks at a file at all."""
    return _part(location, file) is not None


def _without_strangers(tables: Sequence[TableFiles]) -> list[TableFiles]:
    """Without directories that have no metadata, unless something was left there or may not be seen, not of Delta Lake, and not
    inside of a table."""
    real = {table.directory for table in tables if table.metadata}
    return [
        table
        for table in tables
        if table.metadata
        or ((table.leftovers or table.fault) and not table.has_delta_log and not _parents(table.directory) & real)
    ]


def is_selected(key: Sequence[str], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> bool:
    """Whether a dotted name (``sales.eu.orders``) fits a pattern to include (none: all), and none of those to exclude."""
    name = ".".join(key)
    wanted = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return wanted and not any(fnmatchcase(name, pattern) for pattern in exclude)


def _part(location: str, file: File) -> tuple[tuple[str, ...], _Role] | None:
    """The folders of the table directory that a file belongs to, below the location, and what it is there."""
    segments = file.path.removeprefix(location).strip("/").split("/")
    folders = segments if file.fault else segments[:-1]
    if not folders or any(folder.startswith(".") or folder == "_temporary" for folder in folders):
        return None
    if file.fault:
        return tuple(folders[: _place(folders, "metadata", "data", "_delta_log")]), _Role.UNLISTED
    if folders[-1] == "metadata" and parse_name(file.name):
        return tuple(folders[:-1]), _Role.METADATA
    if folders[-1] == "metadata" and file.name == HINT_NAME:
        return tuple(folders[:-1]), _Role.HINT
    if "_delta_log" in folders:
        return tuple(folders[: folders.index("_delta_log")]), _Role.DELTA_LOG
    if _LEFT_OVER.fullmatch(file.name) and not is_hidden(file.name):
        last = len(folders) - 1 if folders[-1] == "metadata" else _place(folders, "data")
        if last < len(folders):
            return tuple(folders[:last]), _Role.LEFTOVER
    return None


def _place(folders: Sequence[str], *names: str) -> int:
    """Where the last folder of one of these names is; behind the last one if there is none."""
    return next((at for at in reversed(range(len(folders))) if folders[at] in names), len(folders))


def _table(location: str, folders: tuple[str, ...], files: _Gathered) -> TableFiles:
    return TableFiles(
        directory="/".join([location.rstrip("/"), *folders]),
        key=folders or (location.rstrip("/").rpartition("/")[2],),
        metadata=tuple(files.metadata[path] for path in sorted(files.metadata)),
        hint=files.hint,
        leftovers=files.leftovers,
        has_delta_log=files.has_delta_log,
        fault=files.fault,
    )


def _age(file: File) -> int:
    return file.mtime


def _parents(directory: str) -> set[str]:
    segments = directory.split("/")
    return {"/".join(segments[:length]) for length in range(1, len(segments))}
