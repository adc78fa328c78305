"""The transitions of a task, as pure functions from the task as it was read to the task as it is to be written."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from headwater.clock import Micros
from headwater.tasks.task import AttemptEnd, FollowUpTask, Task, TaskAttempt, TaskProgress, TaskState

ATTEMPTS_KEPT = 20
ERROR_CHARACTERS = 2000


def begin_attempt(task: Task, *, owner: str, lease: str, now: Micros) -> Task:
    number = task.attempt + 1
    record = TaskAttempt(number=number, owner=owner, started=now)
    return replace(
        task,
        state=TaskState.RUNNING,
        attempt=number,
        owner=owner,
        lease=lease,
        beat=0,
        progress=None,
        attempts=(*task.attempts, record)[-ATTEMPTS_KEPT:],
    )


def with_heartbeat(task: Task, *, progress: TaskProgress | None) -> Task:
    """The task one heartbeat later."""
    return replace(progressed(task, progress=progress), beat=task.beat + 1)


def progressed(task: Task, *, progress: TaskProgress | None) -> Task:
    """The task with the progress that was reported last; None keeps the former."""
    return replace(task, progress=progress or task.progress)


def succeeded(task: Task, *, now: Micros, outcome: dict[str, Any], follow_up: FollowUpTask | None) -> Task:
    done = _closed(task, AttemptEnd.SUCCEEDED, now)
    return replace(done, state=TaskState.SUCCEEDED, outcome=outcome, follow_up=follow_up, finished=now, owner="")


def failed(task: Task, *, now: Micros, error: str, retry_at: Micros | None) -> Task:
    """The task after a failed attempt: due again at ``retry_at``, or dead-lettered when that is None or no attempt is left."""
    return _after_failure(_closed(task, AttemptEnd.FAILED, now, error), now=now, retry_at=retry_at)


def lost(task: Task, *, now: Micros, reason: str) -> Task:
    """The task after an attempt whose worker fell silent: due as before, which means now; or dead-lettered."""
    return _after_failure(_closed(task, AttemptEnd.LOST, now, reason), now=now, retry_at=task.due)


def handed_back(task: Task, *, now: Micros, reason: str) -> Task:
    """The task after an attempt that ended early through no fault of its own. Its due time stays, so that no index changes."""
    if task.stop_requested:
        return cancelled(task, now=now)
    return replace(_closed(task, AttemptEnd.HANDED_BACK, now, reason), state=TaskState.WAITING, owner="")


def put_off(task: Task, *, now: Micros, reason: str, until: Micros) -> Task:
    """The task after an attempt that lacked something it needs: due again at ``until``, and no failure."""
    if task.stop_requested:
        return cancelled(task, now=now)
    closed = _closed(task, AttemptEnd.PUT_OFF, now, reason)
    *earlier, last = closed.attempts
    if earlier and (earlier[-1].outcome, earlier[-1].error) == (last.outcome, last.error):
        last = replace(last, started=earlier.pop().started)
    return replace(closed, state=TaskState.WAITING, owner="", due=until, attempts=(*earlier, last))


def cancelled(task: Task, *, now: Micros) -> Task:
    closed = _closed(task, AttemptEnd.CANCELLED, now) if task.state is TaskState.RUNNING else task
    return replace(closed, state=TaskState.CANCELLED, finished=now, owner="")


def stop_requested(task: Task) -> Task:
    return replace(task, stop_requested=True)


def retried(task: Task, *, due: Micros) -> Task:
    return replace(
        task, state=TaskState.WAITING, due=due, retried=due, failures=0, stop_requested=False, finished=None, progress=None
    )


def amended(task: Task, *, arguments: dict[str, Any], due: Micros) -> Task:
    """The task with other arguments, due no sooner than before, so that its present index entries find it in time."""
    return replace(task, arguments=arguments, due=max(task.due, due))


def run_now(task: Task, *, now: Micros) -> Task:
    """The task, due by now. A running task is left as it is."""
    return task if task.state is TaskState.RUNNING or task.due <= now else replace(task, due=now)


def backoff_seconds(failures: int, *, first_seconds: float, limit_seconds: float, chance: float) -> float:
    """The wait after so many failures. It doubles up to the limit; ``chance`` from 0 to 1 makes it up to a fifth shorter or longer."""
    doubled = first_seconds * 2.0 ** min(failures - 1, 40)
    return min(doubled, limit_seconds) * (0.8 + 0.4 * chance)


def _after_failure(task: Task, *, now: Micros, retry_at: Micros | None) -> Task:
    counted = replace(task, failures=task.failures + 1, owner="")
    if counted.stop_requested:
        return replace(counted, state=TaskState.CANCELLED, finished=now)
    if retry_at is None or counted.failures >= counted.max_attempts:
        return replace(counted, state=TaskState.FAILED, finished=now)
    return replace(counted, state=TaskState.WAITING, due=retry_at)


def _closed(task: Task, outcome: AttemptEnd, now: Micros, error: str = "") -> Task:
    *earlier, last = task.attempts
    ended = Micros(max(now, last.started))
    record = replace(last, ended=ended, outcome=outcome, error=error[:ERROR_CHARACTERS], progress=task.progress)
    return replace(task, attempts=(*earlier, record))
