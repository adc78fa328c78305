"""The record of each execution, whether it did its work or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from headwater.errors import FencedError, HeadwaterError
from headwater.maintenance import Run, record_run
from headwater.store import Store
from headwater.tasks import Claim, StoppedError

__all__ = ["recorded"]

log = structlog.get_logger(__name__)


def recorded(store: Store, claim: Claim, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do the work and keep a record of it; its notes stand under ``notes`` of what it returns.

    An attempt that was taken over or handed back leaves no record: the one that ends the work does.
    """
    started = store.clock.now()

    def record(outcome: dict[str, Any], error: str = "") -> None:
        counts = {name: value for name, value in outcome.items() if name != "notes"}
        run = Run(
            kind=claim.task.kind,
            realm=claim.task.realm,
            subject=claim.task.subject,
            started=started,
            finished=store.clock.now(),
            task=claim.id,
            attempt=claim.attempt,
            counts=counts,
            notes=tuple(outcome.get("notes", ())),
            error=error,
        )
        try:
            record_run(store, run)
        except HeadwaterError as fault:
            log.warning("the run was not recorded", error=str(fault))

    try:
        outcome = work()
    except (FencedError, StoppedError):
        raise
    except HeadwaterError as error:
        record({}, str(error))
        raise
    record(outcome)
    return outcome
