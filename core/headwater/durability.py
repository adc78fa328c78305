"""Makes new files and folders survive a power cut: syncing a file is not enough, because its name is stored in its folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["make_folder", "publish", "sync_folder"]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
"""Errors of file systems that give a file only one name."""


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk before this returns. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, on the disk before this returns. A new folder is readable by its owner only.

    raises        OSError
    """
    folder = folder.absolute()
    missing = [above for above in folder.parents if not above.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
