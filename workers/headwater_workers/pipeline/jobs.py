"""The jobs of one Spark session, watched from the thread that holds the task."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

from headwater import errors
from headwater.catalogs.iceberg import Progress
from headwater.errors import HeadwaterError, UnavailableError
from headwater_workers.pipeline.sessions import first_line

__all__ = ["Jobs", "translated"]

Result = TypeVar("Result")

POLL_SECONDS = 0.5
_OUR_ERROR = re.compile(r"^headwater\.errors\.(\w+): (.*)", re.MULTILINE)


class Jobs:
    """Runs actions in a thread of their own and reports from this one, so that a caller who loses its task can stop them."""

    def __init__(self, spark: Any, report: Progress) -> None:
        self._context = spark.sparkContext
        self._report = report

    def run(self, stage: str, action: Callable[[], Result]) -> Result:
        """Do one stage of the work; its Spark tasks that are done and known are reported, in the unit ``Spark tasks (STAGE)``.

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
            raise translated(fault) from fault
        self._report(*self._tasks(stage), f"Spark tasks ({stage})")
        return future.result()

    def _grouped(self, stage: str, action: Callable[[], Result]) -> Result:
        self._context.setJobGroup(stage, f"headwater: {stage}")  # of this thread: pyspark pins each to one of the JVM
        return action()

    def _tasks(self, stage: str) -> tuple[int, int]:
        """How many tasks of a stage's jobs are done, and how many there are as far as Spark knows by now."""
        from py4j.protocol import Py4JError

        done = total = 0
        with suppress(Py4JError, OSError):  # a JVM that is gone shows in the action itself
            tracker = self._context.statusTracker()
            jobs = [job for number in tracker.getJobIdsForGroup(stage) if (job := tracker.getJobInfo(number))]
            running = {number for job in jobs if job.status == "RUNNING" for number in job.stageIds}
            for number in {number for job in jobs for number in job.stageIds}:
                if info := tracker.getStageInfo(number):
                    done += info.numCompletedTasks
                    # what an earlier job has done already is passed over by a later one, and never counts as done there
                    total += info.numTasks if number in running or info.numCompletedTasks else 0
        return done, total


def translated(fault: BaseException) -> HeadwaterError:
    """The error of our own rules inside of Spark's traceback, or what Spark says."""
    found = _OUR_ERROR.search(str(fault))
    kind = getattr(errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, HeadwaterError):
        return kind(found[2])
    return UnavailableError(f"the Spark job failed: {first_line(fault)}")
