"""The wrong databases that the tests must find out, what each does wrong, and by which promise or model it is killed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODELS = {"BackendModel": "tests/engines/properties/backend_model.py"}
"""State machines that kill mutants: a database beside two dictionaries."""

ALONE = "engines.properties.wrong_backends"
IN_RACES = "engines.properties.broken_backends"
IN_WORLDS = "engines.simulation.simulated_mutants"
IN_STORMS = "engines.file_tables.table_mutants"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong database, or a wrong part of file tables.

    place         the module with its class
    breaks        what it does wrong
    killed_by     the name of a promise, or of one of ``MODELS``
    """

    place: str
    breaks: str
    killed_by: str


def _alone(breaks: str) -> Mutant:
    return Mutant(ALONE, breaks, "BackendModel")


def _in_races(breaks: str) -> Mutant:
    return Mutant(IN_RACES, breaks, "rows_change_at_one_instant")


def _in_storms(breaks: str, killed_by: str) -> Mutant:
    return Mutant(IN_STORMS, breaks, killed_by)


MUTANTS: Mapping[str, Mutant] = {
    "ComparesVersionsAlone": _alone("swaps a reference of the version that was seen, though its pointer is another"),
    "ComparesWholeRows": _alone("does not remove a reference that differs in what does not count"),
    "KeepsCreationTimes": _alone("keeps the creation time of a reference through a swap"),
    "CreatesAllOrNone": _alone("creates no reference of a list in which one is there"),
    "FoldsCase": _alone("takes names that differ in case for one"),
    "OrdersLikeUtf16": _alone("scans names in the order of UTF-16"),
    "LosesPrecision": _alone("reads times back as floating-point numbers"),
    "LeavesParts": _alone("leaves a part of an object behind"),
    "AnswersOnce": _alone("answers once for a row that is asked for twice"),
    "TakesNoTokenForAny": _alone("deletes a row of any token where none was named"),
    "BeginsAgainWithTheLast": _alone("begins a scan again with the row that was the last"),
    "SplitsOnlyWhatIsThere": _alone("ends the last split at the last row that is there"),
    "DeletesNeighbours": _alone("deletes the rows of the next realm"),
    "DeletesMoreThanAsked": _alone("deletes one row more than its limit"),
    "WritesObjectsOfTheBeaten": _alone("writes the objects of a commit whose swap fails"),
    "ReadThenWrite": _in_races("swaps by reading and then writing"),
    "StaleReads": _in_races("reads what was true a few milliseconds ago"),
    "Overwriting": _in_races("inserts over a row that is there"),
    "WorkingLate": _in_races("acknowledges an update before it is made"),
    "Forgetful": _in_races("forgets every twentieth update that it acknowledged"),
    "Repeating": _in_races("repeats a swap by itself, and tells of the second one"),
    "Deceiving": _in_races("says of a deletion that was done that it was not"),
    "TornReads": _in_races("reads a value and its token apart"),
    "Careless": Mutant(IN_WORLDS, "moves a reference wherever it is by now", "acknowledged_commits_are_there"),
    "Greedy": Mutant(IN_WORLDS, "deletes the head of a realm's list of catalogs with the garbage", "recent_heads_are_whole"),
    "ReadsTheTreeFirst": _in_storms("reads the partition tree before the references", "tables_have_whole_ingests"),
    "MovesBeforeItSplits": _in_storms("moves references before the tree has their partitions", "tables_are_not_damaged"),
    "KeepsSplitReferences": _in_storms("leaves a reference there that was split", "references_of_a_file_do_not_overlap"),
    "WritesNoOutcomes": _in_storms("applies requests without the rows that tell so", "tables_have_whole_ingests"),
    "TracksFileByFile": _in_storms("tracks the files of an ingest one by one", "tables_have_whole_ingests"),
    "DeletesAtOnce": _in_storms("deletes marked files without their delay", "late_reads_alone_miss_files"),
    "DeletesStrays": _in_storms("deletes strays that nobody tracks", "late_reads_alone_miss_files"),
}
"""Each mutant by the name of its class."""
