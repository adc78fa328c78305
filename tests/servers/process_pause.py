"""Stopping a child process in its tracks, for certain."""

from __future__ import annotations

import os
import signal

__all__ = ["pause", "wait_until_stopped"]


def pause(pid: int) -> None:
    """Let a child hang until it is sent SIGCONT; when this returns, none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)
    wait_until_stopped(pid)


def wait_until_stopped(pid: int) -> None:
    """SIGSTOP is delivered to one thread of a process, which stops the others once it gets a processor: until then they go on answering.

    A child that ended instead is not waited for.
    """
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
