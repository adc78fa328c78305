"""Files that a command writes for a person."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import RefusedError

__all__ = ["replacing"]


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Where to write what becomes ``file`` at the end. All of it or nothing: who looks meanwhile sees the one before.

    raises        RefusedError when it cannot be written
    """
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
        os.fchmod(handle, 0o644)
        os.close(handle)
        try:
            yield Path(name)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as fault:
        raise RefusedError(f"{file} cannot be written: {fault.strerror or fault}") from fault
