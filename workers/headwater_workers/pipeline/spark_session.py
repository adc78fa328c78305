"""Spark sessions: choose the engine, start a session with its JVM for one job, and run its jobs so that they can be stopped.

Where Spark cannot run, the process does the work itself.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from headwater import errors
from headwater.errors import HeadwaterError, RefusedError, UnavailableError
from headwater.iceberg import SurveyProgress
from headwater.settings import Settings, parse_spark_conf

_PATIENCE_SECONDS = 30
_LOOPBACK = "127.0.0.1"
_QUIET = Path(__file__).with_name("log4j2.properties")
_UNPACKED = "headwater-archive"
"""The folder, within an executor's own, into which Spark unpacks the archive."""
_END = "-XX:+ExitOnOutOfMemoryError"
"""A JVM that could not start a thread waits for ever; one that exits is noticed, and the task is tried again."""
_PY4J_CALL = "An error occurred while calling "
_LOCAL: dict[str, str] = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
_CONF: dict[str, str] = {
    # The work is done by Python functions: the JVM only hands rows around, and compiling it well costs half of a small job's time
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {_END} -Dlog4j2.configurationFile={_QUIET.as_uri()}",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    # Plans are final; adapting them while they run would only split jobs
    "spark.sql.adaptive.enabled": "false",
    # Python functions go without Arrow, which would need pandas
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options of a session.

    master        ``local[*]``, or the URL of a cluster
    conf          Spark settings that go before those of this module, by their full names; ``spark.pyspark.python`` says which Python
                  the executors run (default: the path of this one)
    packages      Maven packages, ``group:name:version``, separated by commas
    archive       what ``pack_environment`` wrote, as a path or a URL that executors reach; their Python then needs no Headwater
    """

    master: str
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: str = ""
    archive: str = ""

    @classmethod
    def of(cls, settings: Settings) -> SparkOptions:
        """The options from the settings.

        raises        RefusedError for a ``spark_conf`` that cannot be read
        """
        return cls(
            settings.spark_master, parse_spark_conf(settings.spark_conf), settings.spark_packages, settings.spark_archive
        )

    def complete(self) -> dict[str, Any]:
        """All Spark settings of the session except its name and master."""
        conf = {**_CONF, **(_LOCAL if self.master.startswith("local") else {}), **self.conf}
        if self.packages:
            conf["spark.jars.packages"] = _joined(conf.get("spark.jars.packages"), self.packages, ",")
        if self.archive:
            conf["spark.archives"] = _joined(conf.get("spark.archives"), f"{self.archive}#{_UNPACKED}", ",")
            path = "spark.executorEnv.PYTHONPATH"
            conf[path] = _joined(_UNPACKED, conf.get(path), os.pathsep)
        return conf


@contextmanager
def session(name: str, options: SparkOptions) -> Iterator[Any]:
    """Start a session. At the end, also after an error, the session and its JVM are stopped, because a worker lives on without them.

    raises        RefusedError where the environment asks for Spark Connect; UnavailableError when it does not start
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession  # only a process that runs a job pays for the import

    if reason := _connect_reason(options.master, options.conf, os.environ):
        raise RefusedError(f"Spark cannot run here: {reason}")
    conf = options.complete()
    builder = SparkSession.builder.appName(name).master(options.master).config(map=conf)
    try:
        with _environment(options, conf):
            try:
                _launch_jvm(name, options.master, conf)
                spark = builder.getOrCreate()
            except (Py4JError, PySparkException, OSError) as fault:
                raise UnavailableError(f"Spark does not start with master {options.master}: {first_line(fault)}") from fault
        try:
            yield spark
        finally:
            _stop(spark)
    finally:
        _stop_jvm()


def _launch_jvm(name: str, master: str, conf: Mapping[str, Any]) -> None:
    """Start the JVM in a session of its own: a signal to the process group is for this process, which then stops its jobs in order.

    The JVM still ends with this process, because its standard input does.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    with SparkContext._lock:
        if SparkContext._gateway is None:
            spark_conf = SparkConf().setAppName(name).setMaster(master)
            for key, value in conf.items():
                spark_conf.set(key, value)
            SparkContext._gateway = launch_gateway(spark_conf, popen_kwargs={"start_new_session": True})  # type: ignore[no-untyped-call]
            SparkContext._jvm = SparkContext._gateway.jvm


def _connect_reason(master: str, conf: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Why Spark would connect to a server of Spark Connect, which has no jobs to watch and stop; empty if it would not."""
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if environment.get(name):
            return f"{name} asks for Spark Connect, by which these jobs cannot be run: unset it, and set HEADWATER_SPARK_MASTER"
    if environment.get("SPARK_API_MODE", "").lower() == "connect":
        return "SPARK_API_MODE asks for Spark Connect, by which these jobs cannot be run: unset it"
    if master.startswith("sc://") or conf.get("spark.remote") or str(conf.get("spark.api.mode", "")).lower() == "connect":
        return "HEADWATER_SPARK_MASTER and HEADWATER_SPARK_CONF ask for Spark Connect, by which these jobs cannot be run: name a cluster"
    return ""


def first_line(fault: BaseException) -> str:
    """The first line of Spark's long messages that says more than which call of py4j's failed, for people."""
    lines = [line.strip().removeprefix(": ") for line in str(fault).splitlines() if line.strip()] or [type(fault).__name__]
    return next((line for line in lines if not line.startswith(_PY4J_CALL)), lines[0])


def _joined(one: str | None, other: str | None, separator: str) -> str:
    return separator.join(part for part in (one, other) if part)


@contextmanager
def _environment(options: SparkOptions, conf: Mapping[str, str]) -> Iterator[None]:
    """The environment that a session reads only while it starts; a later session may have other options."""
    wanted = {"PYSPARK_PYTHON": conf.get("spark.pyspark.python", sys.executable), "PYSPARK_DRIVER_PYTHON": sys.executable}
    if options.master.startswith("local"):
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", _LOOPBACK)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _stop(spark: Any) -> None:
    from py4j.protocol import Py4JError

    try:
        spark.stop()
    except (Py4JError, OSError):  # its JVM was killed
        with suppress(Py4JError, OSError):
            spark.sparkContext.stop()  # the first try forgot that JVM; this one clears the way for the next session


def _stop_jvm() -> None:
    """Stop the JVM, which pyspark would keep until the process ends; a worker needs the memory."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # py4j leaves its sockets to the garbage collector
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


Result = TypeVar("Result")

POLL_SECONDS = 0.5
_OUR_ERROR = re.compile(r"^headwater\.errors\.(\w+): (.*)", re.MULTILINE)


class Jobs:
    """Runs actions in a separate thread and reports from the caller's, so that a caller who loses its task can stop them."""

    def __init__(self, spark: Any, report: SurveyProgress) -> None:
        self._context = spark.sparkContext
        self._report = report

    def run_job(self, stage: str, action: Callable[[], Result]) -> Result:
        """Run one stage of the work, and report its finished and known Spark tasks in the unit ``Spark tasks (STAGE)``.

        raises        what the report raises, after the stage's jobs were cancelled; an error of our own rules as what it is on the
                      executor; UnavailableError for everything else that Spark raises
        """
        from py4j.protocol import Py4JError

        with ThreadPoolExecutor(1, thread_name_prefix="spark") as pool:
            future: Future[Result] = pool.submit(self._grouped, stage, action)
            try:
                while wait([future], timeout=POLL_SECONDS).not_done:
                    self._report(*self._tasks(stage), f"Spark tasks ({stage})")
            except BaseException:
                with suppress(Py4JError, OSError):
                    self._context.cancelAllJobs()
                raise
        fault = future.exception()
        if fault is not None:
            raise spark_errors(fault) from fault
        self._report(*self._tasks(stage), f"Spark tasks ({stage})")
        return future.result()

    def _grouped(self, stage: str, action: Callable[[], Result]) -> Result:
        self._context.setJobGroup(stage, f"headwater: {stage}")  # for this thread: pyspark pins each to one of the JVM
        return action()

    def _tasks(self, stage: str) -> tuple[int, int]:
        """The number of finished tasks of a stage's jobs, and of all tasks that Spark knows by now."""
        from py4j.protocol import Py4JError

        done = total = 0
        with suppress(Py4JError, OSError):  # a JVM that is gone shows in the action itself
            tracker = self._context.statusTracker()
            jobs = [job for number in tracker.getJobIdsForGroup(stage) if (job := tracker.getJobInfo(number))]
            running = {number for job in jobs if job.status == "RUNNING" for number in job.stageIds}
            for number in {number for job in jobs for number in job.stageIds}:
                if info := tracker.getStageInfo(number):
                    done += info.numCompletedTasks
                    # tasks that an earlier job has done are skipped by a later one, and never count as done there
                    total += info.numTasks if number in running or info.numCompletedTasks else 0
        return done, total


def spark_errors(fault: BaseException) -> HeadwaterError:
    """Our own error inside Spark's traceback, or Spark's message."""
    found = _OUR_ERROR.search(str(fault))
    kind = getattr(errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, HeadwaterError):
        return kind(found[2])
    return UnavailableError(f"the Spark job failed: {first_line(fault)}")


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine of a job; its text is ``spark (local[*])`` or ``process (Java is missing)``."""

    is_spark: bool
    reason: str

    def __str__(self) -> str:
        return f"{'spark' if self.is_spark else 'process'} ({self.reason})"


def find_engine(settings: Settings, *, environment: Mapping[str, str] | None = None) -> Engine:
    """Find the engine for jobs here, and why it is chosen. Starts nothing."""
    environment = os.environ if environment is None else environment
    if settings.spark_master == "off":
        return Engine(False, "spark_master is off")
    if importlib.util.find_spec("pyspark") is None:
        return Engine(False, "pyspark is not installed: pip install 'headwater[spark]'")
    if not _has_java(environment):
        return Engine(False, "Java is missing")
    if reason := _connect_reason(settings.spark_master, parse_spark_conf(settings.spark_conf), environment):
        return Engine(False, reason)
    return Engine(True, settings.spark_master)


def _has_java(environment: Mapping[str, str]) -> bool:
    """Whether Java is found as Spark's launcher looks for it: in JAVA_HOME if that is set, on the PATH otherwise."""
    if home := environment.get("JAVA_HOME"):
        return (Path(home) / "bin" / "java").is_file()
    return shutil.which("java", path=environment.get("PATH", os.defpath)) is not None
