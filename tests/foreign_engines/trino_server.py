"""Trino as a process of its own, with one catalog for each text that `headwater client-config trino` prints."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from engine_tools import MINUTES, clean_environment, find_java, tool_folder

from free_ports import free_port

_OLDEST_JAVA = 24
_SECONDS = 300
_OPTIONS = ("-Xmx1500m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true")


class TrinoError(Exception):
    """Trino refused a statement."""


@dataclass(frozen=True)
class Trino:
    url: str

    def run(self, statement: str, catalog: str = "", schema: str = "") -> list[list[Any]]:
        """Run a statement; returns its rows."""
        headers = {"X-Trino-User": "tests", "X-Trino-Catalog": catalog, "X-Trino-Schema": schema}
        rows: list[list[Any]] = []
        until = time.monotonic() + _SECONDS
        answer = requests.post(f"{self.url}/v1/statement", statement.encode(), headers=headers, timeout=_SECONDS).json()
        while True:
            rows += answer.get("data", [])
            if "error" in answer:
                raise TrinoError(f"{statement}: {answer['error']['message']}")
            if "nextUri" not in answer:
                return rows
            assert time.monotonic() < until, statement
            answer = requests.get(answer["nextUri"], headers=headers, timeout=_SECONDS).json()

    def add_catalog(self, name: str, printed: str) -> None:
        """Add a catalog of the properties that were printed."""
        lines = [line for line in printed.splitlines() if line and not line.startswith("#")]
        properties = dict(line.split("=", 1) for line in lines)
        assert properties.pop("connector.name") == "iceberg"
        with_ = ", ".join(f"\"{name}\" = '{value}'" for name, value in properties.items())
        self.run(f"CREATE CATALOG {name} USING iceberg WITH ({with_})")


@contextmanager
def trino_server(folder: Path, **environment: str) -> Iterator[Trino]:
    """Start Trino; ``environment`` is what its catalogs may name by ``${ENV:…}``."""
    tool, java, port = tool_folder("trino"), find_java(_OLDEST_JAVA), free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "etc").mkdir()
    (folder / "etc" / "config.properties").write_text(
        f"coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port={port}\ndiscovery.uri={url}\n"
        "query.max-memory=700MB\nquery.max-memory-per-node=400MB\ncatalog.management=dynamic\ncatalog.store=memory\n"
    )
    node = {"environment": "tests", "id": "one", "data-dir": str(folder), "internal-address": "127.0.0.1"}
    told = {f"node.{name}": value for name, value in node.items()} | {"node.bind-ip": "127.0.0.1"}
    told |= {"plugin.dir": str(tool / "plugin"), "config": "etc/config.properties"}
    command = [java, *_OPTIONS, *(f"-D{name}={value}" for name, value in told.items()), "-cp", f"{tool}/lib/*"]
    log = folder / "trino.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [*command, "io.trino.server.TrinoServer"],
            cwd=folder,
            env=clean_environment(**environment),
            stdout=said,
            stderr=said,
        ) as process,
    ):
        try:
            _await_start(url, process, log)
            _warm_up(Trino(url))
            yield Trino(url)
        finally:
            process.kill()


def _warm_up(trino: Trino) -> None:
    """Run a query until it ends well: Jetty's client loses the first ones of a busy machine ("this.pool is null")."""
    for attempt in range(20):
        try:
            trino.run("SELECT count(*) FROM system.runtime.nodes")
        except TrinoError:
            assert attempt < 19
            time.sleep(1)
        else:
            return


def _await_start(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + MINUTES
    while True:
        assert process.poll() is None and time.monotonic() < until, log.read_text(encoding="utf-8")[-4000:]
        try:
            if not requests.get(f"{url}/v1/info", timeout=5).json()["starting"]:
                return
        except (requests.RequestException, ValueError):
            pass
        time.sleep(1)
