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

from headwater.errors import RefusedError
from headwater.iceberg.location import same_storage

_NO_NAMES = ("", ".", "..")
_MOST_FOLDERS = 65_536
_AUTHORITY = re.compile(r"[a-z][a-z0-9+.-]*:(?://[^/]*)?/*")


class StrictKeys:
    """Strict keys, quick for paths of folders that were met before. For one thread; keeps a bounded number of folders."""

    def __init__(self) -> None:
        self._folders: dict[str, str | None] = {}

    def key(self, path: str) -> str | None:
        """The strict key of a path; None for a text that is no location."""
        folder, _, name = path.rpartition("/")
        if name in _NO_NAMES:
            return strict_key(path)
        try:
            spelled = self._folders[folder]
        except KeyError:
            spelled = self._spell(folder)
        return strict_key(path) if spelled is None else f"{spelled}/{name}"

    def keys(self, paths: Sequence[str]) -> list[str | None]:
        key = self.key
        return [key(path) for path in paths]

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


def loose_keys(paths: Sequence[str]) -> list[str]:
    """The loose keys of many paths. Those of one folder, in ASCII, take a tenth of a microsecond each."""
    text = "\n".join(paths)
    if not paths or not text.isascii():
        return [loose_key(path) for path in paths]
    first = paths[0].lower()
    root = first[: _AUTHORITY.match(first).end()] if _AUTHORITY.match(first) else ""  # type: ignore[union-attr]
    lowered = f"\n{text.lower()}"
    bare = lowered.replace(f"\n{root}", "\n") if root else ""
    is_plain = bool(root) and lowered.count(f"\n{root}") == len(paths) and bare.count("\n") == len(paths)
    if not is_plain or "%" in bare or "//" in bare or "/." in bare or "\n/" in bare or "/\n" in bare or bare.endswith("/"):
        return [loose_key(path) for path in paths]
    if "\n." in bare:
        return [loose_key(path) for path in paths]
    return bare[1:].split("\n")


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
