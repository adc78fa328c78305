"""Files of tasks: a path means a file on one machine, and a task can be claimed on any."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from headwater.errors import UnavailableError
from headwater.tasks import Task

__all__ = ["file_here", "place_arguments"]


def place_arguments(file: Path, *, is_here: bool) -> dict[str, Any]:
    """The arguments that name a file: on this machine, or on that of the worker that will do the task."""
    return {"file": str(file.absolute())} | ({"host": socket.gethostname()} if is_here else {})


def file_here(task: Task) -> Path:
    """The file that a task's arguments name.

    raises        UnavailableError where it is one of another machine, whose command line does the task itself
    """
    host = task.arguments.get("host", "")
    if host not in ("", socket.gethostname()):
        raise UnavailableError(
            f"{task.arguments['file']!r} is meant on {host!r}, where {task} was asked for, and this is {socket.gethostname()!r}:"
            " give the same command there again, or with --detach for a file of a worker"
        )
    return Path(str(task.arguments["file"]))
