"""``headwater catalog``: catalogs, what is in them, and their history."""

from __future__ import annotations

import click

from headwater.catalogs import Catalog, ContentKey
from headwater.cli.opening import opened_catalog, opened_catalogs
from headwater.cli.options import confirm_option, prints, properties_option
from headwater.cli.reference import branch, tag
from headwater.cli.session import Session
from headwater.cli.views import CATALOG, COMMIT, DELETION_PLAN, ENTRY, CatalogRow, DeletionPlan
from headwater.errors import RefusedError

__all__ = ["catalog"]


@click.group()
def catalog() -> None:
    """Look at catalogs, create them, and keep their branches and tags."""


catalog.add_command(branch)
catalog.add_command(tag)


@catalog.command(name="list")
@click.argument("realm_id", metavar="REALM")
@prints(CATALOG, many=True)
@click.pass_obj
def list_(session: Session, realm_id: str) -> None:
    """List the catalogs of a realm."""
    with opened_catalogs(session, realm_id) as catalogs:
        session.show_all(CATALOG, [CatalogRow(realm_id, definition) for definition in catalogs.list()])


@catalog.command()
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@prints(CATALOG)
@click.pass_obj
def show(session: Session, realm_id: str, name: str) -> None:
    """Show everything about one catalog."""
    with opened_catalogs(session, realm_id) as catalogs:
        session.show(CATALOG, CatalogRow(realm_id, catalogs.read(name)))


@catalog.command()
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
    help="The branch that is meant where none is named.",
)
@properties_option
@prints(CATALOG)
@click.pass_obj
def create(
    session: Session,
    realm_id: str,
    name: str,
    base_location: str,
    allowed: tuple[str, ...],
    default_branch: str,
    properties: dict[str, str],
) -> None:
    """Create a catalog. Interrupted, the same command completes it."""
    with opened_catalogs(session, realm_id) as catalogs:
        definition = catalogs.create(
            name, base_location=base_location, allowed_locations=allowed, default_branch=default_branch, properties=properties
        )
        session.show(CATALOG, CatalogRow(realm_id, definition))


@catalog.command()
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@confirm_option("REALM/CATALOG")
@prints(DELETION_PLAN)
@click.pass_obj
def delete(session: Session, realm_id: str, name: str, confirm: str | None) -> None:
    """Delete a catalog with all its branches and tags. The files of its tables are not touched."""
    with opened_catalogs(session, realm_id) as catalogs:
        wanted = f"{realm_id}/{name}"
        if confirm != wanted:
            session.show(DELETION_PLAN, _deletion_plan(realm_id, catalogs.open(name)))
            raise RefusedError(f"nothing was deleted: repeat realm and catalog with --confirm {wanted} to go ahead")
        catalogs.delete(name)
        session.say(f"catalog {wanted} is deleted")


@catalog.command()
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.option("--ref", metavar="REF", help="Branch, tag or commit; default is the default branch.")
@click.option("--prefix", metavar="KEY", help="Only what stands below this namespace, such as sales.eu.")
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), help="At most so many; default is all.")
@prints(ENTRY, many=True)
@click.pass_obj
def tables(session: Session, realm_id: str, name: str, ref: str | None, prefix: str | None, limit: int | None) -> None:
    """List the tables, views, namespaces and functions of a catalog, by key."""
    with opened_catalog(session, realm_id, name) as opened:
        page = opened.entries(ref, prefix=None if prefix is None else ContentKey.parse(prefix), limit=limit)
        session.show_all(ENTRY, page.entries)
        if page.next_token is not None:
            session.warn(f"there are more than these {limit}")


@catalog.command()
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
@click.option("--ref", metavar="REF", help="Branch, tag or commit; default is the default branch.")
@click.option(
    "--key", metavar="KEY", help="Only commits that changed this table, view, function or namespace, such as sales.orders."
)
@click.option("--oldest-first", is_flag=True, help="Begin where history begins, or was cut.")
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@prints(COMMIT, many=True)
@click.pass_obj
def log(session: Session, realm_id: str, name: str, ref: str | None, key: str | None, oldest_first: bool, limit: int) -> None:
    """Show the commits that led to the present content, newest first."""
    wanted = None if key is None else ContentKey.parse(key)
    with opened_catalog(session, realm_id, name) as opened:
        session.show_all(COMMIT, list(opened.log(ref, key=wanted, oldest_first=oldest_first, limit=limit)))


def _deletion_plan(realm_id: str, opened: Catalog) -> DeletionPlan:
    return DeletionPlan(
        realm_id,
        opened.definition,
        branches=[named.name for named in opened.branches()],
        tags=[named.name for named in opened.tags()],
        keys=opened.count(),
    )
