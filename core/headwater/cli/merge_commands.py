"""``headwater catalog merge`` and ``headwater catalog transplant``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Literal, TypeVar

import click

from headwater.catalogs import (
    Catalog,
    CommitMeta,
    Conflict,
    ContentKey,
    KeyComparison,
    KeyMerge,
    KeySide,
    MergeConflictError,
    MergeMode,
    MergeOptions,
    MergeOutcome,
    MergeResult,
)
from headwater.cli.cli_session import CliSession, identifier, opened_catalog
from headwater.cli.command_address import Address, catalog_branch_argument
from headwater.cli.command_options import ID, KEY, REF, live_names, read_pairs
from headwater.cli.comparison_text import SIDE_FIELDS, WIDTH, comparison_lines, side_data, side_lines, sums_text
from headwater.console import ResultView, ViewField, count_text, list_of, option_group, prints, text_field
from headwater.errors import ConflictError
from headwater.store import ObjectId
from headwater.text_tables import result_lines

F = TypeVar("F", bound=Callable[..., Any])


SHOWN_KEYS = 100
"""Keys of which both sides are told, at most."""


@dataclass(frozen=True, slots=True)
class MergeReport:
    """A merge with what both sides had done to the keys that somebody has to decide, or has decided, about.

    omitted       keys of that kind whose sides are left out
    """

    result: MergeResult
    is_dry_run: bool
    sides: tuple[KeyComparison, ...] = ()
    omitted: int = 0

    def dropped_side(self, key: ContentKey) -> Literal["target", "source"] | None:
        """The side whose changes of a key are not in the result: the target's under FORCE, the source's under DROP."""
        modes = {merged.mode for merged in self.result.merged_keys if merged.key == key}
        return "target" if MergeMode.FORCE in modes else "source" if MergeMode.DROP in modes else None


def _sides(report: MergeReport) -> list[dict[str, Any]]:
    return [
        {
            "key": str(comparison.key),
            "dropped": report.dropped_side(comparison.key),
            "target": side_data(comparison.into),
            "source": side_data(comparison.source),
        }
        for comparison in report.sides
    ]


def _keys(result: MergeResult) -> list[dict[str, str | None]]:
    return [
        {
            "key": str(merged.key),
            "mode": merged.mode.value,
            "outcome": merged.outcome.value,
            "source": identifier(step.source),
            "commit": identifier(step.commit),
        }
        for step in result.steps
        for merged in step.keys
    ]


def _conflict(conflict: Conflict) -> dict[str, str | None]:
    return {"kind": conflict.kind.value, "key": text_field(conflict.key), "message": conflict.message}


MERGE: ResultView[MergeReport] = ResultView(
    "merge",
    "merges",
    (
        ViewField("applied", "whether a commit was made", "result.is_applied"),
        ViewField("commits", "those that were made, oldest first", "result.commits", form=list_of(identifier)),
        ViewField("onto", "the head that it was done on, or would be; null: there was none", "result.onto", form=identifier),
        ViewField("head", "the head of the branch afterwards", "result.head", form=identifier),
        ViewField(
            "base", "the commit that changes were counted from; null: from the beginning", "result.base", form=identifier
        ),
        ViewField(
            "otherBases",
            "common ancestors as near as that, after merges back and forth",
            "result.other_bases",
            form=list_of(identifier),
        ),
        ViewField(
            "lost",
            "collected commits that history could not be followed beyond; a nearer base may have been there",
            "result.lost",
            form=list_of(identifier),
        ),
        ViewField(
            "keys",
            "what became of each key that the source changed",
            lambda report: _keys(report.result),
            inside={
                "[].mode": "NORMAL, FORCE or DROP",
                "[].outcome": "PUT, REMOVED, RESOLVED, SAME (both held the same), KEPT (both made this namespace), DROPPED or CONFLICT",
                "[].source": "the commit of the source that it comes from",
                "[].commit": "the commit that was made; null: none",
            },
        ),
        ViewField(
            "conflicts",
            "what stands against it; nothing was written then",
            "result.conflicts",
            form=list_of(_conflict),
            inside={"[].kind": "such as VALUE_DIFFERS"},
        ),
        ViewField(
            "undone",
            "keys that were merged before, and that a restoration of the branch took back; each is a conflict, unless its mode is FORCE"
            " or DROP",
            lambda report: list(map(str, report.result.undone)),
        ),
        ViewField(
            "undoneBase",
            "the base from which these count as changes of the source again; null: there are none, or from the beginning",
            "result.undone_base",
            form=identifier,
        ),
        ViewField(
            "sides",
            f"both sides of each key that conflicts, or that FORCE or DROP decided, of the first {SHOWN_KEYS}",
            _sides,
            inside={
                "[].dropped": "target or source: whose changes are not in the result; null: it conflicts",
                **{f"[].target{way}": about for way, about in SIDE_FIELDS.items()},
                "[].source": "the same of the source",
            },
        ),
        ViewField("sidesOmitted", "further such keys, whose sides are not told", "omitted"),
    ),
    named_by="commits",
)


def _read_modes(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[ContentKey, KeyMerge]:
    modes = {}
    for text in values:
        key, _, mode = text.rpartition("=")
        if not key or mode.upper() not in MergeMode.__members__:
            raise click.BadParameter(f"{text!r} is not of the form KEY={'|'.join(MergeMode)}", ctx, parameter)
        modes[KEY.convert(key, parameter, ctx)] = KeyMerge(mode=MergeMode(mode.upper()))
    return modes


def _read_many(ctx: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    properties: dict[str, tuple[str, ...]] = {}
    for name, value in read_pairs(ctx, parameter, texts):
        properties[name] = (*properties.get(name, ()), value)
    return properties


def _merge_options(*, author: str) -> Callable[[F], F]:
    """The options that both commands have. ``author`` says what the option of that name is for."""
    return option_group(
        click.option("--expected", metavar="COMMIT", type=ID, help="A commit that has to be in the history of that branch."),
        click.option(
            "--mode",
            type=click.Choice(list(MergeMode), case_sensitive=False),
            default=MergeMode.NORMAL,
            show_default=True,
            help="NORMAL: a key that changed on both sides is a conflict. FORCE: take the source's. DROP: leave the branch's.",
        ),
        click.option(
            "--key",
            "keys",
            metavar="KEY=MODE",
            multiple=True,
            callback=_read_modes,
            help="Another mode for one key, such as sales.orders=FORCE; may be repeated.",
        ),
        click.option("--message", metavar="TEXT", default="", help="Why; default says what was done."),
        click.option("--author", "authors", metavar="NAME", multiple=True, help=author),
        click.option("--signed-off-by", "signed", metavar="NAME", multiple=True, help="Who signed it off; may be repeated."),
        click.option(
            "--property",
            "properties",
            metavar="NAME=VALUE",
            multiple=True,
            callback=_read_many,
            help="A property of the commit; may be repeated, also with the same name.",
        ),
        click.option("--dry-run", is_flag=True, help="Show what would happen, and write nothing."),
    )


@click.command(name="merge")
@catalog_branch_argument
@click.argument("source", metavar="SOURCE", type=REF, shell_complete=live_names("complete_refs"))
@_merge_options(author="Who made the merge; may be repeated. Default is HEADWATER_AUTHOR, or the context's, or the user.")
@click.option(
    "--base", metavar="COMMIT", type=ID, help="Count the source's changes from here; default is the nearest common ancestor."
)
@prints(MERGE)
def merge_command(
    session: CliSession,
    /,
    address: Address,
    source: str,
    expected: ObjectId | None,
    mode: MergeMode,
    keys: dict[ContentKey, KeyMerge],
    base: ObjectId | None,
    dry_run: bool,
    **words: Any,
) -> None:
    """Merge the changes of SOURCE (a branch, a tag or a commit) into a branch, as one commit.

    Exit code 6 if keys conflict: then nothing is written, and all of them are shown. What was merged before and taken back by a
    restoration is such a conflict: --key KEY=FORCE merges it again.
    """
    options = MergeOptions(mode=mode, keys=keys, base=base, dry_run=dry_run)
    with opened_catalog(session, address) as opened:
        meta = _meta(**{**words, "authors": words["authors"] or (session.author(),)})
        names = (address.ref or opened.definition.default_branch, source)
        _show(
            session,
            opened,
            names,
            lambda: opened.merge(source, address.ref, expected=expected, meta=meta, options=options),
            is_dry_run=dry_run,
        )


@click.command(name="transplant")
@catalog_branch_argument
@click.argument("source", metavar="SOURCE", type=REF, shell_complete=live_names("complete_refs"))
@click.argument("commits", metavar="COMMIT...", type=ID, nargs=-1, required=True)
@_merge_options(author="Who made the commit; may be repeated, and needs a single COMMIT. Default: each keeps its own.")
@prints(MERGE)
def transplant_command(
    session: CliSession,
    /,
    address: Address,
    source: str,
    commits: tuple[ObjectId, ...],
    expected: ObjectId | None,
    mode: MergeMode,
    keys: dict[ContentKey, KeyMerge],
    dry_run: bool,
    **words: Any,
) -> None:
    """Cherry-pick commits of SOURCE onto a branch, oldest first and without gaps: all of them or none.

    Each keeps its own message and authors; one alone may be given others. Exit code 6 if keys conflict.
    """
    options = MergeOptions(mode=mode, keys=keys, dry_run=dry_run)
    meta = _meta(**words) if any(words.values()) else None
    with opened_catalog(session, address) as opened:
        names = (address.ref or opened.definition.default_branch, source)
        _show(
            session,
            opened,
            names,
            lambda: opened.transplant(source, commits, address.ref, expected=expected, meta=meta, options=options),
            is_dry_run=dry_run,
        )


def _meta(message: str, authors: Sequence[str], signed: Sequence[str], properties: dict[str, tuple[str, ...]]) -> CommitMeta:
    return CommitMeta(message=message, authors=tuple(authors), signed_off_by=tuple(signed), properties=properties)


def _show(
    session: CliSession, opened: Catalog, names: tuple[str, str], act: Callable[[], MergeResult], *, is_dry_run: bool
) -> None:
    """Run a merge or transplant, and show the outcome of each key, or the conflicts.

    names         of target and source, for people
    """
    try:
        result = act()
    except MergeConflictError as refused:
        report = _report(opened, refused.result, is_dry_run=is_dry_run)
        if session.is_text:
            session.print_result(None, lambda: list(_conflict_lines(report, names)))
        else:
            session.show(MERGE, report)
        raise ConflictError(
            f"nothing was written: {count_text(len(refused.details), 'conflict')};"
            f" --key KEY=FORCE takes the source's, --key KEY=DROP leaves the branch's{_undone_hint(refused.result, names)}",
            details=refused.details,
        ) from None
    report = _report(opened, result, is_dry_run=is_dry_run)
    if not session.is_text:
        session.show(MERGE, report)
        return
    told = {name: value for name, value in MERGE.data(report).items() if name not in ("sides", "sidesOmitted")}
    is_whole = is_dry_run or session.verbose  # what would become of each key is what a dry run was asked for
    lines = result_lines(told, session.layout) if is_whole else [_sentence(result)]
    session.print_result(None, lambda: [*lines, *_dropped_lines(report, names)])
    if is_whole and not any(step.keys for step in result.steps):
        session.say(_sentence(result))


def _undone_hint(result: MergeResult, names: tuple[str, str]) -> str:
    """How to merge again what a restoration took back, as a command's option."""
    if result.undone_base is None:
        return ""
    return (
        f"; --base {identifier(result.undone_base)} merges again all of {names[1]} that a restoration of {names[0]} took back"
    )


