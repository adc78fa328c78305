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


def write_new(file: Path, content: bytes) -> None:
    """Put a file that only its owner can read where none is: never half of it, and on the disk before this returns.

    A file that holds the very same is what a command wrote that was interrupted afterwards.

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
    """A file with the content on the disk, in the same folder and gone afterwards."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(handle)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
