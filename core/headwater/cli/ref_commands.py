"""``headwater catalog branch`` and ``headwater catalog tag``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headwater.catalogs import Catalog, NamedRef
from headwater.cli.cli_session import CliSession, opened_catalog
from headwater.cli.command_options import ID, REF, prints
from headwater.cli.result_views import DELETED_REFERENCE, NAMED_REFERENCE, DeletedReference
from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store import ObjectId


@click.group(name="branch")
def branch() -> None:
    """List, create, move and delete branches."""


@click.group(name="tag")
def tag() -> None:
    """List, create and delete tags."""


@branch.command(name="list")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.option("--deleted", is_flag=True, help="List deleted ones that can still be undeleted.")
@prints(NAMED_REFERENCE, many=True)
@click.pass_obj
def list_branches(session: CliSession, realm_id: str, name: str, deleted: bool) -> None:
    """List the branches of a catalog; the deleted ones with until when they are held."""
    with opened_catalog(session, realm_id, name) as opened:
        if deleted:
            _show_deleted(session, opened, opened.deleted_branches())
        else:
            session.show_all(NAMED_REFERENCE, opened.branches())


@tag.command(name="list")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.option("--deleted", is_flag=True, help="List deleted ones that can still be undeleted.")
@prints(NAMED_REFERENCE, many=True)
@click.pass_obj
def list_tags(session: CliSession, realm_id: str, name: str, deleted: bool) -> None:
    """List the tags of a catalog; the deleted ones with until when they are held."""
    with opened_catalog(session, realm_id, name) as opened:
        if deleted:
            _show_deleted(session, opened, opened.deleted_tags())
        else:
            session.show_all(NAMED_REFERENCE, opened.tags())


@branch.command(name="create")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("branch_name", metavar="BRANCH")
@click.option(
    "--source",
    metavar="REF",
    type=REF,
    help="Branch or tag to start from, or a commit such as dev@HASH~2; default is the default branch.",
)
@click.option("--at", metavar="COMMIT", type=ID, help="A commit of the source's history; default is its head.")
@prints(NAMED_REFERENCE)
@click.pass_obj
def create_branch(
    session: CliSession, realm_id: str, name: str, branch_name: str, source: str | None, at: ObjectId | None
) -> None:
    """Create a branch at a commit."""
    with opened_catalog(session, realm_id, name) as opened:
        session.show(NAMED_REFERENCE, opened.create_branch(branch_name, source, at=at))


@tag.command(name="create")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("tag_name", metavar="TAG")
@click.option(
    "--source",
    metavar="REF",
    type=REF,
    help="Branch or tag to start from, or a commit such as dev@HASH~2; default is the default branch.",
)
@click.option("--at", metavar="COMMIT", type=ID, help="A commit of the source's history; default is its head.")
@prints(NAMED_REFERENCE)
@click.pass_obj
def create_tag(session: CliSession, realm_id: str, name: str, tag_name: str, source: str | None, at: ObjectId | None) -> None:
    """Create a tag at a commit."""
    with opened_catalog(session, realm_id, name) as opened:
        session.show(NAMED_REFERENCE, opened.create_tag(tag_name, source, at=at))


@branch.command(name="assign")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("branch_name", metavar="BRANCH")
@click.argument("target", metavar="TARGET", type=REF)
@click.option("--expected", metavar="COMMIT", type=ID, help="The head that you saw; default is the present one.")
@prints(NAMED_REFERENCE)
@click.pass_obj
def assign_branch(
    session: CliSession, realm_id: str, name: str, branch_name: str, target: str, expected: ObjectId | None
) -> None:
    """Move a branch to another commit: TARGET is a branch, a tag or a commit such as dev@HASH~2.

    The commits that it leaves stay readable for the grace.
    """
    with opened_catalog(session, realm_id, name) as opened:
        seen = opened.branch(branch_name).head if expected is None else expected
        session.show(NAMED_REFERENCE, opened.assign_branch(branch_name, _commit_of(opened, target), expected=seen))


@tag.command(name="assign")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("tag_name", metavar="TAG")
@click.argument("target", metavar="TARGET", type=REF)
@click.option("--expected", metavar="COMMIT", type=ID, help="The commit that you saw it at; default is the present one.")
@prints(NAMED_REFERENCE)
@click.pass_obj
def assign_tag(session: CliSession, realm_id: str, name: str, tag_name: str, target: str, expected: ObjectId | None) -> None:
    """Move a tag to another commit: TARGET is a branch, a tag or a commit such as dev@HASH~2.

    The commits that it leaves stay readable for the grace.
    """
    with opened_catalog(session, realm_id, name) as opened:
        seen = opened.tag(tag_name).head if expected is None else expected
        session.show(NAMED_REFERENCE, opened.assign_tag(tag_name, _commit_of(opened, target), expected=seen))


@branch.command(name="delete")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("branch_name", metavar="BRANCH")
@click.option("--expected", metavar="COMMIT", type=ID, help="The head that you saw; default is the present one.")
@prints(NAMED_REFERENCE)
@click.pass_obj
def delete_branch(session: CliSession, realm_id: str, name: str, branch_name: str, expected: ObjectId | None) -> None:
    """Delete a branch. What it pointed to stays readable for the grace."""
    with opened_catalog(session, realm_id, name) as opened:
        seen = opened.branch(branch_name).head if expected is None else expected
        _say_deleted(session, opened.delete_branch(branch_name, expected=seen))


@tag.command(name="delete")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("tag_name", metavar="TAG")
@click.option("--expected", metavar="COMMIT", type=ID, help="The commit that you saw it at; default is the present one.")
@prints(NAMED_REFERENCE)
@click.pass_obj
def delete_tag(session: CliSession, realm_id: str, name: str, tag_name: str, expected: ObjectId | None) -> None:
    """Delete a tag. What it pointed to stays readable for the grace."""
    with opened_catalog(session, realm_id, name) as opened:
        seen = opened.tag(tag_name).head if expected is None else expected
        _say_deleted(session, opened.delete_tag(tag_name, expected=seen))


@branch.command(name="undelete")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("branch_name", metavar="BRANCH")
@prints(NAMED_REFERENCE)
@click.pass_obj
def undelete_branch(session: CliSession, realm_id: str, name: str, branch_name: str) -> None:
    """Undelete a branch at the commit where it was. It works for the grace after its deletion, and until it is collected."""
    with opened_catalog(session, realm_id, name) as opened:
        session.show(NAMED_REFERENCE, opened.undelete_branch(branch_name))


@tag.command(name="undelete")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.argument("tag_name", metavar="TAG")
@prints(NAMED_REFERENCE)
@click.pass_obj
def undelete_tag(session: CliSession, realm_id: str, name: str, tag_name: str) -> None:
    """Undelete a tag at the commit where it was. It works for the grace after its deletion, and until it is collected."""
    with opened_catalog(session, realm_id, name) as opened:
        session.show(NAMED_REFERENCE, opened.undelete_tag(tag_name))


def _commit_of(opened: Catalog, target: str) -> ObjectId:
    found = opened.resolve(target, exact=True)
    if found is None:
        raise RefusedError(f"{target!r} of catalog {opened.definition.name!r} has no commit yet")
    return found.id


def _show_deleted(session: CliSession, opened: Catalog, found: Sequence[tuple[NamedRef, Micros]]) -> None:
    grace = round(opened.settings.reader_grace_seconds * 1_000_000)
    held = [DeletedReference(named, deleted, Micros(deleted + grace)) for named, deleted in found]
    session.show_all(DELETED_REFERENCE, held)


def _say_deleted(session: CliSession, deleted: NamedRef) -> None:
    session.show(NAMED_REFERENCE, deleted)
    session.say(f"{deleted.kind} {deleted.name} is deleted" + (f"; it was at {deleted.hash}" if deleted.hash else ""))