def _sentence(result: MergeResult) -> str:
    keys = sum(len(step.keys) for step in result.steps)
    if not keys:
        return "already up to date: the branch has all of it"
    made = count_text(len(result.commits), "commit")
    return f"{count_text(keys, 'key')} merged by {made}; the branch is at {identifier(result.head)}"


def _report(opened: Catalog, result: MergeResult, *, is_dry_run: bool) -> MergeReport:
    """Add both sides of the keys that conflict, or of which something is dropped."""
    decided = [
        merged.key
        for merged in result.merged_keys
        if merged.mode is MergeMode.DROP or (merged.mode is MergeMode.FORCE and merged.outcome is not MergeOutcome.SAME)
    ]
    conflicting = [conflict.key for conflict in result.conflicts if conflict.key is not None]
    keys = list(dict.fromkeys([*conflicting, *(() if conflicting else decided)]))
    sides = opened.compare_merge(result, keys[:SHOWN_KEYS]) if keys else []
    report = MergeReport(result, is_dry_run, tuple(sides), max(len(keys) - SHOWN_KEYS, 0))
    if conflicting:
        return report
    losing = [comparison for comparison in sides if _dropped(report, comparison).is_changed]
    return replace(report, sides=tuple(losing))


def _dropped(report: MergeReport, comparison: KeyComparison) -> KeySide:
    return comparison.into if report.dropped_side(comparison.key) == "target" else comparison.source


