"""Ports for servers that tests start, and that are told their port before they listen to it."""

from __future__ import annotations

import os
import socket
from itertools import cycle

__all__ = ["free_port"]

_FIRST, _PORTS = 12_000, 1_000
"""Below those that a system gives to whoever names none; each process of a parallel run has a thousand of its own."""
_worker = int(os.environ.get("HEADWATER_TEST_PROCESS", "0")) % 20
_own = range(_FIRST + _worker * _PORTS, _FIRST + (_worker + 1) * _PORTS)
_begin = os.getpid() % _PORTS
_ports = cycle([*_own[_begin:], *_own[:_begin]])


def free_port() -> int:
    """A port of the loopback address that nothing listens to, and that is given to nobody else soon."""
    for _ in _own:
        with socket.socket() as probe:
            port = next(_ports)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port of {_own} is free")
