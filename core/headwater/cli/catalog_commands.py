"""``headwater catalog``: catalogs, what is in them, and their history."""

from __future__ import annotations

import click

from headwater.catalogs import Catalog, CatalogFields
from headwater.cli.cli_session import CliSession, opened_catalogs
from headwater.cli.command_options import DURATION, confirm_option, prints, properties_option
from headwater.cli.content_commands import (
    commit_log_command,
    content_command,
    content_history_command,
    diff_command,
    find_content_command,
    tables_command,
)
from headwater.cli.merge_commands import merge_command, transplant_command
from headwater.cli.ref_commands import branch, tag
from headwater.cli.result_output import time_after
from headwater.cli.result_views import CATALOG, DELETED_CATALOG, DELETION_PLAN, CatalogRow, DeletionPlan
from headwater.errors import RefusedError


@click.group(name="catalog")
def catalog() -> None:
    """List, create and delete catalogs, and manage their branches and tags."""


for _command in (
    branch,
    tag,
    tables_command,
    content_command,
    find_content_command,
    commit_log_command,
    content_history_command,
    diff_command,
    merge_command,
    transplant_command,
):
    catalog.add_command(_command)


@catalog.command(name="list")
@click.argument("realm_id", metavar="REALM")
@click.option("--deleted", is_flag=True, help="List deleted catalogs that can still be undeleted.")
@prints(CATALOG, many=True)
@click.pass_obj
def list_catalogs_command(session: CliSession, realm_id: str, deleted: bool) -> None:
    """List the catalogs of a realm."""
    with opened_catalogs(session, realm_id) as catalogs:
        found = catalogs.list_deleted() if deleted else catalogs.list_catalogs()
        session.show_all(DELETED_CATALOG if deleted else CATALOG, [CatalogRow(realm_id, definition) for definition in found])
        session.warn_of(found)


@catalog.command(name="show")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@prints(CATALOG)
@click.pass_obj
def show_catalog_command(session: CliSession, realm_id: str, name: str) -> None:
    """Show everything about one catalog."""
    with opened_catalogs(session, realm_id) as catalogs:
        session.show(CATALOG, CatalogRow(realm_id, catalogs.read_catalog(name)))


@catalog.command(name="create")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.option("--base-location", metavar="URL", required=True, help="Where its tables are kept, such as s3://lake/.")
@click.option(
    "--allowed-location", "allowed", metavar="URL", multiple=True, help="Another place that tables may lie in; may be repeated."
)
@click.option(
    "--default-branch",
    metavar="BRANCH",
    default="main",
    show_default=True,
    help="The default branch.",
)
@click.option(
    "--hold", type=DURATION, metavar="DURATION", help="How long it can be undeleted after its deletion; default is the setting."
)
@properties_option
@prints(CATALOG)
@click.pass_obj
def create_catalog_command(
    session: CliSession,
    realm_id: str,
    name: str,
    base_location: str,
    allowed: tuple[str, ...],
    default_branch: str,
    hold: float | None,
    properties: dict[str, str],
) -> None:
    """Create a catalog. After an interruption, run the same command to complete it."""
    with opened_catalogs(session, realm_id) as catalogs:
        fields = CatalogFields(
            base_location=base_location, allowed_locations=allowed, default_branch=default_branch, properties=properties
        )
        if hold is not None:
            fields["hold_seconds"] = hold
        definition = catalogs.create_catalog(name, **fields)
        session.show(CATALOG, CatalogRow(realm_id, definition))


@catalog.command(name="release")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@prints(CATALOG)
@click.pass_obj
def release_catalog_command(session: CliSession, realm_id: str, name: str) -> None:
    """Forget which resource manages, or last managed, a catalog, so that any Catalog of its realm can take it over.

    Its content does not change. A resource that still exists takes the catalog back at its next look.
    """
    with opened_catalogs(session, realm_id) as catalogs:
        released = catalogs.update_catalog(catalogs.read_catalog(name), manager=None, former=None)
        session.show(CATALOG, CatalogRow(realm_id, released))


@catalog.command(name="delete")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@confirm_option("REALM/CATALOG")
@prints(DELETION_PLAN)
@click.pass_obj
def delete_catalog_command(session: CliSession, realm_id: str, name: str, confirm: str | None) -> None:
    """Delete a catalog with all its branches and tags. The files of its tables are not touched.

    Until its hold is over, `headwater catalog undelete` brings it back; after that, the next collection purges it.
    """
    with opened_catalogs(session, realm_id) as catalogs:
        wanted = f"{realm_id}/{name}"
        if confirm != wanted:
            session.show(DELETION_PLAN, _deletion_plan(realm_id, catalogs.open_catalog(name)))
            raise RefusedError(f"nothing was deleted: repeat realm and catalog with --confirm {wanted} to go ahead")
        deleted = catalogs.delete_catalog(name)
        until = None if deleted.held_until is None else time_after(deleted.held_until)
        session.say(f"catalog {wanted} is deleted" + (f"; it can be undeleted until {until}" if until else ""))


@catalog.command(name="undelete")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.option(
    "--as", "new_name", metavar="NAME", help="The name to undelete it under, if another catalog has its own name now."
)
@prints(CATALOG)
@click.pass_obj
def undelete_catalog_command(session: CliSession, realm_id: str, name: str, new_name: str | None) -> None:
    """Undelete a catalog: the one of that name that was deleted last, or the one with that id."""
    with opened_catalogs(session, realm_id) as catalogs:
        session.show(CATALOG, CatalogRow(realm_id, catalogs.undelete_catalog(name, new_name=new_name)))


@catalog.command(name="purge")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@confirm_option("REALM/CATALOG")
@prints(CATALOG)
@click.pass_obj
def purge_catalog_command(session: CliSession, realm_id: str, name: str, confirm: str | None) -> None:
    """End the hold of a deleted catalog (by its name or id) now. There is no way back; collections remove what it held."""
    with opened_catalogs(session, realm_id) as catalogs:
        wanted = f"{realm_id}/{name}"
        if confirm != wanted:
            session.show(CATALOG, CatalogRow(realm_id, catalogs.read_deleted(name)))
            raise RefusedError(f"nothing was purged: repeat realm and catalog with --confirm {wanted} to go ahead")
        session.show(CATALOG, CatalogRow(realm_id, catalogs.purge_catalog(name)))
        session.say(f"catalog {wanted} is purged: it cannot come back, and collections remove what it held")


def _deletion_plan(realm_id: str, opened: Catalog) -> DeletionPlan:
    return DeletionPlan(
        realm_id,
        opened.definition,
        branches=[named.name for named in opened.branches()],
        tags=[named.name for named in opened.tags()],
        keys=opened.count(),
    )
