"""When a file that nobody refers to may go: by our own listings, confirmed by a later report, and never sooner for its own time."""

from __future__ import annotations

from headwater.clock import Micros
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.lake_file_values import DeadFile
from headwater.lake_files.marked_files import MarkedFile
from headwater.lake_files.next_marks import MarkRules, next_marks

DAY = 24 * 3_600_000_000
WAIT = 8 * DAY
START = Micros(1_780_000_000_000_000)
PLACE = "s3://lake/orders"


def dead(name: str, *, modified: int = START - 90 * DAY, size: int = 10, code: FileReason = FileReason.IN_GRACE) -> DeadFile:
    return DeadFile(f"{PLACE}/data/{name}", size, Micros(modified), PLACE, code)


def marks(
    before: list[MarkedFile], found: list[DeadFile], *, days: float = 0, taken: frozenset[str] = frozenset()
) -> list[MarkedFile]:
    rules = MarkRules(
        now=Micros(round(START + days * DAY)),
        waits=lambda place: WAIT,
        is_taken=lambda place, path: path.rpartition("/")[2] in taken,
    )
    return list(next_marks(before, found, rules))


def test_file_is_marked_with_the_time_of_our_first_listing() -> None:
    (mark,) = marks([], [dead("a")])

    assert (mark.first_listed, mark.runs, mark.code) == (START, 1, FileReason.IN_GRACE)
    assert mark.due == START + WAIT


def test_later_report_keeps_the_first_time() -> None:
    first = marks([], [dead("a"), dead("b")])
    later = marks(first, [dead("a"), dead("b"), dead("c")], days=5)

    assert [mark.first_listed for mark in later] == [START, START, START + 5 * DAY]
    assert [mark.runs for mark in later] == [2, 2, 1]


def test_file_is_due_when_grace_and_delay_are_over() -> None:
    first = marks([], [dead("a")])

    assert marks(first, [dead("a")], days=7.9)[0].code is FileReason.IN_GRACE
    assert marks(first, [dead("a")], days=8)[0].code is FileReason.DUE


def test_file_that_one_report_alone_has_seen_is_never_due() -> None:
    waits_nothing = MarkRules(now=START, waits=lambda place: 0, is_taken=lambda place, path: False)
    (mark,) = next_marks([], [dead("a")], waits_nothing)

    assert mark.code is FileReason.MARKED
    assert next(next_marks([mark], [dead("a")], waits_nothing)).code is FileReason.DUE


def test_file_that_was_live_in_between_begins_anew() -> None:
    first = marks([], [dead("a")])
    between = marks(first, [], days=4)
    later = marks(between, [dead("a")], days=9)

    assert (later[0].first_listed, later[0].code) == (START + 9 * DAY, FileReason.IN_GRACE)


def test_file_that_a_commit_took_up_begins_anew() -> None:
    first = marks([], [dead("a"), dead("b")])
    later = marks(first, [dead("a"), dead("b")], days=9, taken=frozenset({"a"}))

    assert [(mark.first_listed, mark.code) for mark in later] == [
        (START + 9 * DAY, FileReason.IN_GRACE),
        (START, FileReason.DUE),
    ]


def test_file_that_was_written_anew_begins_anew() -> None:
    first = marks([], [dead("a"), dead("b")])
    later = marks(first, [dead("a", size=11), dead("b", modified=START - DAY)], days=9)

    assert [mark.first_listed for mark in later] == [START + 9 * DAY] * 2


def test_old_time_of_a_file_never_makes_it_due_sooner() -> None:
    (mark,) = marks([], [dead("copied", modified=1)])

    assert mark.due == START + WAIT


def test_younger_time_of_a_file_lengthens_its_grace() -> None:
    (mark,) = marks([], [dead("a", modified=START + 2 * DAY)])

    assert mark.due == START + 2 * DAY + WAIT


def test_time_in_the_future_keeps_no_file_for_good() -> None:
    (mark,) = marks([], [dead("a", modified=START + 10_000 * DAY)])

    assert mark.due == START + 2 * WAIT


def test_file_that_is_only_reported_is_never_due() -> None:
    codes = (FileReason.NEVER_HELD, FileReason.TIME_UNKNOWN, FileReason.UNKNOWN_KIND)
    found = [dead(f"{number}", code=code) for number, code in enumerate(codes)]
    later = marks(marks([], found), found, days=900)

    assert [(mark.code, mark.due, mark.runs) for mark in later] == [(code, 0, 2) for code in codes]


def test_file_that_becomes_held_begins_anew() -> None:
    first = marks([], [dead("a", code=FileReason.NEVER_HELD)])
    (mark,) = marks(first, [dead("a")], days=9)

    assert (mark.first_listed, mark.code) == (START + 9 * DAY, FileReason.IN_GRACE)