def _conflict_lines(report: MergeReport, names: tuple[str, str]) -> Iterator[str]:
    """The conflicts, each with what both sides did since their common ancestor."""
    sides = {comparison.key: comparison for comparison in report.sides}
    base = "no common ancestor" if report.result.base is None else f"common ancestor {identifier(report.result.base)}"
    yield f"{names[1]} into {names[0]}: {count_text(len(report.result.conflicts), 'conflict')}, {base}"
    for conflict in report.result.conflicts:
        yield ""
        yield f"{conflict.key or names[0]}: {conflict.kind.value}"
        yield from wrap(conflict.message, WIDTH, initial_indent="  ", subsequent_indent="  ")
        if conflict.key in sides:
            yield from comparison_lines(sides.pop(conflict.key), names)
    yield from _omitted_lines(report)


def _dropped_lines(report: MergeReport, names: tuple[str, str]) -> Iterator[str]:
    """What of either side is not in the result, because somebody decided so."""
    verb = "would drop" if report.is_dry_run else "drops"
    for comparison in report.sides:
        side, dropped = report.dropped_side(comparison.key), _dropped(report, comparison)
        name, mode = (names[0], MergeMode.FORCE) if side == "target" else (names[1], MergeMode.DROP)
        yield ""
        yield f"{comparison.key}: {mode} {verb} {count_text(dropped.commit_count, 'commit')} of {name}{sums_text(dropped)}"
        yield from list(side_lines(name, dropped))[1:]
    if report.sides:
        yield ""
        yield "What is dropped stays readable in its commits until the history of its branch is collected."
    yield from _omitted_lines(report)


def _omitted_lines(report: MergeReport) -> Iterator[str]:
    if report.omitted:
        yield f"{report.omitted} more keys are not told: merge some of them first, with --key KEY=MODE"
