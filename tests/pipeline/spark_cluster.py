"""A stand-alone Spark cluster on loopback: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE_SECONDS = 60
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """Started at once; ``stop`` ends every process of it. Executors find nothing of this environment but the path of their Python."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start("master", "org.apache.spark.deploy.master.Master", "--port", "0")
            self.url = self._read_url()
            for name in ("one", "two"):
                work = ("--cores", "1", "--memory", "600m", "--port", "0", "--work-dir", str(folder / name), self.url)
                self._start(name, "org.apache.spark.deploy.worker.Worker", *work)
            self._wait("two workers", lambda: self._log("master").count("Registering worker") == 2)
        except BaseException:
            self.stop()
            raise

    def processes(self) -> list[psutil.Process]:
        """Daemons, executors, and the Python processes of these."""
        daemons = [psutil.Process(process.pid) for process in self._processes if process.poll() is None]
        return [*daemons, *(child for daemon in daemons for child in daemon.children(recursive=True))]

    def executors(self) -> list[psutil.Process]:
        return [process for process in self.processes() if "CoarseGrainedExecutorBackend" in " ".join(_command(process))]

    def stop(self) -> None:
        alive = self.processes()
        for process in reversed(alive):
            process.kill()
        psutil.wait_procs(alive, timeout=PATIENCE_SECONDS)
        for daemon in self._processes:
            daemon.wait(timeout=PATIENCE_SECONDS)

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_CONF_DIR": str(self._folder),
            **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [str(SPARK_CLASS), kind, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
            self._processes.append(subprocess.Popen(command, env=environment, cwd=self._folder, stdout=log, stderr=log))

    def _read_url(self) -> str:
        mark = "Starting Spark master at "
        self._wait("the master", lambda: mark in self._log("master") and "I have been elected leader" in self._log("master"))
        return self._log("master").partition(mark)[2].split()[0]

    def _log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _wait(self, what: str, is_there: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not is_there():
            if time.monotonic() > ends or any(process.poll() is not None for process in self._processes):
                raise RuntimeError(f"{what} did not start: {self._log('master')[-2000:]}")
            time.sleep(0.05)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
