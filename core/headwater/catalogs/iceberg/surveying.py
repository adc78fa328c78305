"""A survey: one outcome per table directory below some locations. Every engine runs these steps, so all say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from headwater.catalogs.iceberg.choosing import Choice, lineage_of, narrow, settle
from headwater.catalogs.iceberg.documents import decode
from headwater.catalogs.iceberg.grouping import File, TableFiles, group, is_selected
from headwater.catalogs.iceberg.locations import canonical, is_within
from headwater.catalogs.iceberg.outcomes import Found, Outcome, QuarantineCode, Quarantined, UnfitError
from headwater.catalogs.iceberg.storage import divide, list_files, read
from headwater.catalogs.iceberg.validating import validate
from headwater.errors import RefusedError

__all__ = ["Progress", "Read", "Scope", "choose", "examine", "find_tables", "judge_together", "survey_in_process"]

Read = Callable[[File], bytes]
Progress = Callable[[int, int, str], None]
"""Called with (done, total, unit); may raise to stop the survey."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a survey looks at. Make it with ``Scope.of``, which checks.

    locations     canonical, none within another
    include       patterns (``sales.*``) of dotted table names, none: all
    exclude       the same, of tables to leave out
    allowed       locations that the files of a table may lie in
    """

    locations: tuple[str, ...]
    allowed: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, locations: Iterable[str], *, allowed: Iterable[str], include: Iterable[str] = (), exclude: Iterable[str] = ()
    ) -> Scope:
        """A checked scope.

        raises        RefusedError without a location, for one that is no location, and for one within another
        """
        places = tuple(canonical(location) for location in locations)
        if not places:
            raise RefusedError("an import needs at least one location")
        for number, place in enumerate(places):
            if place.endswith("/"):
                raise RefusedError(f"{place} is a whole file system: name a folder")
            for other in places[:number]:
                if is_within(place, other) or is_within(other, place):
                    raise RefusedError(f"{place} and {other} overlap: name the outer one alone")
        return cls(
            locations=places,
            allowed=tuple(canonical(location) for location in allowed),
            include=tuple(include),
            exclude=tuple(exclude),
        )


def survey_in_process(scope: Scope, *, progress: Progress | None = None) -> list[Outcome]:
    """One outcome per selected table below the scope's locations, sorted by directory.

    raises        MissingError for a location that is not there, UnavailableError when the storage does not answer
    """
    report = progress or _silent
    folders = [(location, folder) for location in scope.locations for folder in divide(location)]
    tables: list[TableFiles] = []
    for done, (location, folder) in enumerate(folders):
        report(done, len(folders), "folders")
        tables.extend(find_tables(scope, location, folder))
    report(0, len(tables), "tables")
    outcomes: list[Outcome] = []
    for done, table in enumerate(tables, start=1):
        outcomes.append(examine(table, scope.allowed))
        report(done, len(tables), "tables")
    return judge_together(outcomes)


def find_tables(scope: Scope, location: str, folder: str) -> list[TableFiles]:
    """The selected table directories in one of the folders that ``divide`` made of a location."""
    return [table for table in group(location, list_files(folder)) if is_selected(table.key, scope.include, scope.exclude)]


def examine(table: TableFiles, allowed: Sequence[str], *, read: Read = read) -> Outcome:
    """Choose, read and validate one table directory. Nothing that is wrong with it raises."""
    try:
        choice = choose(table, read=read)
        return validate(decode(read(choice.file), path=choice.file.path), choice, table, allowed)
    except UnfitError as unfit:
        return Quarantined(directory=table.directory, key=table.key, code=unfit.code, message=str(unfit))


def choose(table: TableFiles, *, read: Read = read) -> Choice:
    """The latest metadata file of a table directory, reading others only where names do not decide.

    raises        UnfitError: the directory has none, or none that can be told
    """
    if not table.metadata:
        raise UnfitError(
            QuarantineCode.NO_METADATA,
            f"{table.directory} holds {table.leftovers} data files or manifests, but no metadata: what a dropped table left,"
            " delete or restore it",
        )
    if table.has_delta_log:
        raise UnfitError(
            QuarantineCode.IS_DELTA,
            f"{table.directory} is a Delta Lake table that also writes Iceberg metadata: commits from here would be lost,"
            " register it as Delta",
        )
    contest = narrow(table.metadata, read(table.hint) if table.hint else None)
    if isinstance(contest, Choice):
        return contest
    lineages = {file.path: lineage_of(decode(read(file), path=file.path)) for file in contest.contenders}
    for rival in contest.rivals:
        with suppress(UnfitError):  # a broken file with a lower number is no evidence for anything
            lineages[rival.path] = lineage_of(decode(read(rival), path=rival.path))
    return settle(contest, lineages)


def judge_together(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes sorted by directory, with the tables quarantined that contradict each other: none is the right one.

    Two tables contradict each other when they share a uuid or a key, or when one lies within the other.
    """
    ordered = sorted(outcomes, key=lambda outcome: outcome.directory)
    found = [outcome for outcome in ordered if isinstance(outcome, Found)]
    verdicts: dict[str, Quarantined] = {}
    for group_, code, what in (
        (
            _shared(found, lambda table: table.uuid),
            QuarantineCode.DUPLICATE_UUID,
            "have the same uuid: one is a copy, remove it",
        ),
        (
            _shared(found, lambda table: table.key),
            QuarantineCode.DUPLICATE_KEY,
            "would get the same key: import them into two catalogs",
        ),
        (_nested(found), QuarantineCode.NESTED, "lie one within the other: move one of them"),
    ):
        for tables in group_:
            message = f"{' and '.join(table.directory for table in tables[:5])} {what}"
            for table in tables:
                verdicts.setdefault(
                    table.directory, Quarantined(directory=table.directory, key=table.key, code=code, message=message)
                )
    return [verdicts.get(outcome.directory, outcome) for outcome in ordered]


def _shared(tables: Sequence[Found], trait: Callable[[Found], object]) -> list[list[Found]]:
    by_trait: dict[object, list[Found]] = defaultdict(list)
    for table in tables:
        if trait(table) is not None:
            by_trait[trait(table)].append(table)
    return [sharing for sharing in by_trait.values() if len(sharing) > 1]


def _nested(tables: Sequence[Found]) -> list[list[Found]]:
    """Pairs of (outer, inner)."""
    by_directory = {table.directory: table for table in tables}
    pairs: list[list[Found]] = []
    for table in tables:
        segments = table.directory.split("/")
        outer = ("/".join(segments[:length]) for length in range(len(segments) - 1, 0, -1))
        pairs.extend([by_directory[directory], table] for directory in outer if directory in by_directory)
    return pairs


def _silent(done: int, total: int, unit: str) -> None:
    """No one listens."""
