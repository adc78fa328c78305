"""Servers written in Python, as processes that do not outlive the tests."""

from __future__ import annotations

import sys

__all__ = ["command_of"]

_FOLLOW = """
import os, sys, threading, time
parent = os.getppid()
def follow():
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
threading.Thread(target=follow, daemon=True).start()
"""


def command_of(server: str) -> list[str]:
    """The command line of a process that runs these statements, and ends when the process that started it does. Its arguments follow."""
    return [sys.executable, "-c", _FOLLOW + server]
