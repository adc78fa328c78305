"""Cron schedules as pure functions: the next time after the last one, in a time zone, with daylight saving as in Debian's cron."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from headwater.clock import Micros, as_datetime
from headwater.errors import RefusedError

__all__ = ["checked_cron", "checked_zone", "daily_schedule", "is_due_at", "next_time", "weekly_schedule"]

_FIELDS = 5
_EXAMPLE = 'write minute, hour, day of month, month and day of week, for example "0 3 * * 0"'


def next_time(cron: str, zone: str, after: Micros) -> Micros:
    """The first time of the schedule that is later than ``after``.

    A time that is skipped in spring comes as soon as the clocks have been put forward; one that occurs twice in autumn comes once.

    raises        RefusedError for an invalid cron expression or time zone
    """
    start = as_datetime(after).astimezone(ZoneInfo(checked_zone(zone)))
    # seen from the second showing of an hour, the first one is still to come: skip what is past
    times = (Micros(round(time.astimezone(UTC).timestamp()) * 1_000_000) for time in CronSim(checked_cron(cron), start))
    return next(time for time in times if time > after)


def is_due_at(cron: str, zone: str, last: Micros, now: Micros) -> Micros | None:
    """The time since ``last`` at which a run became due; None while none is due.

    One run makes up for all times that were missed during a downtime: the first missed time is returned,
    and the others count no more after the run, with a new ``last``.
    """
    time = next_time(cron, zone, last)
    return time if time <= now else None


def weekly_schedule(realm_id: str) -> str:
    """The default schedule of a realm: once a week, at a time derived from its id so that they do not all run at once."""
    minute, hour, day = _spread(realm_id)
    return f"{minute} {hour} * * {day}"


def daily_schedule(name: str) -> str:
    """A schedule once a day, at a time derived from the name."""
    minute, hour, _ = _spread(name)
    return f"{minute} {hour} * * *"


def checked_cron(text: str) -> str:
    """Check a cron expression of five fields that has a next time.

    raises        RefusedError that says what is wrong
    """
    if len(text.split()) != _FIELDS:
        raise RefusedError(f'"{text}" is not a cron expression; {_EXAMPLE}')
    try:
        next(CronSim(text, datetime(2025, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise RefusedError(f'"{text}" is not a cron expression ({str(error).lower()}); {_EXAMPLE}') from error
    except StopIteration as error:
        raise RefusedError(f'"{text}" never comes; {_EXAMPLE}') from error
    return " ".join(text.split())


def checked_zone(text: str) -> str:
    """Check the name of a time zone.

    raises        RefusedError when there is none of this name
    """
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise RefusedError(f'"{text}" is not a time zone; write for example UTC or Europe/Berlin') from error
    return text


def _spread(name: str) -> tuple[int, int, int]:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return number % 60, number // 60 % 24, number // 1440 % 7
