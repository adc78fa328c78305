"""What stands under keys and in archives, judged by what writers and the ledger of a world know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engines.model.promise import promised
from headwater.store import ObjectId

ARCHIVE = ("docs/concepts/index.md", "Archive")


class Step(StrEnum):
    PUT = "put"
    DELETE = "delete"


class Told(StrEnum):
    """What a key's only writer knows of a step: it asked, it was done, it was not done, nobody knows."""

    CALLED = "call"
    DONE = "done"
    NOT_DONE = "not"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class KeyNote:
    """One line that the only writer of a key wrote down, at a time of its own clock."""

    key: str
    step: Step
    told: Told
    time: int


@promised("docs/concepts/commits.md", "How one ends")
def keys_hold_what_was_told(notes: Iterable[KeyNote], there: set[str], where: str) -> list[str]:
    """Under a key is what its only writer was told last.

    notes         of each key in the order in which they were written
    """
    must, may = set[str](), set[str]()
    for note in notes:
        is_put = note.step is Step.PUT
        match note.told:
            case Told.CALLED | Told.OPEN:  # until there is an answer
                must.discard(note.key)
                may.add(note.key)
            case Told.DONE:
                may.discard(note.key)
                (must.add if is_put else must.discard)(note.key)
            case Told.NOT_DONE:
                may.discard(note.key)
                (must.discard if is_put else must.add)(note.key)
    faults = [f"{where}: {key} was acknowledged, and is lost" for key in sorted(must - there)]
    return faults + [f"{where}: {key} is there, and its writer was told that it is not" for key in sorted(there - must - may)]


@promised(*ARCHIVE)
def archive_has_the_head_of_its_moment(
    name: str, moment: int, pointer: ObjectId | None, heads: Sequence[tuple[ObjectId, int, bool]]
) -> list[str]:
    """Of each reference an archive holds the newest commit that is not after its moment.

    heads         every commit that the reference had, in order: its id, its time, and whether it became HEAD long after that time;
                  one that became HEAD after the archive was read is not in it
    """
    then = [(commit_id, is_late) for commit_id, time, is_late in heads if time <= moment]
    allowed = {(line or [None])[-1] for line in ([one for one, _ in then], [one for one, is_late in then if not is_late])}
    return [] if pointer in allowed else [f"{name} of {moment} is at {pointer}, and was at {then[-1:]}"]


@promised(*ARCHIVE)
def archive_has_the_keys_of_its_moment(
    name: str, moment: int, bound: int, notes: Iterable[KeyNote], there: set[str]
) -> list[str]:
    """An archive has each key that its writer was told of before the moment, and none that was put after it.

    A commit's time is between its call and its answer on its writer's clock, and later by what others' clocks are ahead of that.

    bound         by how much clocks may differ
    """
    calls, told = dict[tuple[str, Step], int](), dict[tuple[str, Step], int]()
    for note in notes:
        if note.told in (Told.CALLED, Told.DONE):
            (calls if note.told is Told.CALLED else told)[note.key, note.step] = note.time
    faults: list[str] = []
    for key in (key for key, step in calls if step is Step.PUT):
        put, deleted = (key, Step.PUT), (key, Step.DELETE)
        is_before = put in told and told[put] + bound < moment
        if is_before and calls.get(deleted, moment + 1) > moment and key not in there:
            faults.append(f"{name} as of {moment} lacks {key}, which was put by {told[put]}")
        if calls[put] > moment and key in there:
            faults.append(f"{name} as of {moment} has {key}, which was put after {calls[put]}")
        if deleted in told and told[deleted] + bound < moment and key in there:
            faults.append(f"{name} as of {moment} has {key}, which was deleted by {told[deleted]}")
    return faults + [f"{name} has {key}, which nobody put" for key in sorted(there) if (key, Step.PUT) not in calls]
