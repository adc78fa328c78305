"""Two keys of a path: a strict one, by which a file is live, and a loose one, by which it may be.

Strict: the spelling of one storage, and nothing decoded. ``s3a://b/x`` is ``s3://b/x``; ``s3://b/a%20b`` is not ``s3://b/a b``.

Loose: what the most careless reader would take for the same file. Scheme and authority are left out; the rest is percent-decoded until
nothing changes, composed (NFC), case-folded, and has no empty, ``.`` or ``..`` segments. Files of different places may have one loose key:
that keeps a file, and never lets one go.

A strict key and the text that it was made from have the same loose key.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from unicodedata import normalize
from urllib.parse import unquote

from headwater.errors import RefusedError
from headwater.iceberg.location import same_storage

_NO_NAMES = ("", ".", "..")
_MOST_FOLDERS = 65_536
TAIL = 64
"""Bytes of a loose key that its number is made of: a name and the end of its folder's."""
_WORDS = struct.Struct("<8Q")
FACTORS = (
    0x73EC1F9AD001930F,
    0xE1BF11B3121408E5,
    0x27A3CC6296CFA8EF,
    0x3D833EA51BC0F4B3,
    0xB4BD8C4FF4332BAF,
    0x996D35B666F0B517,
    0x538A48D6D00AB30F,
    0xD8D39F727F42CACF,
)
"""Of each eight bytes; odd."""
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


def loose_number(path: str) -> int:
    """A number below 2**32, the same for all paths that are loosely equal, and for a file and its checksum: of the loose key's end."""
    loose = loose_key(path)
    end = (checked_file(loose) if loose.endswith(".crc") else loose).encode()[-TAIL:].rjust(TAIL, b"\0")
    words = zip(_WORDS.unpack(end), FACTORS, strict=True)
    return int(sum(word * factor for word, factor in words) & 0xFFFF_FFFF_FFFF_FFFF) >> 32


def checked_file(path: str) -> str:
    """The file whose checksum a file is by its name; other files as they are."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else path


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
