"""What a person may write after ``--to``."""

from __future__ import annotations

import pytest

from headwater.clock import Micros, as_text
from headwater.errors import RefusedError
from headwater.restore import RestoreRequest, RestoreTarget
from headwater.store import ObjectId

NOW = Micros(1_780_000_000_000_000)


def test_sixteen_hex_digits_are_a_commit() -> None:
    assert RestoreTarget.from_text("00000000000004d2", NOW) == RestoreTarget(commit=ObjectId(1234))


def test_time_is_in_rfc_3339() -> None:
    assert RestoreTarget.from_text("2026-05-01T12:00:00.5+02:00", NOW) == RestoreTarget(time=Micros(1_777_629_600_500_000))


def test_time_without_a_zone_is_in_utc() -> None:
    assert RestoreTarget.from_text("2026-05-01T12:00:00", NOW) == RestoreTarget.from_text("2026-05-01T12:00:00Z", NOW)


def test_time_as_it_is_printed_covers_its_whole_second() -> None:
    committed = Micros(NOW - 3_400_001)
    aim = RestoreTarget.from_text(as_text(committed), NOW)

    assert aim.time is not None
    assert committed <= aim.time < committed + 1_000_000


def test_duration_is_so_long_ago() -> None:
    assert RestoreTarget.from_text("90m", NOW) == RestoreTarget(time=Micros(NOW - 5_400_000_000))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", "neither a commit"),
        ("2027-01-01T00:00:00Z", "still to come"),
        ("1969-12-31", "before all times"),
        ("30000d", "before all times"),
        ("9999999999h", "too long for a duration"),
        ("0001-01-01T00:00:00+23:00", "before all times"),
    ],
)
def test_anything_else_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        RestoreTarget.from_text(text, NOW)


@pytest.mark.parametrize("aim", [RestoreTarget(commit=ObjectId(1234)), RestoreTarget(time=NOW)])
def test_task_carries_a_request(aim: RestoreTarget) -> None:
    request = RestoreRequest(reference="lake/main", aim=aim, prune=True)

    assert RestoreRequest.from_arguments(request.arguments()) == request


def test_arguments_without_an_aim_are_refused() -> None:
    with pytest.raises(RefusedError, match="needs a commit or a time"):
        RestoreRequest.from_arguments({"reference": "lake"})
