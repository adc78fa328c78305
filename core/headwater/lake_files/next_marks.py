"""The marks of a report, from those of the report before it and from what is dead now. Everything here is pure.

    first listed as dead        marked, and its grace begins now
    dead in the next report     confirmed; its grace goes on from the first listing
    taken up by a commit        begins anew, for that commit may have failed
    live in between             no mark is left, so it would begin anew

A file's own time only ever lengthens the grace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headwater.clock import Micros
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.lake_file_values import DeadFile
from headwater.lake_files.marked_files import MarkedFile

CONFIRMED_RUNS = 2
"""A file may go once so many reports in a row have found that nobody refers to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRules:
    """What decides when a dead file is due.

    now           when the listings of this report began
    waits         of a place: grace and delay, in microseconds together
    is_taken      whether a commit has taken up a marked file, given place and path, since the report before this one
    """

    now: Micros
    waits: Callable[[str], int]
    is_taken: Callable[[str, str], bool]


def next_marks(before: Iterable[MarkedFile], dead: Iterable[DeadFile], rules: MarkRules) -> Iterator[MarkedFile]:
    """Make the marks of this report; all three are sorted by place and path."""
    held, end = iter(before), None
    known: MarkedFile | None = next(held, end)
    for file in dead:
        at = (file.place, file.path)
        while known is not None and (known.place, known.path) < at:
            known = next(held, end)
        is_known = known is not None and (known.place, known.path) == at
        yield _marked(file, known if is_known else None, rules)


def _marked(file: DeadFile, known: MarkedFile | None, rules: MarkRules) -> MarkedFile:
    if known is not None and (_is_new(file, known) or rules.is_taken(file.place, file.path)):
        known = None
    first_listed = rules.now if known is None else known.first_listed
    runs = 1 if known is None else known.runs + 1
    mark = MarkedFile(file.place, file.path, file.size_bytes, file.modified, first_listed, runs, Micros(0), file.code)
    if file.code is not FileReason.IN_GRACE:
        return mark
    # a clock that was ahead when the file was written would keep it for good: its time counts at most as that of the first listing
    # plus the whole wait again
    wait = rules.waits(file.place)
    written = min(file.modified, first_listed + wait)
    due = Micros(max(first_listed, written) + wait)
    return mark._replace(due=due, code=_code(runs, due, rules.now))


def _code(runs: int, due: Micros, now: Micros) -> FileReason:
    if due > now:
        return FileReason.IN_GRACE
    return FileReason.DUE if runs >= CONFIRMED_RUNS else FileReason.MARKED


def _is_new(file: DeadFile, known: MarkedFile) -> bool:
    """Whether a file was written anew since it was marked, or was only reported: then no filter had it, and it may have been live since."""
    was_reported = known.due == 0 and file.code is FileReason.IN_GRACE
    return was_reported or (file.size_bytes, file.modified) != (known.size_bytes, known.modified)
