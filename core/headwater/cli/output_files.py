"""Files that a command writes for a person."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.durability import publish, sync_folder
from headwater.errors import RefusedError


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``file`` at the end. Readers see the former file until then, never half of the new one.

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


def write_new(file: Path, content: bytes) -> None:
    """Create a file that only its owner can read, atomically; it is on the disk before this returns.

    A file with equal content is accepted: an earlier run wrote it and was interrupted afterwards.

    raises        RefusedError when it cannot be written, and when a file of that name holds something else
    """
    try:
        with _beside(file, content) as beside:
            try:
                publish(beside, file)
            except FileExistsError as there:
                if file.read_bytes() != content:
                    raise RefusedError(
                        f"there is a file {str(file)!r} already: nothing is overwritten, name another place"
                    ) from there
                sync_folder(file.absolute().parent)  # the command that wrote it may have ended before it did so
    except OSError as fault:
        raise RefusedError(f"{file} cannot be written: {fault.strerror or fault}") from fault


@contextmanager
def _beside(file: Path, content: bytes) -> Iterator[Path]:
    """Yield a temporary file with the content, synced, in the same folder; it is removed afterwards."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(handle)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
