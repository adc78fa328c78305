"""The layout of tables below a location: from a listing of files to table directories, their metadata files, and their keys.

``group_tables`` finds the table directories in a listing. ``parse_metadata_name`` says which naming scheme wrote a metadata
file, and which number it carries. ``parse_pattern`` reads the pattern of paths by which an import maps directories to keys.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

import msgspec

from headwater.errors import RefusedError

_LEFT_OVER = re.compile(r".*\.(?:parquet|orc|avro|puffin)")


class FileInfo(msgspec.Struct, frozen=True):
    """One file of a listing: its canonical location, size in bytes, and modification time in microseconds (0: unknown).

    size          -1 for a dangling link
    fault         of an entry for a folder that could not be listed: why
    """

    path: str
    size: int
    mtime: int = 0
    fault: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class TableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one table directory that an import looks at.

    key           the folders below the import location, or the key that they were mapped to
    metadata      candidates for the latest metadata, sorted by path
    leftovers     the number of data files and manifests
    has_delta_log whether the folder is a Delta Lake table, too
    is_mapped     whether the folders fit the import's pattern of paths
    fault         why the folder, or one within it, could not be listed
    """

    directory: str
    key: tuple[str, ...]
    metadata: tuple[FileInfo, ...] = ()
    hint: FileInfo | None = None
    leftovers: int = 0
    has_delta_log: bool = False
    is_mapped: bool = True
    fault: str = ""


class _Role(Enum):
    """The role of a file in its table."""

    METADATA = auto()
    HINT = auto()
    DELTA_LOG = auto()
    LEFTOVER = auto()
    UNLISTED = auto()


class _TableFolder:
    """A table directory while its files are read: a folder may hold very many of them."""

    __slots__ = ("fault", "has_delta_log", "hint", "leftovers", "metadata")

    def __init__(self) -> None:
        self.metadata: dict[str, FileInfo] = {}
        self.hint: FileInfo | None = None
        self.leftovers = 0
        self.has_delta_log = False
        self.fault = ""

    def note_file(self, role: _Role, file: FileInfo) -> None:
        """Note a file. Inventories may list it more than once: the version written last counts."""
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


def group_tables(location: str, files: Iterable[FileInfo]) -> list[TableFiles]:
    """Group the files below an import location into table directories, sorted by directory.

    A table directory is the parent of a folder ``metadata`` with metadata files in it. A directory with only data files or manifests
    is the rest of a dropped table, and is returned, too; so is a folder that could not be listed. The key of a table is its path
    below the location, every folder an element, unchanged; where the location itself is the table, its own last folder.

    location      canonical
    files         below the location, in any order; paths canonical
    """
    gathered: dict[tuple[str, ...], _TableFolder] = defaultdict(_TableFolder)
    for file in files:
        if part := _folders_and_role(location, file):
            folders, role = part
            gathered[folders].note_file(role, file)
    tables = (_table(location, folders, files) for folders, files in gathered.items())
    return _without_strangers(sorted(tables, key=lambda table: table.directory))


def belongs_to_table(location: str, file: FileInfo) -> bool:
    """True if ``group_tables`` uses a file at all."""
    return _folders_and_role(location, file) is not None


def _without_strangers(tables: Sequence[TableFiles]) -> list[TableFiles]:
    """Leave out directories without metadata that are Delta Lake's, lie inside a table, or have neither leftovers nor a fault."""
    real = {table.directory for table in tables if table.metadata}
    return [
        table
        for table in tables
        if table.metadata
        or ((table.leftovers or table.fault) and not table.has_delta_log and not _parents(table.directory) & real)
    ]


