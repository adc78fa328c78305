"""Two keys of a path: a strict one, by which a file is live, and a loose one, by which it may be.

Strict: the spelling of one storage, and nothing decoded. ``s3a://b/x`` is ``s3://b/x``; ``s3://b/a%20b`` is not ``s3://b/a b``.

Loose: what the most careless reader would take for the same file. Scheme and authority are left out; the rest is percent-decoded until
nothing changes, composed (NFC), case-folded, and has no empty, ``.`` or ``..`` segments. Files of different places may have one loose key:
that keeps a file, and never lets one go.

A strict key and the text that it was made from have the same loose key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import normalize
from urllib.parse import unquote
from zlib import crc32

from headwater.errors import RefusedError
from headwater.iceberg.location import same_storage

_NO_NAMES = ("", ".", "..")
_MOST_FOLDERS = 65_536
_TAIL = 64
"""Bytes of a loose key: a name and the end of its folder's. Of files that differ in nothing but what is before them one bucket has more."""
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\n]*/")
_SAME = re.compile(r"(?:s3|gs)://[^/\n]+/|file:///")
"""Beginnings of locations that are spelled as in strict keys."""
_AUTHORITY = re.compile(r"[a-z][a-z0-9+.-]*:(?://[^/]*)?/*")


class StrictKeys:
    """Strict keys, quick for paths of folders that were met before. For one thread; keeps a bounded number of folders."""

    def __init__(self) -> None:
        self._folders: dict[str, str | None] = {}

    def strict_key_of(self, path: str) -> str | None:
        """The strict key of a path; None for a text that is no location."""
        folder, _, name = path.rpartition("/")
        if name in _NO_NAMES:
            return strict_key(path)
        try:
            spelled = self._folders[folder]
        except KeyError:
            spelled = self._spell(folder)
        return strict_key(path) if spelled is None else f"{spelled}/{name}"

    def strict_keys(self, paths: Sequence[str]) -> list[str | None]:
        """The strict keys of many paths."""
        return [self.strict_key_of(path) for path in paths]

    def _spell(self, folder: str) -> str | None:
        """The spelling of a folder, to which a name can be added as it is; None where the whole path has to be looked at."""
        if len(self._folders) >= _MOST_FOLDERS:
            self._folders.clear()
        spelled = None if folder.endswith("/") else strict_key(folder)
        spelled = None if spelled is None or spelled.endswith("/") else spelled
        self._folders[folder] = spelled
        return spelled


def strict_key(path: str) -> str | None:
    """The strict key of a path; None for a text that is no location.

    That is a relative path, one with ``..`` in it, and a local file of some host, which readers take for different files.
    """
    try:
        key = same_storage(f"/{path.lstrip('/')}" if path.startswith("//") else path)
    except RefusedError:
        return None
    return None if key.startswith("file://") and not key.startswith("file:///") else key


def loose_key(path: str) -> str:
    """The loose key of any text."""
    if not path.isascii() or "%" in path:
        return _loosened(path)
    plain = _plain(path.lower())
    is_usual = "//" not in plain and "/." not in plain and not plain.startswith(".") and not plain.endswith("/")
    return plain if is_usual else _loosened(path)


def loose_numbers(paths: Sequence[str]) -> list[int]:
    """A number below 2**32 of each path, the same for all that are loosely equal, and for a file and its checksum.

    It is made of the end of the loose key. Of a text in which all paths are plain, as most are, each takes a third of a microsecond.
    """
    text = "\n".join(paths)
    return _plain_numbers(text) if _is_plain(text, len(paths)) else [_number(loose_key(path)) for path in paths]


def numbers_of_keys(paths: Sequence[str]) -> list[int] | None:
    """The loose numbers of paths that begin alike, are plain, and are their own strict keys; None for others. Looks at all at once."""
    text = "\n".join(paths)
    return _plain_numbers(text) if _SAME.match(text) and _is_plain(text, len(paths)) else None


def _plain_numbers(text: str) -> list[int]:
    root = text.index("/", text.index("//") + 2) + 1
    paths = text.lower().encode().split(b"\n")
    if min(map(len, paths)) >= root + _TAIL:
        return [crc32(path[-_TAIL:]) for path in paths]
    return [crc32(path[root:][-_TAIL:]) for path in paths]


def _number(loose: str) -> int:
    return crc32((checked_file(loose) if loose.endswith(".crc") else loose).encode()[-_TAIL:])


def checked_file(path: str) -> str:
    """The file whose checksum a file is by its name; other files as they are."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else path


def _is_plain(text: str, count: int) -> bool:
    """Whether all paths of a text, one a line, begin alike with a scheme, and have segments that are nothing but names in ASCII."""
    root = _ROOT.match(text)
    return (
        root is not None
        and text.isascii()
        and "%" not in text
        and "/." not in text
        and "/\n" not in text
        and text.count(f"\n{root[0]}") == text.count("\n") == count - 1
        and text.count("//") == count
        and text[-1] != "/"
    )


def _plain(lowered: str) -> str:
    match = _AUTHORITY.match(lowered)
    return lowered[match.end() :] if match else lowered.lstrip("/")


def _loosened(path: str) -> str:
    text = _decoded(path)
    text = normalize("NFC", normalize("NFC", text).casefold())
    folders: list[str] = []
    for name in _plain(text).split("/"):
        if name == "..":
            del folders[-1:]
        elif name and name != ".":
            folders.append(name)
    return "/".join(folders)


def _decoded(text: str) -> str:
    """Decode percents until nothing changes. What is no UTF-8 becomes one sign for all such bytes: so much the looser."""
    while "%" in text:
        decoded = unquote(text, errors="replace")
        if decoded == text:
            break
        text = decoded
    return text
