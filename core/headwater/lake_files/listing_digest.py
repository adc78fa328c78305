"""A digest of a listing: two listings with the same one have the same files, of the same sizes and times, in the same order.

Files that Headwater itself keeps in places are left out: they change with every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import compress

from headwater.lake_files.file_columns import ListedFiles, listed_files
from headwater.lake_files.file_kinds import is_marker
from headwater.lake_files.work_folder import FOLDER


class ListingDigest:
    """Digests a listing while it passes.

    markers       of places, that passed
    """

    def __init__(self) -> None:
        self._columns = [hashlib.sha256() for _ in range(4)]
        self.markers: list[str] = []

    def pass_on(self, batches: Iterable[ListedFiles]) -> Iterator[ListedFiles]:
        for files in batches:
            self._add(self._others(files))
            yield files

    def read_all(self, batches: Iterable[ListedFiles]) -> str:
        """Digest a listing without keeping anything of it."""
        for _ in self.pass_on(batches):
            continue
        return self.hexdigest()

    def hexdigest(self) -> str:
        """The digest of what has passed."""
        return hashlib.sha256(b"".join(each.digest() for each in self._columns)).hexdigest()

    def _add(self, files: ListedFiles) -> None:
        """Digest each column by itself: then it does not matter how many files come at once."""
        import pyarrow.compute as pc

        lengths = pc.binary_length(files.column)
        texts = files.column.buffers()[2]
        parts = [None if texts is None else texts.slice(0, pc.sum(lengths).as_py() or 0)]
        parts += [column.buffers()[1].slice(0, len(column) * column.type.bit_width // 8) for column in (lengths, *files[2:])]
        for digest, part in zip(self._columns, parts, strict=True):
            digest.update(part or b"")

    def _others(self, files: ListedFiles) -> ListedFiles:
        if FOLDER not in "".join(files.paths):
            return files
        ours = [_is_ours(path) for path in files.paths]
        found = compress(files.paths, ours)
        self.markers += [path for path in found if is_marker(path.rpartition("/")[2])]
        others = [not is_ours for is_ours in ours]
        columns = (files.paths, files.sizes.to_pylist(), files.times.to_pylist())
        return listed_files(*(list(compress(column, others)) for column in columns))


def _is_ours(path: str) -> bool:
    return f"/{FOLDER}/" in path or is_marker(path.rpartition("/")[2])
