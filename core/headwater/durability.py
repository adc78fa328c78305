"""Files and folders that are whole or absent, also after a power cut: syncing a file is not enough, for its folder stores its name."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater.errors import RefusedError

__all__ = ["make_folder", "publish", "replacing", "sync_folder", "temporary_file", "write_new", "write_once"]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
"""Errors of file systems that give a file only one name."""


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk before this returns. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, *, mode: int = 0o700) -> None:
    """Create a folder and its parents, on the disk before this returns.

    mode          of the folder itself if it is new: as a rule only its owner reads it
    raises        OSError
    """
    folder = folder.absolute()
    missing = [above for above in folder.parents if not above.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for made in (folder, *missing):
        sync_folder(made.parent)


def publish(temporary: Path, target: Path) -> None:
    """Give a synced file its name in the same folder, on the disk before this returns. The name before may stay.

    raises        FileExistsError when another file has the name (where files cannot have two names, one may come in between); OSError
    """
    try:
        os.link(temporary, target)  # unlike a rename, a link never replaces what is there
    except OSError as fault:
        if fault.errno not in _NO_LINKS:
            raise
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from fault
        temporary.replace(target)
    sync_folder(target.absolute().parent)


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
        with temporary_file(file, content) as part:
            try:
                publish(part, file)
            except FileExistsError as taken:
                if file.read_bytes() != content:
                    raise RefusedError(
                        f"there is a file {str(file)!r} already: nothing is overwritten, name another place"
                    ) from taken
                sync_folder(file.absolute().parent)  # the command that wrote it may have ended before it did so
    except OSError as fault:
        raise RefusedError(f"{file} cannot be written: {fault.strerror or fault}") from fault


def write_once(file: Path, content: bytes) -> None:
    """Create a file that only its owner can read, if there is none: of two processes the first one wins. It is on the disk then.

    raises        OSError when it cannot be written
    """
    if not file.exists():
        with temporary_file(file, content) as part, suppress(FileExistsError):
            publish(part, file)
    sync_folder(file.absolute().parent)  # also after another process, which may have ended before it did so


@contextmanager
def temporary_file(file: Path, content: bytes) -> Iterator[Path]:
    """Yield a synced file with the content, which only its owner can read, in the folder of ``file``. It is removed afterwards.

    raises        OSError
    """
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(handle)
        yield Path(name)
    finally:
        with suppress(OSError):  # what was put in place stays in place: a name that is left over is no failure of that
            Path(name).unlink()
