"""A Redis of a test's own, on a port of the loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["redis_server"]


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Its URL."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not on the PATH: install it, for example by `apt-get install redis-server`")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            while "Ready to accept connections" not in (line := server.stdout.readline()):
                assert line, "redis-server did not start"
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()
