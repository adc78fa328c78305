"""Which process of which machine this is, in a form by which another process on the same machine can tell that it has ended."""

from __future__ import annotations

import os
import secrets
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["DRIFT_MILLIS", "is_gone", "owner_text"]

_PARTS = 6
DRIFT_MILLIS = 1000
"""How far a clock on the wall may have moved against the time since the machine started: slewed, and not set."""


class _Mark(NamedTuple):
    """A process: the start of its machine, the namespace of its number, and when it began; with the wall clock's time at that start."""

    boot: str
    namespace: str
    began: str
    offset_millis: int


def owner_text(now_millis: int) -> str:
    """Host and process for people, and what ``is_gone`` needs; another text with every call.

    The process number alone does not tell two containers of one name apart, nor two leases of one process.

    now_millis    the wall clock's time, from whichever moment it is counted
    """
    boot, namespace, began, offset = _mark_of(os.getpid(), now_millis) or ("", "", "", 0)
    return f"{socket.gethostname()}:{os.getpid()}:{boot}:{namespace}:{began}:{offset}.{secrets.token_hex(8)}"


def is_gone(owner: str, now_millis: int) -> bool:
    """Whether the process of such a text has certainly ended, and the wall clock was not set since it wrote the text.

    False for all of which this machine cannot know: those of other machines, of other containers, of systems without /proc.
    """
    parts = owner.split(":")
    here = _mark_of(os.getpid(), now_millis)
    if here is None or len(parts) != _PARTS or parts[2:4] != [here.boot, here.namespace] or not parts[1].isdecimal():
        return False
    offset = parts[5].partition(".")[0]
    if not offset.lstrip("-").isdecimal() or abs(int(offset) - here.offset_millis) > DRIFT_MILLIS:
        return False
    return _has_ended(int(parts[1]), parts[4])


def _has_ended(pid: int, began: str) -> bool:
    """Whether no process has the number, or another one by now. One that may not be looked at is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    found = _began(pid)
    return found is not None and found != began


def _mark_of(pid: int, now_millis: int) -> _Mark | None:
    """None where the system does not tell."""
    began = _began(pid)
    with suppress(OSError, AttributeError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
        since = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        if boot and namespace and began:
            return _Mark(boot, namespace, began, now_millis - since)
    return None


def _began(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None where that is not told, and for one that ended and lingers.

    Source: proc(5), ``/proc/pid/stat``: the name stands in brackets and may hold anything; the state is the third field, the start
    the 22nd.
    """
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    return None
