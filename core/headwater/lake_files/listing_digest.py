"""A digest of a listing: two listings with the same one have the same files, of the same sizes and times, in the same order.

Files that Headwater itself keeps in places are left out: they change with every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from headwater.lake_files.file_kinds import is_marker
from headwater.lake_files.lake_file_values import ListedFile
from headwater.lake_files.work_folder import FOLDER

_AT_ONCE = 8192
_ENCODE = msgspec.msgpack.Encoder().encode


class ListingDigest:
    """Digests a listing while it passes.

    markers       of places, that passed
    """

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self.markers: list[str] = []

    def pass_on(self, files: Iterable[ListedFile]) -> Iterator[ListedFile]:
        given = iter(files)
        waiting: list[ListedFile] = []
        while some := list(islice(given, _AT_ONCE)):
            waiting += self._others(some)
            if len(waiting) >= _AT_ONCE:  # always so many at once, however many of ours were among them
                self._digest.update(_ENCODE(waiting[:_AT_ONCE]))
                waiting = waiting[_AT_ONCE:]
            yield from some
        self._digest.update(_ENCODE(waiting))

    def read_all(self, files: Iterable[ListedFile]) -> str:
        """Digest a listing without keeping anything of it."""
        for _ in self.pass_on(files):
            continue
        return self.hexdigest()

    def hexdigest(self) -> str:
        """The digest of what has passed."""
        return self._digest.hexdigest()

    def _others(self, files: list[ListedFile]) -> list[ListedFile]:
        if not any(FOLDER in file.path for file in files):
            return files
        ours = [file.path for file in files if _is_ours(file.path)]
        self.markers += [path for path in ours if is_marker(path.rpartition("/")[2])]
        return [file for file in files if not _is_ours(file.path)]


def _is_ours(path: str) -> bool:
    return f"/{FOLDER}/" in path or is_marker(path.rpartition("/")[2])
