"""Spark with Iceberg's own engine for benchmarks: the JVM of the tests, with everything that makes it fast."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT

__all__ = ["engine_is_there", "iceberg_session"]

_START_SECONDS = 90.0


def engine_is_there() -> bool:
    return (ROOT / ".tools" / "iceberg-engine" / ".complete").exists()


@contextmanager
def iceberg_session(folder: Path) -> Iterator[Any]:
    """A session of Spark on all cores; its JVM ends with the block."""
    sys.path.insert(0, str(ROOT / "tests" / "iceberg_spark"))
    from engine_process import FOLDER, OPENED, OPTIONS, java_program
    from py4j.java_gateway import GatewayParameters, JavaGateway

    folder.mkdir(parents=True)
    info = folder / "connection"
    options = {**OPTIONS, "spark.app.name": "benchmark", "spark.master": "local[*]", "spark.local.dir": str(folder)}
    command = [
        java_program(),
        *("-Xmx2g", "-Duser.timezone=UTC"),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
        *(f"-D{name}={value}" for name, value in options.items()),
        *("-cp", f"{FOLDER}/*", "org.apache.spark.api.python.PythonGatewayServer"),
    ]
    variables = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(info), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            command, cwd=folder, env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=log, stderr=log
        ) as process,
    ):
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not info.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit((folder / "log").read_text(encoding="utf-8", errors="replace")[-3000:])
                time.sleep(0.05)
            said = info.read_bytes()
            port, length = struct.unpack_from(">ii", said)
            parameters = GatewayParameters(port=port, auth_token=said[8 : 8 + length].decode(), enable_memory_management=False)
            gateway = JavaGateway(gateway_parameters=parameters)
            jvm: Any = gateway.jvm
            yield jvm.org.apache.spark.sql.SparkSession.builder().getOrCreate()
            gateway.close()
        finally:
            process.kill()