def is_selected(key: Sequence[str], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> bool:
    """True if a dotted name (``sales.eu.orders``) fits a pattern to include (none: all), and no pattern to exclude."""
    name = ".".join(key)
    wanted = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return wanted and not any(fnmatchcase(name, pattern) for pattern in exclude)


def _folders_and_role(location: str, file: FileInfo) -> tuple[tuple[str, ...], _Role] | None:
    """The folders of a file's table directory, below the location, and the role of the file there."""
    segments = file.path.removeprefix(location).strip("/").split("/")
    folders = segments if file.fault else segments[:-1]
    if not folders or any(folder.startswith(".") or folder == "_temporary" for folder in folders):
        return None
    if file.fault:
        return tuple(folders[: _last_folder_named(folders, "metadata", "data", "_delta_log")]), _Role.UNLISTED
    if folders[-1] == "metadata" and parse_metadata_name(file.name):
        return tuple(folders[:-1]), _Role.METADATA
    if folders[-1] == "metadata" and file.name == HINT_NAME:
        return tuple(folders[:-1]), _Role.HINT
    if "_delta_log" in folders:
        return tuple(folders[: folders.index("_delta_log")]), _Role.DELTA_LOG
    if _LEFT_OVER.fullmatch(file.name) and not is_hidden(file.name):
        last = len(folders) - 1 if folders[-1] == "metadata" else _last_folder_named(folders, "data")
        if last < len(folders):
            return tuple(folders[:last]), _Role.LEFTOVER
    return None


def _last_folder_named(folders: Sequence[str], *names: str) -> int:
    """The index of the last folder of one of these names; past the end if there is none."""
    return next((at for at in reversed(range(len(folders))) if folders[at] in names), len(folders))


def _table(location: str, folders: tuple[str, ...], files: _TableFolder) -> TableFiles:
    return TableFiles(
        directory="/".join([location.rstrip("/"), *folders]),
        key=folders or (location.rstrip("/").rpartition("/")[2],),
        metadata=tuple(files.metadata[path] for path in sorted(files.metadata)),
        hint=files.hint,
        leftovers=files.leftovers,
        has_delta_log=files.has_delta_log,
        fault=files.fault,
    )


def _age(file: FileInfo) -> int:
    return file.mtime


def _parents(directory: str) -> set[str]:
    segments = directory.split("/")
    return {"/".join(segments[:length]) for length in range(1, len(segments))}


HINT_NAME = "version-hint.text"

_CODEC = r"(?:\.(?:gz|gzip|zst|zstd|lz4|snappy|bz2|br|deflate|xz))?"
_METADATA = re.compile(rf"(?P<stem>.+?){_CODEC}\.metadata\.json{_CODEC}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_METASTORE = re.compile(r"([0-9]+)-.+")
_HADOOP = re.compile(r"v([0-9]+)")


class NameScheme(StrEnum):
    """The writer's naming scheme. Numbers of different schemes do not compare.

    METASTORE     ``00003-<uuid>.metadata.json``: catalogs with a pointer
    HADOOP        ``v3.metadata.json``: tables whose file names are the pointer
    UNNUMBERED    everything else: ``<uuid>``, ``vfinal``, ``v3.1``
    """

    METASTORE = "metastore"
    HADOOP = "hadoop"
    UNNUMBERED = "unnumbered"


class MetadataName(NamedTuple):
    """``stem`` is the name without suffix and codec; ``number`` is -1 where there is none."""

    stem: str
    scheme: NameScheme
    number: int


def parse_metadata_name(name: str) -> MetadataName | None:
    """Parse the name of a metadata file; None for any other name.

    The codec in a name (``v3.gz.metadata.json``, the older ``v3.metadata.json.gz``) is ignored, since the content decides; but a name
    with an unsupported codec still counts, so that such a file is reported and not passed over.
    """
    match = _METADATA.fullmatch(name)
    if match is None or is_hidden(name):
        return None
    stem = match["stem"]
    if _UUID.fullmatch(stem):  # may well begin with eight digits and a dash
        return MetadataName(stem, NameScheme.UNNUMBERED, -1)
    if numbered := _METASTORE.fullmatch(stem):
        return MetadataName(stem, NameScheme.METASTORE, int(numbered[1]))
    if numbered := _HADOOP.fullmatch(stem):
        return MetadataName(stem, NameScheme.HADOOP, int(numbered[1]))
    return MetadataName(stem, NameScheme.UNNUMBERED, -1)


def is_hidden(name: str) -> bool:
    """True for checksums, hidden files and temporary files of writers."""
    return name.startswith((".", "_")) or name.endswith((".crc", ".tmp", "~"))


_TABLE = "table"
_IN_A_FOLDER = 3
_OVER_FOLDERS = 2
"""What is left open is tried in every way that there is, and these multiply: beyond, one long path could take for ever."""
_TOKEN = re.compile(
    r"\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<deep>/?)\}|(?P<folders>(?<![^/])\*\*(?:/|$))|(?P<part>\*)|(?P<text>[^{}*]+)"
)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern of paths, made by ``parse_pattern``.

    regex         of the whole path, with a group for each element
    deep          for each group, whether it holds several folders
    """

    text: str
    regex: re.Pattern[str]
    deep: tuple[bool, ...]

    def match_key(self, folders: Sequence[str]) -> tuple[str, ...] | None:
        """The elements of a path, or None if it does not fit. If it fits in several ways, the first placeholders are short."""
        match = self.regex.fullmatch("/".join(folders))
        if match is None:
            return None
        parts = [part.split("/") if deep else [part] for part, deep in zip(match.groups(), self.deep, strict=True)]
        return tuple(element for elements in parts for element in elements)


@lru_cache(maxsize=64)
def parse_pattern(text: str) -> PathPattern:
    """Read a pattern such as ``{namespace}.db/{table}``.

    ``{name}``    a folder or a part of one: an element of the key, in the order of the pattern; the last one is ``{table}``
    ``{name/}``   one folder or more, each an element
    ``*``         a folder, or a part of one, that is left out of the key
    ``**``        as a whole folder of the pattern: any number of folders that are left out of the key

    Elements stay as they are: nothing is decoded, nor made lower case.

    raises        RefusedError, with the place, for what is no such pattern
    """
    regex, names, deep, at = "", [], [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise RefusedError(f"path {text!r} has a stray {text[at]!r} at place {at + 1}: write placeholders as {{name}}")
        at = token.end()
        if token["name"]:
            names.append(token["name"])
            deep.append(bool(token["deep"]))
            regex += "([^/]+(?:/[^/]+)*?)" if token["deep"] else "([^/]+?)"
        elif token["folders"]:
            regex += "(?:[^/]+/)*" if token["folders"].endswith("/") else "(?:[^/]+(?:/[^/]+)*)?"
        else:
            regex += "[^/]*?" if token["part"] else re.escape(token["text"])
    _check_placeholders(text, names, deep)
    return PathPattern(text, re.compile(regex), tuple(deep))


def _check_placeholders(text: str, names: Sequence[str], deep: Sequence[bool]) -> None:
    if names.count(_TABLE) != 1 or names[-1] != _TABLE or deep[-1]:
        raise RefusedError(f"path {text!r} needs {{table}} once, as its last placeholder, such as {{namespace}}.db/{{table}}")
    if len(set(names)) != len(names):
        raise RefusedError(f"path {text!r} uses a placeholder twice: give each element a name of its own")
    if text.startswith("/") or text.endswith("/") or "//" in text:
        raise RefusedError(f"path {text!r} starts or ends with a slash, or doubles one: it is matched below the location")
    folders = text.replace("/}", "}").split("/")
    if any(folder.count("{") + folder.count("*") > _IN_A_FOLDER for folder in folders if folder != "**"):
        raise RefusedError(f"path {text!r} has many placeholders and * in one folder: at most {_IN_A_FOLDER} are possible")
    if folders.count("**") + sum(deep) > _OVER_FOLDERS:
        raise RefusedError(f"path {text!r} has many ** and {{name/}}: at most {_OVER_FOLDERS} are possible")
