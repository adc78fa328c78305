"""What must never be touched: a module that notes its import, and an address that notes who asks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

__all__ = ["Address", "listening", "planted_module"]

_MODULE = """
from pathlib import Path
Path({note!r}).write_text("imported")
from pyiceberg.io.pyarrow import PyArrowFileIO as FileIO
from pyiceberg.table.locations import SimpleLocationProvider as Provider
"""


@dataclass
class Address:
    """A loopback address that answers 403 to everything; ``asked`` has a line for each request."""

    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def listening() -> Iterator[Address]:
    address = Address()

    class Handler(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            address.asked.append(f"{self.command} {self.path}")
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _refuse  # noqa: N815  # names of the standard library

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield address
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def planted_module(folder: Path) -> Iterator[tuple[str, Path]]:
    """A module that can be imported by a name, and the file that is there once it was."""
    name, note = f"canary_{folder.name}".replace("-", "_"), folder / "imported"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(_MODULE.format(note=str(note)))
    sys.path.insert(0, str(folder))
    try:
        yield name, note
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)
