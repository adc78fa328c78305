"""When a schedule comes, in which zone, and what is made up for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.clock import Micros, as_text
from headwater.errors import RefusedError
from headwater.reconcile import next_time, weekly_schedule
from headwater.reconcile.actions import SubmitTask
from headwater.reconcile.observed_state import TaskHistory
from headwater.reconcile.schedule import ScheduledWork, checked_cron, checked_zone, daily_schedule, keep_scheduled

CRONS = ("0 3 * * 0", "30 2 * * *", "*/15 * * * *", "0 * * * *", "15 2 * * *", "0 0 1 * *")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
CLOCK_CHANGES = ("2026-03-29T01:00", "2026-10-25T01:00", "2026-03-08T07:00", "2026-11-01T06:00", "2026-04-04T15:00")
anywhere = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)).map(lambda time: at(time.isoformat()))
near_a_change = st.builds(
    lambda change, minutes: Micros(at(change) + minutes * 60_000_000), st.sampled_from(CLOCK_CHANGES), st.integers(-1500, 1500)
)
moments = anywhere | near_a_change


def at(text: str) -> Micros:
    return Micros(round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000))


@pytest.mark.parametrize(
    ("cron", "zone", "after", "wanted"),
    [
        ("0 3 * * 0", "UTC", "2026-11-21T12:00", "2026-11-22T03:00:00Z"),
        ("0 3 * * 0", "Europe/Berlin", "2026-11-21T12:00", "2026-11-22T02:00:00Z"),
        ("0 3 * * 0", "Europe/Berlin", "2026-06-20T12:00", "2026-06-21T01:00:00Z"),
        ("0 3 * * 0", "UTC", "2026-11-22T03:00", "2026-11-29T03:00:00Z"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00:00Z"),  # 2:30 is skipped: at 3:00
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00", "2026-03-30T00:30:00Z"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30:00Z"),  # 2:30 comes twice: the first one
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30:00Z"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10", "2026-10-26T01:30:00Z"),  # 2:10, the second one
        ("0 * * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:00:00Z"),  # every hour, also the second one
    ],
)
def test_next_time_is_that_of_the_clocks_on_the_wall(cron: str, zone: str, after: str, wanted: str) -> None:
    assert as_text(next_time(cron, zone, at(after))) == wanted


@given(cron=st.sampled_from(CRONS), zone=st.sampled_from(ZONES), moment=moments, share=st.floats(0, 0.999))
def test_next_time_is_the_same_all_the_time_before_it(cron: str, zone: str, moment: Micros, share: float) -> None:
    following = next_time(cron, zone, moment)

    between = Micros(moment + int((following - moment) * share))

    assert following > moment
    assert next_time(cron, zone, between) == following


def test_schedule_is_not_due_before_its_time() -> None:
    last, now = at("2026-11-22T03:00"), at("2026-11-29T02:59")

    assert next_time("0 3 * * 0", "UTC", last) == now + 60_000_000


def test_missed_run_happens_once_after_a_downtime() -> None:
    last, now = at("2026-11-01T03:00"), at("2026-11-25T12:00")

    assert next_time("0 3 * * 0", "UTC", last) == at("2026-11-08T03:00")
    assert next_time("0 3 * * 0", "UTC", now) > now + 60_000_000


def test_realms_without_a_schedule_are_spread_over_the_week() -> None:
    schedules = {weekly_schedule(f"realm-{number}") for number in range(500)}

    assert len(schedules) > 450
    assert {schedule.split()[-1] for schedule in schedules} == set("0123456")
    assert all(checked_cron(schedule) == schedule for schedule in schedules)


def test_schedule_of_a_realm_without_one_never_changes() -> None:
    assert (weekly_schedule("acme"), daily_schedule("acme/lake/initial")) == ("12 19 * * 1", "40 17 * * *")


@pytest.mark.parametrize("cron", ["0 3 * * *", "*/5 0-6 1,15 JAN-MAR MON", "0  3  L * *"])
def test_cron_expressions_of_five_fields_are_accepted(cron: str) -> None:
    assert checked_cron(cron) == " ".join(cron.split())


@pytest.mark.parametrize(
    ("cron", "cause"),
    [
        ("weekly", "is not a cron expression"),
        ("@daily", "is not a cron expression"),
        ("0 3 * *", "is not a cron expression"),
        ("0 0 3 * * 0", "is not a cron expression"),
        ("60 3 * * 0", "(bad minute)"),
        ("0 0 30 2 *", "(bad day-of-month)"),
        ("0 0 */31 1 MON#5", "never comes"),
    ],
)
def test_text_that_is_no_schedule_is_refused_with_an_example(cron: str, cause: str) -> None:
    with pytest.raises(RefusedError, match="for example") as refused:
        checked_cron(cron)

    assert cause in str(refused.value)


@pytest.mark.parametrize("zone", ["Europe/Berln", "", "../etc/passwd", "/etc/localtime", "Europe", "a\0b"])
def test_text_that_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(RefusedError, match="is not a time zone; write for example UTC or Europe/Berlin"):
        checked_zone(zone)


def test_weekly_waits_are_a_week_but_for_the_clocks_hour() -> None:
    first = next_time("0 3 * * 0", "Europe/Berlin", at("2026-10-12T00:00"))

    second = next_time("0 3 * * 0", "Europe/Berlin", first)

    assert timedelta(microseconds=second - first) == timedelta(days=7, hours=1)


def test_run_that_a_clock_ahead_ended_does_not_put_the_next_one_off() -> None:
    work = ScheduledWork(kind="gc", subject="", arguments={}, cron="0 3 * * *", zone="UTC")
    now = Micros(1_780_000_000_000_000)
    [submitted] = keep_scheduled(work, TaskHistory(), since=Micros(now + 365 * 86_400 * 1_000_000), now=now)

    assert isinstance(submitted, SubmitTask)
    assert submitted.due == next_time(work.cron, work.zone, now)
