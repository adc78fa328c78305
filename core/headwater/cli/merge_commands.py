"""``headwater catalog merge`` and ``headwater catalog transplant``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from headwater.catalogs import (
    CommitMeta,
    Conflict,
    ContentKey,
    KeyMerge,
    MergeConflictError,
    MergeMode,
    MergeOptions,
    MergeResult,
)
from headwater.cli.cli_session import CliSession, identifier, opened_catalog
from headwater.cli.command_address import Address, catalog_branch_argument
from headwater.cli.command_options import ID, KEY, REF, live_names, read_pairs
from headwater.console import ResultView, ViewField, count_text, list_of, option_group, prints, text_field
from headwater.errors import ConflictError
from headwater.store import ObjectId

F = TypeVar("F", bound=Callable[..., Any])


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


MERGE: ResultView[MergeResult] = ResultView(
    "merge",
    "merges",
    (
        ViewField("applied", "whether a commit was made", "is_applied"),
        ViewField("commits", "those that were made, oldest first", form=list_of(identifier)),
        ViewField("onto", "the head that it was done on, or would be; null: there was none", form=identifier),
        ViewField("head", "the head of the branch afterwards", form=identifier),
        ViewField("base", "the commit that changes were counted from; null: from the beginning", form=identifier),
        ViewField("otherBases", "common ancestors as near as that, after merges back and forth", form=list_of(identifier)),
        ViewField(
            "lost",
            "collected commits that history could not be followed beyond; a nearer base may have been there",
            form=list_of(identifier),
        ),
        ViewField(
            "keys",
            "what became of each key that the source changed",
            _keys,
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
            form=list_of(_conflict),
            inside={"[].kind": "such as VALUE_DIFFERS"},
        ),
    ),
    named_by="commits",
)


def _read_modes(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[ContentKey, KeyMerge]:
    modes = {}
    for text in values:
        key, _, mode = text.rpartition("=")
        if not key or mode not in MergeMode.__members__:
            raise click.BadParameter(f"{text!r} is not of the form KEY={'|'.join(MergeMode)}", ctx, parameter)
        modes[KEY.convert(key, parameter, ctx)] = KeyMerge(mode=MergeMode(mode))
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
            type=click.Choice(list(MergeMode)),
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

    Exit code 6 if keys conflict: then nothing is written, and all of them are shown.
    """
    options = MergeOptions(mode=mode, keys=keys, base=base, dry_run=dry_run)
    with opened_catalog(session, address) as opened:
        meta = _meta(**{**words, "authors": words["authors"] or (session.author(),)})
        _show(session, lambda: opened.merge(source, address.ref, expected=expected, meta=meta, options=options))


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
        _show(session, lambda: opened.transplant(source, commits, address.ref, expected=expected, meta=meta, options=options))


def _meta(message: str, authors: Sequence[str], signed: Sequence[str], properties: dict[str, tuple[str, ...]]) -> CommitMeta:
    return CommitMeta(message=message, authors=tuple(authors), signed_off_by=tuple(signed), properties=properties)


def _show(session: CliSession, act: Callable[[], MergeResult]) -> None:
    """Run a merge or transplant, and show the outcome of each key, or the conflicts."""
    try:
        result = act()
    except MergeConflictError as refused:
        session.show(MERGE, refused.result)
        raise ConflictError(
            f"nothing was written: {count_text(len(refused.details), 'conflict')};"
            " --key KEY=FORCE takes the source's, --key KEY=DROP leaves the branch's",
            details=refused.details,
        ) from None
    if not result.is_applied and any(step.keys for step in result.steps):
        session.show(MERGE, result)  # a dry run: the outcome of each key is what was asked for
        return
    session.show_done(MERGE, result, _sentence(result))


def _sentence(result: MergeResult) -> str:
    keys = sum(len(step.keys) for step in result.steps)
    if not keys:
        return "already up to date: the branch has all of it"
    made = count_text(len(result.commits), "commit")
    return f"{count_text(keys, 'key')} merged by {made}; the branch is at {identifier(result.head)}"
