"""``headwater catalog branch`` and ``headwater catalog tag``: the same commands for both kinds of references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import click

from headwater.catalogs import NamedRef, ReferenceExpression, RefKind
from headwater.cli.cli_session import CliSession, opened_catalog
from headwater.cli.command_address import Address, catalog_argument
from headwater.cli.command_options import ID, REF, filter_option, live_names
from headwater.clock import Micros
from headwater.console import ResultView, ViewField, option_group, prints, time_field
from headwater.errors import RefusedError
from headwater.store import ObjectId

NAMED_REFERENCE: ResultView[NamedRef] = ResultView(
    "branch or tag",
    "tags",  # a catalog always has a branch
    (
        ViewField("kind", "branch or tag", header="KIND"),
        ViewField("name", "unique in its catalog", header="NAME"),
        ViewField("hash", "the commit that it points to; null: none yet", header="COMMIT"),
        ViewField("created", "when it was created", header="CREATED", form=time_field),
    ),
    named_by="name",
)


@dataclass(frozen=True, slots=True)
class DeletedReference:
    """A branch or tag that can be undeleted. From ``held_until`` on a collection may remove it."""

    named: NamedRef
    deleted: Micros
    held_until: Micros


DELETED_REFERENCE: ResultView[DeletedReference] = ResultView(
    "deleted branch or tag",
    "deleted branches or tags",
    (
        ViewField("kind", "branch or tag", "named.kind", "KIND"),
        ViewField("name", "unique in its catalog", "named.name", "NAME"),
        ViewField("hash", "the commit that it pointed to; null: none", "named.hash", "COMMIT"),
        ViewField("created", "when it was created", "named.created", "CREATED", time_field),
        ViewField("deleted", "when it was deleted", header="DELETED", form=time_field),
        ViewField(
            "heldUntil",
            "it can be undeleted until then, and until a collection after that",
            header="HELD UNTIL",
            form=time_field,
        ),
    ),
    named_by="name",
)


branch = click.Group("branch", help="List, create, move and delete branches.")
tag = click.Group("tag", help="List, create and delete tags.")
_GROUPS = {RefKind.BRANCH: branch, RefKind.TAG: tag}
_PLURALS = {RefKind.BRANCH: "branches", RefKind.TAG: "tags"}
_SEEN = {RefKind.BRANCH: "head that you saw", RefKind.TAG: "commit that you saw it at"}
_Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def _for_both(name: str, *options: Callable[[RefKind], _Decorator], many: bool = False) -> _Decorator:
    """Add a command to both groups. Its function gets the kind first, and its docstring names it as ``{kind}`` or ``{plural}``."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        for kind, group in _GROUPS.items():
            command = prints(NAMED_REFERENCE, many=many)(partial(function, kind))
            command = option_group(catalog_argument, *(option(kind) for option in options))(command)
            group.command(name=name, help=(function.__doc__ or "").format(kind=kind, plural=_PLURALS[kind]))(command)
        return function

    return add


def _name_argument(kind: RefKind) -> _Decorator:
    return click.argument("ref_name", metavar=kind.upper(), shell_complete=live_names("complete_refs"))


def _expected_option(kind: RefKind) -> _Decorator:
    return click.option("--expected", metavar="COMMIT", type=ID, help=f"The {_SEEN[kind]}; default is the present one.")


@_for_both(
    "list",
    lambda kind: click.option("--deleted", is_flag=True, help="List deleted ones that can still be undeleted."),
    lambda kind: filter_option(ReferenceExpression, "those for which this is true, such as \"ref.name.startsWith('etl/')\""),
    many=True,
)
def _list(kind: RefKind, session: CliSession, address: Address, deleted: bool, expression: ReferenceExpression | None) -> None:
    """List the {plural} of a catalog; the deleted ones with until when they are held."""
    if deleted and expression is not None:
        raise RefusedError("--filter chooses among those that are not deleted: leave it or --deleted out")
    with opened_catalog(session, address) as opened:
        if not deleted:
            session.show_all(NAMED_REFERENCE, opened.refs.list_page(kind=kind, where=expression).refs)
            return
        grace = round(opened.settings.reader_grace_seconds * 1_000_000)
        listed = opened.refs.list_deleted(kind)
    session.show_all(DELETED_REFERENCE, [DeletedReference(named, at, Micros(at + grace)) for named, at in listed])


@_for_both(
    "create",
    _name_argument,
    lambda kind: click.option(
        "--source",
        metavar="REF",
        type=REF,
        shell_complete=live_names("complete_refs"),
        help="Branch or tag to start from, or a commit such as dev@HASH~2; default is the default branch.",
    ),
    lambda kind: click.option("--at", metavar="COMMIT", type=ID, help="A commit of the source's history; default is its head."),
)
def _create(
    kind: RefKind, session: CliSession, /, address: Address, ref_name: str, source: str | None, at: ObjectId | None
) -> None:
    """Create a {kind} at a commit."""
    with opened_catalog(session, address) as opened:
        _show_at(session, address, opened.refs.create_ref(kind, ref_name, source=source, at=at), "is created")


@_for_both(
    "assign",
    _name_argument,
    lambda kind: click.argument("target", metavar="TARGET", type=REF, shell_complete=live_names("complete_refs")),
    _expected_option,
)
def _assign(
    kind: RefKind, session: CliSession, /, address: Address, ref_name: str, target: str, expected: ObjectId | None
) -> None:
    """Move a {kind} to another commit: TARGET is a branch, a tag or a commit such as dev@HASH~2.

    The commits that it leaves stay readable for the grace.
    """
    with opened_catalog(session, address) as opened:
        seen = opened.refs.read_ref(kind, ref_name).head if expected is None else expected
        head = opened.resolve(target, exact=True)
        if head is None:
            raise RefusedError(f"{target!r} of catalog {opened.definition.name!r} has no commit yet")
        _show_at(session, address, opened.refs.assign_ref(kind, ref_name, head.id, expected=seen), "is moved")


@_for_both("delete", _name_argument, _expected_option)
def _delete(kind: RefKind, session: CliSession, address: Address, ref_name: str, expected: ObjectId | None) -> None:
    """Delete a {kind}. What it pointed to stays readable for the grace."""
    with opened_catalog(session, address) as opened:
        seen = opened.refs.read_ref(kind, ref_name).head if expected is None else expected
        deleted = opened.refs.delete_ref(kind, ref_name, expected=seen)
    was = f"; it was at {deleted.hash}" if deleted.hash else ""
    session.show_done(NAMED_REFERENCE, deleted, f"{kind} {deleted.name} of {address} is deleted{was}")


@_for_both("undelete", _name_argument)
def _undelete(kind: RefKind, session: CliSession, address: Address, ref_name: str) -> None:
    """Undelete a {kind} at the commit where it was. It works for the grace after its deletion, and until it is collected."""
    with opened_catalog(session, address) as opened:
        _show_at(session, address, opened.refs.undelete_ref(kind, ref_name), "is back")


def _show_at(session: CliSession, address: Address, named: NamedRef, done: str) -> None:
    at = f", at {named.hash}" if named.hash else ", without a commit yet"
    session.show_done(NAMED_REFERENCE, named, f"{named.kind} {named.name} of {address} {done}{at}")
