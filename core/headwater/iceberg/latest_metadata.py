"""Chooses the latest metadata file of a directory by stated evidence, or refuses. It never guesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwater.iceberg.layout import HINT_NAME, FileInfo, MetadataName, NameScheme, parse_metadata_name
from headwater.iceberg.metadata_json import logged_files
from headwater.iceberg.survey_outcomes import ChoiceRule, QuarantineCode, RejectedTable

_HINT_DIGITS = 255
"""As many as a file's name may have: some writers number by nanoseconds."""


@dataclass(frozen=True, slots=True)
class MetadataChoice:
    """The latest metadata file, the rule that decided, and the evidence."""

    file: FileInfo
    rule: ChoiceRule
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetadataContest:
    """Names alone do not decide: the caller reads contenders and rivals, and calls ``settle_by_log``.

    contenders    files of which one is the latest
    favourite     the contender that the names suggest, if they do
    rivals        files written after the favourite though their number is lower: a sign of a second table in the folder
    """

    contenders: tuple[FileInfo, ...]
    evidence: tuple[str, ...]
    favourite: MetadataChoice | None = None
    rivals: tuple[FileInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataLineage:
    """The lineage of one metadata file: its table or view, the names of the files before it, and its own time of writing.

    The time is in milliseconds since 1970; 0: the file does not state it.
    """

    uuid: str | None
    ancestors: frozenset[str]
    updated: int = 0


@dataclass(frozen=True, slots=True)
class _Candidate:
    file: FileInfo
    name: MetadataName


@dataclass(frozen=True, slots=True)
class _Hint:
    """The content of ``version-hint.text``: a number or a stem, and the candidates that match it."""

    text: str
    number: int
    matches: tuple[_Candidate, ...]


def narrow_by_name(files: Sequence[FileInfo], hint: bytes | None = None) -> MetadataChoice | MetadataContest:
    """Choose the latest of a directory's metadata files as far as names and the version hint decide.

    The highest number wins within a naming scheme. A version hint confirms it; one that is behind is followed forward as long
    as the next number exists, as Hadoop tables are read. Everything else is a contest: equal numbers, two schemes, a hint with
    a gap after it, files without numbers, and a lower number that was written last.

    files         at least one, all with names of table metadata
    hint          content of ``version-hint.text``
    raises        RejectedTable with HINT_AHEAD when the hint names a later version than there is: the newest metadata is missing
    """
    candidates = [_Candidate(file, name) for file in files if (name := parse_metadata_name(file.name))]
    evidence = [f"{len(candidates)} metadata file{'s' if len(candidates) != 1 else ''}"]
    tops = _tops(candidates, evidence)
    hinted = _read_hint(hint, candidates, evidence)
    if hinted and not hinted.matches:
        _refuse_ahead(hinted, tops)
        evidence.append(f"{HINT_NAME} says {hinted.text}, which is gone: passed over")
        hinted = None
    contest = _by_hint(hinted, tops, candidates, evidence) if hinted else _by_number(tops, candidates, evidence)
    rivals = _rivals(contest.favourite, candidates) if contest.favourite else ()
    if contest.favourite and not rivals:
        return contest.favourite
    return replace(contest, rivals=rivals)


def settle_by_log(contest: MetadataContest, lineages: Mapping[str, MetadataLineage]) -> MetadataChoice:
    """Choose the latest by the files' own metadata logs: the one contender whose log holds all the others.

    lineages      by path, for every contender; rivals that could not be read may be absent
    raises        RejectedTable with AMBIGUOUS or TWO_TABLES
    """
    choice = contest.favourite or _by_log(contest, lineages)
    own = lineages.get(choice.file.path)
    evidence = list(choice.evidence)
    for rival in contest.rivals:
        other = lineages.get(rival.path)
        if (
            own and other and own.uuid != other.uuid and other.uuid is not None
        ):  # a file without a uuid is from before the table had one
            raise RejectedTable(
                QuarantineCode.TWO_TABLES,
                f"{choice.file.path} has the highest number, but {rival.name} was written later and is of another table"
                f" ({other.uuid}, not {own.uuid}): move the files of the table that is gone elsewhere",
            )
        evidence.append(f"{rival.name} was written later, but is of the same table and has a lower number")
    for path, other in lineages.items():
        if own and other.updated > own.updated:
            evidence.append(f"{path.rpartition('/')[2]} has a later last-updated-ms")
    return replace(choice, evidence=tuple(evidence))


def undated_files(choice: MetadataChoice, files: Sequence[FileInfo]) -> tuple[FileInfo, ...]:
    """The files without a time that shows that they were written before the choice. Most tables have none."""
    written = choice.file.mtime
    return tuple(file for file in files if (not 0 < file.mtime < written) and file != choice.file)


def possible_strangers(choice: MetadataChoice, own: MetadataLineage, files: Sequence[FileInfo]) -> tuple[FileInfo, ...]:
    """Undated files that may belong to another table created or dropped in the same folder.

    These are the files of the choice's naming scheme that its metadata log should hold and does not; and where the log does not
    reach back, those that share a number.

    files         all of the directory
    """
    doubtful = [file for file in undated_files(choice, files) if file.name not in own.ancestors]
    if not doubtful:
        return ()  # then no name needs parsing
    chosen = parse_metadata_name(choice.file.name)
    names = {
        file: name for file in files if (name := parse_metadata_name(file.name)) and chosen and name.scheme is chosen.scheme
    }
    sharing = Counter(name.number for name in names.values())
    logged = (parse_metadata_name(name) for name in own.ancestors)
    beginning = min((name.number for name in logged if name and chosen and name.scheme is chosen.scheme), default=None)
    return tuple(
        file
        for file in doubtful
        if file in names
        if (number := names[file].number) >= 0
        if sharing[number] > 1 or (beginning is not None and number >= beginning)
    )


def check_one_table(choice: MetadataChoice, own: MetadataLineage, stranger: FileInfo, other: MetadataLineage) -> None:
    """Check that a stranger belongs to this table.

    raises        RejectedTable with TWO_TABLES when it belongs to another: no evidence shows which one is gone
    """
    if own.uuid is not None and other.uuid is not None and own.uuid != other.uuid:
        raise RejectedTable(
            QuarantineCode.TWO_TABLES,
            f"{choice.file.path} could be the latest, but {stranger.name} is of another table ({other.uuid}, not {own.uuid}), and"
            " no time tells which came later: move the files of the table that is gone elsewhere",
        )


def lineage_of(document: Mapping[str, Any]) -> MetadataLineage:
    """The evidence that separates files of two tables, and orders those of one; malformed values count as absent."""
    uuid = document.get("table-uuid") or document.get("view-uuid")
    names = frozenset(path.rpartition("/")[2] for path in logged_files(document))
    updated = document.get("last-updated-ms")
    return MetadataLineage(uuid.lower() if isinstance(uuid, str) else None, names, updated if isinstance(updated, int) else 0)


def _tops(candidates: Sequence[_Candidate], evidence: list[str]) -> list[_Candidate]:
    """The files with the highest number of each scheme; files without number count only if there are no others."""
    numbered = [candidate for candidate in candidates if candidate.name.number >= 0]
    if not numbered:
        return list(candidates)
    if len(numbered) < len(candidates):
        evidence.append(f"{len(candidates) - len(numbered)} without a number: passed over as never committed")
    highest: dict[NameScheme, int] = {}
    for candidate in numbered:
        highest[candidate.name.scheme] = max(highest.get(candidate.name.scheme, -1), candidate.name.number)
    return [candidate for candidate in numbered if candidate.name.number == highest[candidate.name.scheme]]


def _read_hint(hint: bytes | None, candidates: Sequence[_Candidate], evidence: list[str]) -> _Hint | None:
    if hint is None:
        return None
    text = hint.decode("utf-8-sig", "replace").strip()
    if text.isascii() and text.isdigit() and len(text) <= _HINT_DIGITS:
        number = int(text)
        matches = [candidate for candidate in candidates if candidate.name.number == number]
        return _Hint(text, number, tuple(candidate for candidate in matches if _is_hadoop(candidate)) or tuple(matches))
    stem = parse_metadata_name(text) or parse_metadata_name(f"{text}.metadata.json")
    if stem is None or not text:
        evidence.append(f"{HINT_NAME} says {text[:40]!r}, which is no version: passed over")
        return None
    return _Hint(text, stem.number, tuple(candidate for candidate in candidates if candidate.name.stem == stem.stem))


def _refuse_ahead(hint: _Hint, tops: Sequence[_Candidate]) -> None:
    highest = max(candidate.name.number for candidate in tops)
    if hint.number > highest:
        newest = max(tops, key=lambda candidate: candidate.name.number).file
        raise RejectedTable(
            QuarantineCode.HINT_AHEAD,
            f"{HINT_NAME} says {hint.text}, but the latest file is {newest.path}: restore the missing one, or correct the hint",
        )


def _by_hint(hint: _Hint, tops: Sequence[_Candidate], candidates: Sequence[_Candidate], evidence: list[str]) -> MetadataContest:
    evidence.append(f"{HINT_NAME} says {hint.text}")
    rivals_of_hint = [top for top in tops if top not in hint.matches]
    if not rivals_of_hint or (len(hint.matches) == 1 and all(_is_tie(top, hint.matches[0]) for top in rivals_of_hint)):
        return _contest(hint.matches, ChoiceRule.VERSION_HINT, evidence)
    if len(tops) == 1 and _rolls_forward(hint, tops[0], candidates):
        evidence.append(f"every version from there to {tops[0].name.number} is there")
        return _contest(tops, ChoiceRule.ROLLED_FORWARD, evidence)
    evidence.append(f"the hint and {', '.join(top.file.name for top in rivals_of_hint)} disagree")
    return MetadataContest(tuple(dict.fromkeys(candidate.file for candidate in (*hint.matches, *tops))), tuple(evidence))


def _by_number(tops: Sequence[_Candidate], candidates: Sequence[_Candidate], evidence: list[str]) -> MetadataContest:
    return _contest(tops, ChoiceRule.ONLY_FILE if len(candidates) == 1 else ChoiceRule.HIGHEST_NUMBER, evidence)


def _contest(contenders: Sequence[_Candidate], rule: ChoiceRule, evidence: list[str]) -> MetadataContest:
    files = tuple(candidate.file for candidate in contenders)
    favourite = MetadataChoice(files[0], rule, tuple(evidence)) if len(files) == 1 else None
    return MetadataContest(files, tuple(evidence), favourite)


def _rolls_forward(hint: _Hint, top: _Candidate, candidates: Sequence[_Candidate]) -> bool:
    numbers = {candidate.name.number for candidate in candidates if _is_hadoop(candidate)}
    return _is_hadoop(top) and numbers.issuperset(range(hint.number, top.name.number + 1))


def _rivals(favourite: MetadataChoice, candidates: Sequence[_Candidate]) -> tuple[FileInfo, ...]:
    """The file written last, if it is not the favourite: a table recreated in its old folder starts from low numbers."""
    numbered = [candidate.file for candidate in candidates if candidate.name.number >= 0]
    latest = max(numbered, key=lambda file: file.mtime, default=favourite.file)
    return (latest,) if latest.mtime > favourite.file.mtime > 0 else ()


def _by_log(contest: MetadataContest, lineages: Mapping[str, MetadataLineage]) -> MetadataChoice:
    contenders = contest.contenders
    heads = [
        file
        for file in contenders
        if not any(file.name in lineages[other.path].ancestors for other in contenders if other != file)
    ]
    if len(heads) != 1:
        names = ", ".join(file.name for file in heads or contenders)
        raise RejectedTable(
            QuarantineCode.AMBIGUOUS,
            f"{contenders[0].path.rpartition('/')[0]}: {names} could each be the latest ({'; '.join(contest.evidence)}), and"
            " no metadata log decides: if a file was never committed, move it to another folder",
        )
    return MetadataChoice(
        heads[0], ChoiceRule.METADATA_LOG, (*contest.evidence, f"its log holds {len(contenders) - 1} other contender(s)")
    )


def _is_hadoop(candidate: _Candidate) -> bool:
    return candidate.name.scheme is NameScheme.HADOOP


def _is_tie(one: _Candidate, other: _Candidate) -> bool:
    return one.name.scheme is other.name.scheme and one.name.number == other.name.number
