"""The console: the files of a page for browsers, which the server has in memory and hands out as they are.

``GET /`` is the page. It names its scripts and styles below ``/console/DIGEST/``, where the digest is that of all of them: a browser
keeps them for a year, and another release has other addresses. Any other digest gets the same files, to be asked for again next time:
during an update, a page of one server may load its scripts from another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

CONSOLE_FOLDER: Final = Path(__file__).parent / "console"
_MOUNT: Final = "console"
_PAGE: Final = "index.html"
_DIGEST = re.compile(r"[0-9a-f]{16}")
_KEPT_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
_ASKED_FOR_AGAIN: Final = "no-cache"
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""By suffix: a file of another kind, such as a licence, is shipped and not served."""
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_SECURITY_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class ConsoleFile:
    """A file as it is answered; ``etag`` is that of its content."""

    content: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class ConsoleAnswer:
    """An answer to GET. ``status`` is 200, or 304 without content where the browser has this version."""

    status: int
    content: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class ConsoleFiles:
    """All files of the console. Paths are looked up in a table made at the start: no request reaches the file system."""

    def __init__(self, folder: Path = CONSOLE_FOLDER) -> None:
        contents = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.suffix in _MEDIA_TYPES and path.is_file()
        }
        self.digest = hashlib.sha256(
            b"".join(f"{name} {len(content)}\n".encode() + content for name, content in contents.items())
        ).hexdigest()[:16]
        scripts = [name for name in contents if name.endswith(".js")]
        contents[_PAGE] = self._page(contents[_PAGE].decode("utf-8"), scripts).encode("utf-8")
        self._files = {name: _console_file(name, content) for name, content in contents.items()}

    def find_file(self, segments: Sequence[str], *, seen: str | None = None) -> ConsoleAnswer | None:
        """The answer to a path; None where the console has no such file.

        segments      of the path, each decoded once
        seen          the header ``If-None-Match``
        """
        name, is_kept = self._name(segments)
        file = self._files.get(name)
        if file is None:
            return None
        headers = {
            **_SECURITY_HEADERS,
            "ETag": file.etag,
            "Cache-Control": _KEPT_FOR_A_YEAR if is_kept else _ASKED_FOR_AGAIN,
        }
        if seen is not None and _has_seen(seen, file.etag):
            return ConsoleAnswer(304, b"", file.media_type, headers)
        return ConsoleAnswer(200, file.content, file.media_type, headers)

    def _name(self, segments: Sequence[str]) -> tuple[str, bool]:
        """The name of a file in the folder, ``""`` for a path of none; and whether its address changes whenever its content does."""
        if list(segments) == [""]:
            return _PAGE, False
        if len(segments) < 3 or segments[0] != _MOUNT or not _DIGEST.fullmatch(segments[1]):
            return "", False
        if any("/" in segment for segment in segments) or segments[2:] == [_PAGE]:
            return "", False
        return "/".join(segments[2:]), segments[1] == self.digest

    def _page(self, template: str, scripts: Sequence[str]) -> str:
        """The page, in which ``{{files}}`` is where files are, and ``{{preloads}}`` has all scripts: they come in one round trip."""
        place = f"{_MOUNT}/{self.digest}"
        preloads = "\n".join(f'    <link rel="modulepreload" href="{place}/{name}">' for name in scripts)
        return template.replace("    {{preloads}}", preloads).replace("{{files}}", place)


@cache
def console_files() -> ConsoleFiles:
    """The console's files, read once by a process."""
    return ConsoleFiles()


def _console_file(name: str, content: bytes) -> ConsoleFile:
    return ConsoleFile(content, _MEDIA_TYPES[Path(name).suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _has_seen(header: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in tags or "*" in tags
