"""What must hold of a file table whatever is killed: its rows are those of whole ingests, once each, and nothing else stays behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from engines.model.promise import promised
from headwater.errors import CorruptionError
from headwater.files import FileReference, PartitionId

__all__ = [
    "collected_folders_have_no_other_files",
    "ended_jobs_hold_no_references",
    "late_reads_alone_miss_files",
    "queues_run_empty",
    "references_of_a_file_do_not_overlap",
    "references_stand_for_whole_ingests",
    "tables_are_not_damaged",
    "tables_have_whole_ingests",
    "tree_numbers_go_up",
]

PAGE, HEADING = "docs/concepts/index.md", "File tables"
Row = tuple[int, str, int]


@promised(PAGE, HEADING)
def tables_have_whole_ingests(
    rows: Iterable[Row], rows_of: Callable[[str], Collection[Row]], *, must: Collection[str], may: Collection[str]
) -> list[str]:
    """A read sees every row of an ingest once, or none of its rows.

    must          ingests that were told to be done before the read
    may           those that were begun before its end
    """
    by_ingest: dict[str, Counter[Row]] = {}
    for row in rows:
        by_ingest.setdefault(row[1], Counter())[row] += 1
    faults = [f"ingest {ingest} is lost" for ingest in sorted(set(must) - by_ingest.keys())]
    for ingest, seen in sorted(by_ingest.items()):
        wanted = Counter(rows_of(ingest))
        if ingest not in may:
            faults.append(f"ingest {ingest} was never begun, or was refused, and has {seen.total()} rows")
        elif seen != wanted:
            faults.append(
                f"ingest {ingest} of {wanted.total()} rows: {(wanted - seen).total()} are lost, {(seen - wanted).total()} too many"
            )
    return faults


@promised(PAGE, HEADING)
def references_stand_for_whole_ingests(
    counts: Mapping[str, int], sizes: Mapping[str, int], *, must: Collection[str], may: Collection[str]
) -> list[str]:
    """At every moment all references together stand for each row of an ingest once, or for none of its rows.

    counts        rows of each ingest that lie in the partitions which refer to their files
    """
    faults = [f"no reference stands for ingest {ingest}" for ingest in sorted(set(must) - counts.keys())]
    return faults + [
        f"references stand for {count} rows of ingest {ingest}, which has {sizes[ingest]}"
        for ingest, count in sorted(counts.items())
        if count != sizes[ingest] or ingest not in may
    ]


@promised(PAGE, HEADING)
def tables_are_not_damaged(fault: CorruptionError) -> list[str]:
    """Nobody who reads or writes a table meets damage, or references that are ahead of the partition tree."""
    return [str(fault)]


@promised(PAGE, HEADING)
def references_of_a_file_do_not_overlap(references: Iterable[FileReference]) -> list[str]:
    """No two references of a file lie in partitions of which one is within the other."""
    partitions: dict[str, list[PartitionId]] = {}
    for reference in references:
        partitions.setdefault(reference.filename, []).append(reference.partition)
    return [
        f"partitions {upper} and {lower} both refer to {filename}"
        for filename, held in partitions.items()
        for upper in held
        for lower in held
        if lower != upper and lower.startswith(upper)
    ]


@promised(PAGE, HEADING)
def late_reads_alone_miss_files(seconds: float, delay_seconds: float, fault: Exception) -> list[str]:
    """A read that takes no longer than the delay finds all its files."""
    if seconds >= delay_seconds:
        return []
    return [f"{seconds:.2f} s after a read began, with a delay of {delay_seconds:g} s: {fault}"]


@promised(PAGE, HEADING)
def collected_folders_have_no_other_files(
    stored: Collection[str], tracked: Collection[str], referenced: Collection[str]
) -> list[str]:
    """After two collections a table's folder and its list of files have those that partitions refer to, and no others."""
    faults = [f"{name} is referenced, and gone" for name in sorted(set(referenced) - set(stored))]
    faults += [f"{name} is stored, and nobody refers to it" for name in sorted(set(stored) - set(referenced))]
    return faults + [f"{name} is tracked, and nobody refers to it" for name in sorted(set(tracked) - set(referenced))]


@promised(PAGE, HEADING)
def ended_jobs_hold_no_references(references: Iterable[FileReference], outcomes: Mapping[str, object]) -> list[str]:
    """A job whose end is known holds no references: it would never let go of them."""
    held = sorted({reference.job for reference in references if reference.job in outcomes and reference.job is not None})
    return [f"job {job} has ended ({outcomes[job]}), and holds references still" for job in held]


@promised(PAGE, HEADING)
def tree_numbers_go_up(number: int, before: int) -> list[str]:
    """The tree number that is written with references never becomes less."""
    return [f"the tree number went from {before} to {number}"] if number < before else []


@promised(PAGE, HEADING)
def queues_run_empty(left: object, set_aside: Iterable[object]) -> list[str]:
    """A committer that lives long enough ends every request, and sets none aside but for its own fault."""
    return [f"the queue did not run empty: {left}"] * bool(left) + [f"{request} was set aside" for request in set_aside]
