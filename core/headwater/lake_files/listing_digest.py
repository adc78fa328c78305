"""A digest of a listing: two listings with the same one have the same files, of the same sizes and times, in the same order.

Files that Headwater itself keeps in places are left out: they change with every run.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator

from headwater.lake_files.file_kinds import is_marker
from headwater.lake_files.lake_file_values import ListedFiles
from headwater.lake_files.work_folder import FOLDER


class ListingDigest:
    """Digests a listing while it passes.

    markers       of places, that passed
    """

    def __init__(self) -> None:
        self._paths, self._numbers = hashlib.blake2b(digest_size=16), [hashlib.blake2b(digest_size=16) for _ in range(3)]
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
        parts = [each.digest() for each in (self._paths, *self._numbers)]
        return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()

    def _add(self, files: ListedFiles) -> None:
        """Digest each column by itself: then it does not matter how many files come at once."""
        self._paths.update("".join(files.paths).encode(errors="surrogatepass"))
        for digest, numbers in zip(self._numbers, (map(len, files.paths), files.sizes, files.times), strict=True):
            digest.update(array("q", numbers).tobytes())

    def _others(self, files: ListedFiles) -> ListedFiles:
        if FOLDER not in "".join(files.paths):
            return files
        ours = [path for path in files.paths if _is_ours(path)]
        self.markers += [path for path in ours if is_marker(path.rpartition("/")[2])]
        others = [file for file in zip(*files, strict=True) if not _is_ours(file[0])]
        return ListedFiles(*zip(*others, strict=True)) if others else ListedFiles((), (), ())


def _is_ours(path: str) -> bool:
    return f"/{FOLDER}/" in path or is_marker(path.rpartition("/")[2])
