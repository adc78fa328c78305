"""Files as columns: a million paths are compared as they are, without an object for each.

A column is an Arrow array. The strict key of a path says which file it is; the number of its loose key, which paths may be loosely equal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, reduce
from itertools import chain, islice
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headwater.iceberg.file_drivers import utf8_path
from headwater.lake_files.lake_file_values import ListedFile, LiveFile
from headwater.lake_files.path_keys import FACTORS, TAIL, StrictKeys, loose_key, loose_number, strict_key

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
DIGEST_BYTES = 16
NO_NAME = "\ufffd"
"""Replaces what is not valid text in a path. A file with it in its path cannot be named exactly, so it never becomes a candidate."""
AT_ONCE = 8192
"""About how many files are gathered into one batch."""
_MOST_FOLDERS = 1000
_MOST_BYTES = 1 << 30
"""Of a path: no path has so many."""
_ROOT = re.compile(r"(?:s3|gs)://[^/]+/|file:///")
"""Beginnings of locations that are spelled as in strict keys."""


class LiveFiles(NamedTuple):
    """Paths that stored versions name. One path may stand in it more than once.

    keys          their strict keys
    numbers       of their loose keys
    digests       of their strict keys
    folders       of their strict keys, each once; None: they are too many
    odd           paths, as they are written, that are no locations: nobody can say which files they are
    must_exist    False for files whose absence is normal
    """

    keys: pa.StringArray
    numbers: pa.UInt32Array
    digests: pa.FixedSizeBinaryArray
    folders: tuple[str, ...] | None
    odd: tuple[str, ...] = ()
    must_exist: bool = True

    @property
    def size(self) -> int:
        """How many paths they are."""
        return len(self.keys) + len(self.odd)

    def all_folders(self) -> Iterable[str]:
        """The folders of the strict keys, however many."""
        return {_folder_of(key) for key in self.keys.to_pylist()} if self.folders is None else self.folders


def live_files(paths: Sequence[str], *, must_exist: bool = True) -> LiveFiles:
    """The columns of live paths."""
    (files,) = live_files_of([paths], must_exist=must_exist)
    return files


def live_files_of(parts: Sequence[Sequence[str]], *, must_exist: bool = True) -> Iterator[LiveFiles]:
    """The columns of some parts of live paths, made for all at once."""
    import pyarrow as pa

    paths = list(chain.from_iterable(parts))
    keys = _writable(paths)
    column = pa.array(keys, pa.string())
    numbers = _plain_numbers(keys, column)
    if numbers is None:
        yield from (_spelled_files(part, must_exist=must_exist) for part in parts)
        return
    digests = digest_column(map(digest_of, keys))
    start = 0
    for part in parts:
        keys_of, numbers_of, digests_of = (each.slice(start, len(part)) for each in (column, numbers, digests))
        yield LiveFiles(keys_of, numbers_of, digests_of, _folders(part), must_exist=must_exist)
        start += len(part)


def _spelled_files(paths: Sequence[str], *, must_exist: bool) -> LiveFiles:
    """The columns of paths that may be no strict keys, or no locations."""
    import pyarrow as pa

    spelled = StrictKeys().strict_keys(paths)
    keys = _writable([key for key in spelled if key is not None])
    return LiveFiles(
        keys=pa.array(keys, pa.string()),
        numbers=pa.array(map(loose_number, keys), pa.uint32()),
        digests=digest_column(map(digest_of, keys)),
        folders=_folders(keys),
        odd=tuple(path for path, key in zip(paths, spelled, strict=True) if key is None),
        must_exist=must_exist,
    )


def _folders(keys: Sequence[str]) -> tuple[str, ...] | None:
    folders = tuple({_folder_of(key): None for key in keys})
    return folders if len(folders) <= _MOST_FOLDERS else None


def live_in_columns(files: Iterable[LiveFile]) -> Iterator[LiveFiles]:
    """Live files, many at once; those that must exist, and then the others."""
    given = iter(files)
    while some := list(islice(given, AT_ONCE)):
        for must_exist in (True, False):
            if paths := [file.path for file in some if file.must_exist is must_exist]:
                yield live_files(paths, must_exist=must_exist)


def live_rows(batches: Sequence[LiveFiles]) -> pa.RecordBatch:
    """Live files as rows: key, number, digest, and whether they must exist."""
    import pyarrow as pa

    columns = [pa.concat_arrays(column) for column in list(zip(*batches, strict=True))[:3]]
    must_exist = pa.concat_arrays([pa.repeat(pa.scalar(files.must_exist), len(files.keys)) for files in batches])
    return pa.RecordBatch.from_arrays([*columns, must_exist], schema=live_schema())


class ListedFiles(NamedTuple):
    """Some files of a listing.

    column        their paths once more
    sizes         in bytes
    times         0 where the storage does not say
    """

    paths: Sequence[str]
    column: pa.StringArray
    sizes: pa.Int64Array
    times: pa.Int64Array


def listed_files(paths: Sequence[str], sizes: Sequence[int], times: Sequence[int]) -> ListedFiles:
    """The columns of listed files."""
    import pyarrow as pa

    clean = _writable(paths)
    return ListedFiles(clean, pa.array(clean, pa.string()), pa.array(sizes, pa.int64()), pa.array(times, pa.int64()))


def listed_in_columns(files: Iterable[ListedFile]) -> Iterator[ListedFiles]:
    """Listed files, many at once."""
    given = iter(files)
    while some := list(islice(given, AT_ONCE)):
        yield listed_files(*zip(*some, strict=True))


def listed_rows(files: ListedFiles, strict: StrictKeys) -> pa.RecordBatch:
    """Listed files as rows: key, number, size in bytes, and time."""
    import pyarrow as pa

    column, numbers = files.column, _plain_numbers(files.paths, files.column)
    if numbers is None:
        keys = [key or path for key, path in zip(strict.strict_keys(files.paths), files.paths, strict=True)]
        column, numbers = pa.array(keys, pa.string()), pa.array(map(loose_number, keys), pa.uint32())
    return pa.RecordBatch.from_arrays([column, numbers, files.sizes, files.times], schema=listed_schema())


def _plain_numbers(paths: Sequence[str], column: pa.StringArray) -> pa.UInt32Array | None:
    """The loose numbers of paths in ASCII that begin alike, and of which nothing has to be spelled otherwise, strictly or loosely.

    None for others. It looks at all paths at once: each takes a third of a microsecond.
    """
    import pyarrow.compute as pc

    if not paths:
        return None
    first, last = pc.min_max(column).as_py().values()
    alike = first[: commonprefix((first, last)).rfind("/") + 1]  # noqa: RUF071 - letter by letter, and then up to a slash
    start = _loose_start(alike)
    if start is None:
        return None
    texts = bytes(column.buffers()[2])
    is_plain = (
        texts.isascii()
        and b"%" not in texts
        and not pc.any(pc.ends_with(column, "/")).as_py()
        and _odd_slashes(texts) == len(paths) * _odd_slashes(alike.encode())
    )
    return _numbers_after(column, start) if is_plain else None


@lru_cache(maxsize=1024)
def _loose_start(alike: str) -> int | None:
    """Where the loose keys of paths begin that begin with a folder, if nothing of it is spelled otherwise; else None."""
    root = _ROOT.match(alike)
    if root is None:
        return None
    some = f"{alike}x"
    start = root.end()
    return start if strict_key(some) == some and loose_key(some) == some[start:].lower() else None


def _odd_slashes(texts: bytes) -> int:
    """How many slashes stand before a slash or a dot."""
    import pyarrow as pa
    import pyarrow.compute as pc

    signs = pa.UInt8Array.from_buffers(pa.uint8(), len(texts), [None, pa.py_buffer(texts)])
    slashes, dots = (pc.equal(signs, pa.scalar(ord(sign), pa.uint8())) for sign in "/.")
    return int(pc.sum(pc.and_(slashes[:-1], pc.or_(slashes[1:], dots[1:]))).as_py() or 0)


def _numbers_after(column: pa.StringArray, start: int) -> pa.UInt32Array:
    """``loose_number`` of plain paths, whose loose keys begin at a place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    loose = pc.binary_slice(column.cast(pa.binary()), start, _MOST_BYTES)
    ends = pc.ascii_lpad(pc.ascii_lower(pc.binary_slice(loose, -TAIL, _MOST_BYTES).cast(pa.string())), TAIL, "\0")
    words = pa.UInt64Array.from_buffers(pa.uint64(), len(ends) * len(FACTORS), [None, ends.buffers()[2]])
    by_place = pa.FixedSizeListArray.from_arrays(words, len(FACTORS))
    products = (pc.multiply(pc.list_element(by_place, at), pa.scalar(each, pa.uint64())) for at, each in enumerate(FACTORS))
    return pc.shift_right(reduce(pc.add, products), pa.scalar(32, pa.uint64())).cast(pa.uint32())


