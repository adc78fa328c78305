"""A warning about files with keys that more users than their owner and group may read."""

from __future__ import annotations

import stat
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)


def warn_of_readable_key(file: Path) -> None:
    """Log a warning where every user of the machine may read a file with a key."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return  # who reads the key reports that
    if mode & stat.S_IROTH:
        log.warning(
            "every user of this machine may read a key: take the right away with `chmod o-r`",
            file=str(file),
            mode=f"{mode:04o}",
        )
