"""File access that a client's own properties can name, which notes what is written."""

from __future__ import annotations

from typing import ClassVar

from pyiceberg.io import OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO

__all__ = ["NotedFiles"]


class NotedFiles(PyArrowFileIO):
    """``written`` has the locations, of all objects: each use of a catalog makes its own."""

    written: ClassVar[list[str]] = []

    def new_output(self, location: str) -> OutputFile:
        self.written.append(location)
        return super().new_output(location)