@cache
def live_schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {"key": pa.string(), "number": pa.uint32(), "digest": digest_type(), "must_exist": pa.bool_()}
    return pa.schema(kinds.items())


@cache
def listed_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema({"key": pa.string(), "number": pa.uint32(), "size": pa.int64(), "time": pa.int64()}.items())


def digest_of(key: str) -> bytes:
    """What is remembered of a path that was held, by its strict key."""
    return hashlib.blake2b(key.encode(), digest_size=DIGEST_BYTES).digest()


def digest_column(digests: Iterable[bytes]) -> pa.FixedSizeBinaryArray:
    return packed_digests(b"".join(digests))


def digest_type() -> pa.DataType:
    import pyarrow as pa

    return pa.binary(DIGEST_BYTES)


def packed_digests(data: bytes) -> pa.FixedSizeBinaryArray:
    """A column of digests that follow each other."""
    import pyarrow as pa

    return pa.FixedSizeBinaryArray.from_buffers(digest_type(), len(data) // DIGEST_BYTES, [None, pa.py_buffer(data)])


def joined_digests(digests: pa.FixedSizeBinaryArray) -> bytes:
    """The digests of a column, one behind the other."""
    data = digests.buffers()[1]
    start = digests.offset * DIGEST_BYTES
    return b"" if data is None else bytes(data.slice(start, len(digests) * DIGEST_BYTES).to_pybytes())


def weighed_batches(items: Iterable[T], weigh: Callable[[T], int], limit: int = AT_ONCE) -> Iterator[list[T]]:
    """Some items at a time, in order: each batch is full once it weighs as much as the limit."""
    batch: list[T] = []
    weight = 0
    for item in items:
        batch.append(item)
        weight += weigh(item)
        if weight >= limit:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _folder_of(key: str) -> str:
    return key.rpartition("/")[0]


def _writable(keys: Sequence[str]) -> Sequence[str]:
    """Keys with what is not valid text replaced, as in listings."""
    return keys if "".join(keys).isascii() else list(map(utf8_path, keys))
