"""A Spark session that lasts as long as one job, with its JVM."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headwater.errors import UnavailableError

__all__ = ["first_line", "session"]

_PATIENCE_SECONDS = 30
_LOOPBACK = "127.0.0.1"
_QUIET = Path(__file__).with_name("log4j2.properties")
_LOCAL: dict[str, Any] = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
_CONF: dict[str, Any] = {
    # The work is done by Python functions: the JVM only hands rows around, and compiling it well costs half of a small job's time
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile={_QUIET.as_uri()}",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    # Python functions go without Arrow, which would need pandas
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
}


@contextmanager
def session(name: str, *, master: str) -> Iterator[Any]:
    """A session of its own. At the end, also a bad one, the session and its JVM are stopped: a worker lives on without them.

    master        ``local[*]``, or the URL of a cluster
    raises        UnavailableError when it does not start
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession  # only a process that runs a job pays for the import

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name).master(master).config(map=_CONF)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        builder = builder.config(map=_LOCAL)
    try:
        try:
            spark = builder.getOrCreate()
        except (Py4JError, PySparkException, OSError) as fault:
            raise UnavailableError(f"Spark does not start with master {master}: {first_line(fault)}") from fault
        try:
            yield spark
        finally:
            _stop(spark)
    finally:
        _stop_jvm()


def first_line(fault: BaseException) -> str:
    """What a person needs of Spark's long messages."""
    return next((line.strip() for line in str(fault).splitlines() if line.strip()), type(fault).__name__)


def _stop(spark: Any) -> None:
    from py4j.protocol import Py4JError

    try:
        spark.stop()
    except (Py4JError, OSError):  # its JVM was killed
        with suppress(Py4JError, OSError):
            spark.sparkContext.stop()  # the first try forgot that JVM; this one makes room for the next session


def _stop_jvm() -> None:
    """pyspark keeps its JVM for the next session until the process ends; a worker's memory is better used otherwise."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # py4j leaves closing of its sockets to the garbage collector
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()  # the JVM ends when this pipe does
            try:
                process.wait(timeout=_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
