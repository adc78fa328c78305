"""A Redis that a test starts and stops, always on the same port."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from free_ports import free_port

__all__ = ["Redis"]


@dataclass
class Redis:
    folder: Path
    port: int
    popen: subprocess.Popen[str] | None = None

    @classmethod
    def on_a_free_port(cls, folder: Path) -> Redis:
        return cls(folder, free_port())

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not on the PATH: install it, for example by `apt-get install redis-server`")
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.popen.stdout is not None
        while "Ready to accept connections" not in (line := self.popen.stdout.readline()):
            assert line, "redis-server did not start"

    def stop(self) -> None:
        if self.popen is None:
            return
        self.popen.kill()
        self.popen.wait()
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        self.popen = None
