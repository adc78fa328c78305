"""The file that the audit log is appended to, which may be moved away at any time: then it is made anew."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from headwater.clock import Clock

_LOOK_SECONDS = 1.0
"""How long lines may follow a file that was moved away. A look for each line would cost about as much as the line."""


class AuditFile:
    """Appends lines, each with one write. Thread-safe; open as long as the process."""

    def __init__(self, path: str, *, clock: Clock) -> None:
        """raises OSError for a file that cannot be written"""
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._file = self._opened()
        self._looked = clock.monotonic()
        self._is_torn = False  # the last line is not whole: the next one must not join it

    def append(self, line: bytes) -> None:
        """Append a line; raises OSError where it was not written, or not whole."""
        with self._lock:
            now = self._clock.monotonic()
            if now - self._looked > _LOOK_SECONDS:
                self._follow()
                self._looked = now
            if self._is_torn:
                line = b"\n" + line
            self._is_torn = True
            written = os.write(self._file, line)
            while written < len(line):  # what is left of a full disk: the next write tells why
                written += os.write(self._file, line[written:])
            self._is_torn = False

    def close(self) -> None:
        """Close the file, for the end of a test: a process ends with it open."""
        with self._lock:
            os.close(self._file)

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _follow(self) -> None:
        """Open the file that has the name now, where it is another one."""
        held = os.fstat(self._file)
        try:
            named = self._path.stat()
        except FileNotFoundError:
            named = None
        if named is None or (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino):
            fresh = self._opened()
            os.close(self._file)
            self._file = fresh
