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

    A time that the clocks skip in spring comes as soon as they have been put forward; one that they show twice in autumn comes once.

    raises        RefusedError for what is no cron expression or no time zone
    """
    start = as_datetime(after).astimezone(ZoneInfo(checked_zone(zone)))
    # seen from the second showing of an hour, the first one is still to come: skip what is past
    times = (Micros(round(time.astimezone(UTC).timestamp()) * 1_000_000) for time in CronSim(checked_cron(cron), start))
    return next(time for time in times if time > after)


def is_due_at(cron: str, zone: str, last: Micros, now: Micros) -> Micros | None:
    """When a run is due that has not been made since ``last``; None as long as none is.

    However many times went by during a downtime, one run makes up for them: the first time that was missed is returned,
    and after the run, with a new ``last``, the others are gone.
    """
    time = next_time(cron, zone, last)
    return time if time <= now else None


def weekly_schedule(realm_id: str) -> str:
    """The schedule of a realm that was given none: once a week, at a time spread by realm so that they do not all run at once."""
    minute, hour, day = _spread(realm_id)
    return f"{minute} {hour} * * {day}"


def daily_schedule(name: str) -> str:
    """Once a day, at a time spread by name."""
    minute, hour, _ = _spread(name)
    return f"{minute} {hour} * * *"


def checked_cron(text: str) -> str:
    """The text as a cron expression of five fields that comes true some day.

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
    """The text as the name of a time zone.

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
