"""``headwater catalog tables``, ``content``, ``find``, ``log``, ``history`` and ``diff``: what a catalog holds, and what it held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import click

from headwater.catalogs import Catalog, CatalogLog, ContentKey, ContentType, KeyHistory, LogFilter, Namespace
from headwater.cli.cli_session import CliSession, opened_catalog
from headwater.cli.command_options import END_TIME, KEY, REF, TIME, prints
from headwater.cli.content_views import CHANGE, COMMIT, CONTENT, ENTRY, KEY_CHANGE, ContentRow
from headwater.commits import LogEnd
from headwater.errors import NotFoundError, RefusedError
from headwater.store import id_text

F = TypeVar("F", bound=Callable[..., Any])


_REF = "Branch, tag, commit, or a way back such as main~2; default is the default branch."


def ref_option(function: F) -> F:
    return click.option("--ref", metavar="REF", type=REF, help=_REF)(function)


def range_options(function: F) -> F:
    """``--prefix``, ``--from``, ``--to``, ``--limit`` and ``--after``: which keys, and how many at a time."""
    options = (
        click.option("--prefix", metavar="KEY", type=KEY, help="Only what stands below this namespace, such as sales.eu."),
        click.option("--from", "start", metavar="KEY", type=KEY, help="Only this key and those after it."),
        click.option("--to", "end", metavar="KEY", type=KEY, help="Only keys before this one."),
        click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), help="At most so many; default is all."),
        click.option(
            "--after", "token", metavar="TOKEN", help="Continue a listing that printed this token, in the same state."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def within_option(function: F) -> F:
    return click.option(
        "--within",
        metavar="COUNT",
        type=click.IntRange(min=1),
        default=10_000,
        show_default=True,
        help="Look at so many commits at most.",
    )(function)


@click.command(name="tables")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@ref_option
@range_options
@click.option("--reverse", is_flag=True, help="Begin with the last key.")
@prints(ENTRY, many=True)
@click.pass_obj
def tables_command(
    session: CliSession,
    /,
    realm_id: str,
    name: str,
    ref: str | None,
    limit: int | None,
    token: str | None,
    **keys: Any,
) -> None:
    """List the tables, views, namespaces and functions of a catalog, by key."""
    with opened_catalog(session, realm_id, name) as opened:
        page = opened.entries(ref, limit=limit, page_token=token, **keys)
        session.show_all(ENTRY, page.entries)
        _tell_more(session, page.next_token)
        if not page.entries and not token and keys["prefix"] is not None and keys["start"] is keys["end"] is None:
            session.warn(_why_empty(opened, ref, keys["prefix"]))


@click.command(name="content")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("keys", metavar="KEY...", type=KEY, nargs=-1, required=True)
@ref_option
@click.option(
    "--metadata", is_flag=True, help="Print the metadata document of an Iceberg table or view, rebuilt with equal values."
)
@prints(CONTENT, many=True)
@click.pass_obj
def content_command(
    session: CliSession, realm_id: str, name: str, keys: tuple[ContentKey, ...], ref: str | None, metadata: bool
) -> None:
    """Show all that is known of some tables, views, namespaces or functions."""
    with opened_catalog(session, realm_id, name) as opened:
        found = opened.get_contents(ref, keys)
        absent = [key for key in keys if key not in found]
        if metadata and len(keys) > 1:
            raise RefusedError("--metadata prints one document: give one key")
        if metadata and not absent:
            document = opened.metadata(ref, keys[0])
            if document is None:
                raise NotFoundError(
                    f"no metadata document is stored with {keys[0]} of {_where(opened, ref)}: only where it lies, see metadataLocation"
                )
            click.echo(document.decode())
            return
        if not metadata:
            _show_contents(session, [ContentRow(key, one) for key, one in found.items()])
        _check_none(absent, opened, ref)


@click.command(name="find")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("content_ids", metavar="CONTENT_ID...", type=click.UUID, nargs=-1, required=True)
@ref_option
@prints(ENTRY, many=True)
@click.pass_obj
def find_content_command(session: CliSession, realm_id: str, name: str, content_ids: tuple[UUID, ...], ref: str | None) -> None:
    """Show the keys of contents by their ids, which survive renames."""
    with opened_catalog(session, realm_id, name) as opened:
        found = opened.find_by_id(ref, content_ids)
        session.show_all(ENTRY, list(found.values()))
        _check_none([content_id for content_id in content_ids if content_id not in found], opened, ref)


@click.command(name="log")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@ref_option
@click.option("--key", metavar="KEY", type=KEY, help="Only commits that changed this key, such as sales.orders.")
@click.option("--prefix", metavar="KEY", type=KEY, help="Only commits that changed something below this namespace.")
@click.option("--action", type=click.Choice(["PUT", "DELETE"]), help="Only commits that did this to a key.")
@click.option(
    "--type",
    "content_type",
    type=click.Choice([kind.name for kind in ContentType]),
    help="Only commits that put or deleted content of this type.",
)
@click.option("--author", metavar="NAME", help="Only commits of this author.")
@click.option("--since", type=TIME, metavar="TIME", help="Only commits made then or later; 90m is as long ago.")
@click.option("--until", type=END_TIME, metavar="TIME", help="Only commits made then or earlier.")
@click.option("--message", metavar="PATTERN", help="Only commits whose message matches this regular expression somewhere.")
@click.option("--oldest-first", is_flag=True, help="Begin where history begins, or was cut.")
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@within_option
@prints(COMMIT, many=True)
@click.pass_obj
def commit_log_command(
    session: CliSession,
    /,
    realm_id: str,
    name: str,
    ref: str | None,
    oldest_first: bool,
    limit: int,
    within: int,
    content_type: str | None,
    **filters: Any,
) -> None:
    """Show the commits that led to the present content, newest first.

    Of several filters a commit has to pass all; those of keys, actions and types are about one and the same change.
    """
    where = LogFilter(content_type=None if content_type is None else ContentType[content_type], **filters)
    with opened_catalog(session, realm_id, name) as opened:
        found = opened.log(ref, where=where, oldest_first=oldest_first, limit=limit, within=within)
        session.show_all(COMMIT, list(found))
        _tell_end(session, found, limit, within)


@click.command(name="history")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("key", metavar="KEY", type=KEY)
@ref_option
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@within_option
@prints(KEY_CHANGE, many=True)
@click.pass_obj
def content_history_command(
    session: CliSession, realm_id: str, name: str, key: ContentKey, ref: str | None, limit: int, within: int
) -> None:
    """Show what happened to one table, view, namespace or function, newest first, through its renames back to its creation."""
    with opened_catalog(session, realm_id, name) as opened:
        found = opened.history(key, ref, within=within)
        changes = list(islice(found, limit))
        if not changes and found.end is LogEnd.BEGINNING:
            raise NotFoundError(f"{key} never stood in {_where(opened, ref)}")
        session.show_all(KEY_CHANGE, changes)
        _tell_end(session, found, limit, within)


@click.command(name="diff")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("before", metavar="BEFORE", type=REF)
@click.argument("after", metavar="AFTER", type=REF)
@range_options
@prints(CHANGE, many=True)
@click.pass_obj
def diff_command(
    session: CliSession,
    /,
    realm_id: str,
    name: str,
    before: str,
    after: str,
    limit: int | None,
    token: str | None,
    **keys: Any,
) -> None:
    """Show what differs between two references, each a branch, a tag, a commit, or a way back such as main~2.

    What was renamed is shown under both keys.
    """
    with opened_catalog(session, realm_id, name) as opened:
        page = opened.diff(before, after, limit=limit, page_token=token, **keys)
        session.show_all(CHANGE, page.changes)
        _tell_more(session, page.next_token)


def _show_contents(session: CliSession, found: Sequence[ContentRow]) -> None:
    """Print contents: as a list in JSON and YAML, even of one; as lines in a table."""
    if session.output == "table" and len(found) == 1:
        session.show(CONTENT, found[0])
    else:
        session.show_all(CONTENT, found)


def _where(opened: Catalog, ref: str | None) -> str:
    return f"{opened.label} at {ref or opened.definition.default_branch}"


def _check_none(absent: Sequence[object], opened: Catalog, ref: str | None) -> None:
    if absent:
        raise NotFoundError(f"not in {_where(opened, ref)}: {', '.join(map(str, absent))}")


def _why_empty(opened: Catalog, ref: str | None, prefix: ContentKey) -> str:
    """Say why nothing is listed below a key: the namespace is empty, absent, or not a namespace."""
    there = opened.get_content(ref, prefix)
    if there is None:
        return f"there is no namespace {prefix} in {_where(opened, ref)}"
    if isinstance(there, Namespace):
        return f"namespace {prefix} of {_where(opened, ref)} is empty"
    return f"{prefix} of {_where(opened, ref)} is not a namespace: see headwater catalog content"


def _tell_more(session: CliSession, token: str | None) -> None:
    if token is not None:
        session.warn(f"there are more rows: continue with --after {token}")


def _tell_end(session: CliSession, found: CatalogLog | KeyHistory, limit: int, within: int) -> None:
    """Warn when there may be more entries than those shown."""
    if found.end is LogEnd.CUT:
        session.warn("what is older is not there: it was collected, or stayed out of the archive that the realm was made of")
    elif found.end is LogEnd.BOUND and found.last is not None:
        key = f" of {found.key}" if isinstance(found, KeyHistory) else ""
        session.warn(f"looked at {within} commits: with --ref {id_text(found.last)}~1 come those{key} before")
    elif found.end is not LogEnd.BEGINNING and found.end is not LogEnd.UNTIL:
        session.warn(f"there may be more than these {limit}: a higher --limit shows the rest")
