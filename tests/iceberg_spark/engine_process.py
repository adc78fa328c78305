"""Spark with Iceberg's own engine, in one JVM that the processes of a test run share.

Starting Spark and warming it up takes longer than all the tests do. The JVM reads from a pipe which each process holds open for
writing; once none does any more, also because it was killed, the JVM reads an end of file and ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway

FOLDER = Path(__file__).parents[2] / ".tools" / "iceberg-engine"
OLDEST_JAVA, NEWEST_JAVA = 17, 23
"""From 24 on Java lacks what this Spark's Hadoop asks for the user's name."""
START_SECONDS = 60.0
END_SECONDS = 10.0

OPENED = [
    *(f"java.base/java.{package}" for package in ("io", "lang", "lang.invoke", "lang.reflect", "net", "nio", "util")),
    *(f"java.base/java.util.{package}" for package in ("concurrent", "concurrent.atomic")),
    *(f"java.base/sun.{package}" for package in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
]
"""Packages of Java that Spark looks into."""
OPTIONS = {
    "spark.app.name": "tests",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.master": "local[2]",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def skip_without_engine() -> None:
    """Skip where Spark with Iceberg's engine cannot run, and say when it can."""
    if not (FOLDER / ".complete").exists():
        pytest.skip(
            "Spark with Iceberg's engine is not in .tools: `scripts/setup.sh iceberg_engine` puts it together where pip has pyspark"
            " 3.5.7 and snowpark-connect-deps-iceberg 1.0.3, and apt libhttpclient5-java"
        )
    major = java_major()
    if not OLDEST_JAVA <= major <= NEWEST_JAVA:
        pytest.skip(f"Spark 3.5 needs Java {OLDEST_JAVA} to {NEWEST_JAVA}, and this is {major}: let JAVA_HOME name another")


def java_program() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or "java"


def java_major() -> int:
    said = subprocess.run([java_program(), "-version"], check=True, capture_output=True, text=True).stderr
    return int(said.split('"')[1].split(".")[0].split("-")[0])


@contextmanager
def shared_engine(folder: Path) -> Iterator[JavaGateway]:
    """A way into the JVM that processes which name this folder share; the first one starts it, and the last one sees its end."""
    folder.mkdir(exist_ok=True)
    pipe, running = folder / "stdin", folder / "running"
    with (folder / "users").open("w") as users, (folder / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not pipe.exists():
            os.mkfifo(pipe)
        held = os.open(pipe, os.O_RDWR)  # for writing alone it would wait for a reader
        try:
            if not running.exists():
                running.write_text(str(_start(folder, pipe)), encoding="utf-8")
            fcntl.flock(turn, fcntl.LOCK_UN)
            gateway = _connect(folder)
            yield gateway
            gateway.close()
        finally:
            os.close(held)
            fcntl.flock(turn, fcntl.LOCK_EX)
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while others use it
                if running.exists():
                    _await_end(int(running.read_text(encoding="utf-8")))
                    running.unlink()


def _start(folder: Path, pipe: Path) -> int:
    """Start a JVM that is nobody's child, so that it may outlive who starts it. Returns its process id."""
    info = folder / "connection"
    info.unlink(missing_ok=True)  # of one that has ended
    options = {**OPTIONS, "spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder / "spark-warehouse")}
    command = [
        java_program(),
        *("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
        *(f"-D{name}={value}" for name, value in options.items()),
        *("-cp", f"{FOLDER}/*", "org.apache.spark.api.python.PythonGatewayServer"),
    ]
    script = '"$@" <"$PIPE" >"$LOG" 2>&1 & echo $!'
    variables = {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        "PIPE": str(pipe),
        "LOG": str(folder / "log"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    started = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        check=True,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
    )
    pid, deadline = int(started.stdout), time.monotonic() + START_SECONDS
    while not info.exists():
        assert psutil.pid_exists(pid) and time.monotonic() < deadline, (folder / "log").read_text(encoding="utf-8")[-3000:]
        time.sleep(0.05)
    return pid


def _connect(folder: Path) -> JavaGateway:
    """Connect by what the JVM wrote as a whole: its port, and a secret behind its length."""
    said = (folder / "connection").read_bytes()
    port, length = struct.unpack_from(">ii", said)
    secret = said[8 : 8 + length].decode()
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, enable_memory_management=False))


def _await_end(pid: int) -> None:
    """Wait until a process is gone, or waits for somebody to take note of it, and kill it if that takes long."""
    deadline = time.monotonic() + END_SECONDS
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                process.kill()
                return
            time.sleep(0.05)


def spark_of(gateway: JavaGateway) -> Any:
    """Spark's session in the JVM, made by the first who asks."""
    jvm: Any = gateway.jvm
    return jvm.org.apache.spark.sql.SparkSession.builder().getOrCreate()
