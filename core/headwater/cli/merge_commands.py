"""``headwater catalog merge`` and ``headwater catalog transplant``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from headwater.catalogs import CommitMeta, ContentKey, KeyMerge, MergeConflictError, MergeMode, MergeOptions, MergeResult
from headwater.cli.cli_session import CliSession, opened_catalog
from headwater.cli.command_options import ID, KEY, REF, person, prints
from headwater.cli.content_views import MERGE
from headwater.errors import ConflictError
from headwater.store import ObjectId

F = TypeVar("F", bound=Callable[..., Any])


def _read_modes(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[ContentKey, KeyMerge]:
    modes = {}
    for text in values:
        key, _, mode = text.rpartition("=")
        if not key or mode not in MergeMode.__members__:
            raise click.BadParameter(f"{text!r} is not of the form KEY={'|'.join(MergeMode)}", ctx, parameter)
        modes[KEY.convert(key, parameter, ctx)] = KeyMerge(mode=MergeMode(mode))
    return modes


def _read_many(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    properties: dict[str, tuple[str, ...]] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", ctx, parameter)
        properties[name] = (*properties.get(name, ()), value)
    return properties


def _asking(*, author: str) -> Callable[[F], F]:
    """The options that both commands have.

    author        what the option of that name is for
    """

    def decorate(function: F) -> F:
        for option in reversed(_options(author)):
            function = option(function)
        return function

    return decorate


def _options(author: str) -> Sequence[Callable[[F], F]]:
    return (
        click.option("--into", metavar="BRANCH", help="The branch that changes; default is the default branch."),
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
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("source", metavar="SOURCE", type=REF)
@_asking(author="Who made the merge; may be repeated. Default is the user.")
@click.option(
    "--base", metavar="COMMIT", type=ID, help="Count the source's changes from here; default is the nearest common ancestor."
)
@prints(MERGE)
@click.pass_obj
def merge_command(
    session: CliSession,
    /,
    realm_id: str,
    name: str,
    source: str,
    into: str | None,
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
    with opened_catalog(session, realm_id, name) as opened:
        meta = _meta(**{**words, "authors": words["authors"] or (person(),)})
        _show(session, lambda: opened.merge(source, into, expected=expected, meta=meta, options=options))


@click.command(name="transplant")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("source", metavar="SOURCE", type=REF)
@click.argument("commits", metavar="COMMIT...", type=ID, nargs=-1, required=True)
@_asking(author="Who made the commit; may be repeated, and needs a single COMMIT. Default: each keeps its own.")
@prints(MERGE)
@click.pass_obj
def transplant_command(
    session: CliSession,
    /,
    realm_id: str,
    name: str,
    source: str,
    commits: tuple[ObjectId, ...],
    into: str | None,
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
    with opened_catalog(session, realm_id, name) as opened:
        _show(session, lambda: opened.transplant(source, commits, into, expected=expected, meta=meta, options=options))


def _meta(message: str, authors: Sequence[str], signed: Sequence[str], properties: dict[str, tuple[str, ...]]) -> CommitMeta:
    return CommitMeta(message=message, authors=tuple(authors), signed_off_by=tuple(signed), properties=properties)


def _show(session: CliSession, act: Callable[[], MergeResult]) -> None:
    """Run a merge or transplant, and show the outcome of each key, or the conflicts."""
    try:
        done = act()
    except MergeConflictError as refused:
        session.show(MERGE, refused.result)
        raise _advice(refused.details) from None
    session.show(MERGE, done)
    if not any(step.keys for step in done.steps):
        session.say("already up to date: the branch has all of it")


def _advice(conflicts: tuple[object, ...]) -> ConflictError:
    noun = "conflict" if len(conflicts) == 1 else "conflicts"
    return ConflictError(
        f"nothing was written: {len(conflicts)} {noun}; --key KEY=FORCE takes the source's, --key KEY=DROP leaves the branch's",
        details=conflicts,
    )
