"""Files divided into buckets by their loose keys, in memory while they are few and in a temporary folder beyond.

Everything that is said of a file depends on files of the same loose key alone. So a bucket is compared without the others, in constant
memory, in this process or on another machine.

``DeadRuns`` sorts what was found by place and path, in runs on disk that are merged when they are read.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple
from zlib import crc32

import msgspec

from headwater.iceberg.file_drivers import utf8_path
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.lake_file_values import DeadFile, ListedFile, LiveFile
from headwater.lake_files.path_keys import StrictKeys, loose_tails

BUCKETS = 256
NO_NAME = "\ufffd"
"""In the place of what is no text in a path. A file with it in its path cannot be named exactly, and so is never let go."""
_AT_ONCE = 8192
_IN_MEMORY = 200_000
_DEAD_IN_MEMORY = 50_000
_END = "\0"
_KINDS = ("live", "maybe", "listed", "facts")


class BucketFiles(NamedTuple):
    """The files of one bucket, by strict keys; a path may stand in it more than once.

    live          that must exist
    maybe         that are live, and whose absence is normal
    listed        that are there
    facts         of each listed file: its size in bytes and its time, separated by a blank
    """

    live: list[str]
    maybe: list[str]
    listed: list[str]
    facts: list[str]


class FileRuns:
    """Collects live and listed files by bucket. Use it in a ``with`` block: it removes its temporary folder.

    odd           some live paths that are no locations, such as relative ones: nobody can say which files they are
    """

    def __init__(self, *, buckets: int = BUCKETS, in_memory: int = _IN_MEMORY) -> None:
        self.buckets = buckets
        self.live = self.listed = self.listed_bytes = 0
        self.odd: list[str] = []
        self._in_memory = in_memory
        self._waiting = 0
        self._keys = StrictKeys()
        self._parts: dict[str, list[list[str]]] = {kind: [[] for _ in range(buckets)] for kind in _KINDS}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> FileRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def add_live(self, files: Iterable[LiveFile]) -> None:
        """Add live files, however spelled."""
        given = iter(files)
        while some := list(islice(given, _AT_ONCE)):
            self.live += len(some)
            must, may = self._parts["live"], self._parts["maybe"]
            keys = self._keys.strict_keys([file.path for file in some])
            if None in keys:
                some, keys = self._without_odd(some, keys)
            strict = _writable(keys)
            for key, file, bucket in zip(strict, some, buckets_of(strict, self.buckets), strict=True):
                (must if file.must_exist else may)[bucket].append(key)
            self._count(len(some))

    def add_listed(self, files: Iterable[ListedFile]) -> None:
        """Add files that are there."""
        given = iter(files)
        while some := list(islice(given, _AT_ONCE)):
            self.listed += len(some)
            self.listed_bytes += sum(map(_size_of, some))
            listed, facts = self._parts["listed"], self._parts["facts"]
            strict = _writable(
                [key or file.path for key, file in zip(self._keys.strict_keys(list(map(_path_of, some))), some, strict=True)]
            )
            for key, file, bucket in zip(strict, some, buckets_of(strict, self.buckets), strict=True):
                listed[bucket].append(key)
                facts[bucket].append(f"{file.size_bytes} {file.modified}")
            self._count(2 * len(some))

    def bucket(self, number: int) -> BucketFiles:
        """The files of a bucket."""
        return BucketFiles(*(self._read(kind, number) for kind in _KINDS))

    def _without_odd(self, files: Sequence[LiveFile], keys: Sequence[str | None]) -> tuple[list[LiveFile], list[str | None]]:
        self.odd += [file.path for file, key in zip(files, keys, strict=True) if key is None][: max(5 - len(self.odd), 0)]
        both = [(file, key) for file, key in zip(files, keys, strict=True) if key is not None]
        return [file for file, _ in both], [key for _, key in both]

    def _count(self, added: int) -> None:
        self._waiting += added
        if self._waiting > self._in_memory:
            self._spill()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="headwater-files-")
        for kind, parts in self._parts.items():
            for number, part in enumerate(parts):
                if part:
                    with self._file(kind, number).open("ab") as file:
                        file.write(_END.join([*part, ""]).encode())
                    part.clear()
        self._waiting = 0

    def _read(self, kind: str, number: int) -> list[str]:
        waiting = self._parts[kind][number]
        if self._folder is None:
            return waiting
        with suppress(FileNotFoundError):
            text = self._file(kind, number).read_bytes().decode()
            return text.split(_END)[:-1] + waiting
        return waiting

    def _file(self, kind: str, number: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{kind}-{number}"


_path_of = itemgetter(ListedFile._fields.index("path"))
_size_of = itemgetter(ListedFile._fields.index("size_bytes"))


def buckets_of(strict: Sequence[str], count: int) -> list[int]:
    """The buckets of paths: the same in every process. A checksum is in the bucket of its file."""
    return [crc32((checked_file(tail) if tail[-4:] == ".crc" else tail).encode()) % count for tail in loose_tails(strict)]


def checked_file(path: str) -> str:
    """The file whose checksum a file is by its name; other files as they are."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else path


def _writable(keys: Sequence[str | None]) -> list[str]:
    """Keys without the sign that stands between two of them, and without what is no text: listings have the same in its place."""
    text = _END.join(keys)  # type: ignore[arg-type]
    if text.isascii() and text.count(_END) == len(keys) - 1:
        return list(keys)  # type: ignore[arg-type]
    return [utf8_path((key or "").replace(_END, NO_NAME)) for key in keys]


class _DeadLine(NamedTuple):
    place: str
    path: str
    size_bytes: int
    modified: int
    code: str


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_DeadLine)


class DeadRuns:
    """Collects dead files, and gives them sorted by place and path, as often as asked. Use it in a ``with`` block."""

    def __init__(self, *, in_memory: int = _DEAD_IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._waiting: list[_DeadLine] = []
        self._runs: list[Path] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> DeadRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def add_dead(self, files: Iterable[DeadFile]) -> None:
        for file in files:
            self._waiting.append(_DeadLine(file.place, file.path, file.size_bytes, file.modified, file.code))
            if len(self._waiting) >= self._in_memory:
                self._spill()

    def __iter__(self) -> Iterator[DeadFile]:
        self._waiting.sort()
        for line in heapq.merge(self._waiting, *map(_lines, self._runs)):
            yield DeadFile(line.path, line.size_bytes, line.modified, line.place, FileReason(line.code))  # type: ignore[arg-type]

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="headwater-dead-")
        self._waiting.sort()
        run = Path(self._folder.name) / str(len(self._runs))
        with run.open("wb") as file:
            file.writelines(_ENCODER.encode(line) + b"\n" for line in self._waiting)
        self._runs.append(run)
        self._waiting = []


def _lines(run: Path) -> Iterator[_DeadLine]:
    with run.open("rb") as file:
        yield from map(_DECODER.decode, file)
