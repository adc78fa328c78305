"""``headwater catalog``: catalogs, what is in them, and their history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from headwater.catalogs import Catalog, CatalogDefinition, CatalogFields, CatalogFiles
from headwater.cli.cli_session import CliSession, opened_catalogs
from headwater.cli.command_address import Address, catalog_argument, named_catalog_argument, realm_address_argument
from headwater.cli.command_options import confirm_option, properties_option
from headwater.cli.content_commands import (
    commit_log_command,
    content_command,
    content_history_command,
    diff_command,
    find_content_command,
    tables_command,
)
from headwater.cli.manager_fields import manager_field
from headwater.cli.merge_commands import merge_command, transplant_command
from headwater.cli.ref_commands import branch, tag
from headwater.console import DURATION, ResultView, ViewField, duration_field, prints, time_after, time_field
from headwater.errors import RefusedError


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A catalog of a realm."""

    realm: str
    definition: CatalogDefinition


def _imports(row: CatalogRow) -> list[dict[str, Any]]:
    definition = row.definition
    return [
        {
            "name": spec.name,
            "locations": list(spec.locations),
            "mode": spec.mode,
            "schedule": spec.schedule,
            "include": list(spec.include),
            "exclude": list(spec.exclude),
            "done": definition.imported.get(spec.name) == spec.digest(),
        }
        for spec in definition.imports
    ]


def _maintenance(row: CatalogRow) -> dict[str, Any]:
    """The schedules that are said, by what they are of."""
    said = row.definition.maintenance
    schedules = {"expireSnapshots": said.expire_snapshots, "reportFiles": said.report_files}
    return {
        name: {"schedule": each.schedule or None, "suspend": each.suspend}
        for name, each in schedules.items()
        if each is not None
    }


CATALOG: ResultView[CatalogRow] = ResultView(
    "catalog",
    "catalogs",
    (
        ViewField("realm", "the realm's id", header="REALM"),
        ViewField("name", "unique in its realm", "definition.name", "CATALOG"),
        ViewField("id", "never used again, also not by a later catalog of the same name", "definition.id"),
        ViewField("state", "ACTIVE or DELETED", "definition.state"),
        ViewField("baseLocation", "where its tables are kept", "definition.base_location", "BASE LOCATION"),
        ViewField("allowedLocations", "other places that tables may lie in", "definition.allowed_locations"),
        ViewField("defaultBranch", "the branch that is meant where none is named", "definition.default_branch", "BRANCH"),
        ViewField(
            "imports",
            "tables that lie somewhere already",
            _imports,
            inside={
                "[].name": "unique in its catalog",
                "[].locations": "where tables are looked for",
                "[].mode": "once or sync",
                "[].schedule": "a cron expression; null: daily, if its mode is sync",
                "[].include": "patterns of the keys that are wanted; empty: all",
                "[].exclude": "patterns of the keys that are not",
                "[].done": "it has been carried out as it stands here",
            },
        ),
        ViewField(
            "filePlaces", "locations whose files are all its tables', besides its home tables'", "definition.files.places"
        ),
        ViewField(
            "maintenance",
            "scheduled work on its lake: expireSnapshots and reportFiles, each where it is said",
            _maintenance,
            inside={
                ".<work>.schedule": "a cron expression in the time zone of the realm; null: at a time spread by catalog",
                ".<work>.suspend": "it does not run by itself",
            },
        ),
        ViewField("properties", "free names and values", "definition.properties"),
        ViewField("created", "when it was created", "definition.created", "CREATED", time_field),
        ViewField("updated", "when its definition was last changed", "definition.updated", form=time_field),
        ViewField("deletionPolicy", "Retain or Purge, when its resource is deleted", "definition.deletion_policy"),
        ViewField("deletionProtection", "it cannot be deleted", "definition.deletion_protection"),
        ViewField(
            "hold",
            "how long it can come back once deleted; null is the setting",
            "definition.hold_seconds",
            form=duration_field,
        ),
        ViewField(
            "heldUntil",
            "a deleted one: it is purged after that; null: being purged",
            "definition.held_until",
            form=time_after,
        ),
        manager_field("definition.manager"),
    ),
    named_by="realm/name",
)

DELETED_CATALOG = CATALOG.with_columns(
    realm="REALM", name="CATALOG", id="ID", baseLocation="BASE LOCATION", updated="DELETED", heldUntil="HELD UNTIL"
)
"""Deleted catalogs, perhaps several of one name: the id identifies the one to undelete."""


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The content that the deletion of a catalog would remove."""

    realm: str
    definition: CatalogDefinition
    branches: Sequence[str]
    tags: Sequence[str]
    keys: int


DELETION_PLAN: ResultView[DeletionPlan] = ResultView(
    "deletion plan",
    "deletion plans",
    (
        ViewField("realm", "the realm's id"),
        ViewField("name", "the catalog", "definition.name"),
        ViewField("deletionProtection", "it cannot be deleted", "definition.deletion_protection"),
        ViewField("hold", "how long it can come back; null is the setting", "definition.hold_seconds", form=duration_field),
        ViewField("branches", "all these go"),
        ViewField("tags", "all these go"),
        ViewField("keys", "keys on the default branch"),
    ),
    named_by="realm/name",
)

catalog = click.Group("catalog", help="List, create and delete catalogs, and manage their branches and tags.")

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
@realm_address_argument
@click.option("--deleted", is_flag=True, help="List deleted catalogs that can still be undeleted.")
@prints(CATALOG, many=True)
def list_catalogs_command(session: CliSession, realm_id: str, deleted: bool) -> None:
    """List the catalogs of a realm."""
    with opened_catalogs(session, realm_id) as catalogs:
        listed = catalogs.list_deleted() if deleted else catalogs.list_catalogs()
        session.show_all(DELETED_CATALOG if deleted else CATALOG, [CatalogRow(realm_id, definition) for definition in listed])
        session.warn_of(listed)


@catalog.command(name="show")
@catalog_argument
@prints(CATALOG)
def show_catalog_command(session: CliSession, address: Address) -> None:
    """Show everything about one catalog."""
    with opened_catalogs(session, address.realm) as catalogs:
        session.show(CATALOG, CatalogRow(address.realm, catalogs.read_catalog(address.name)))


@catalog.command(name="create")
@named_catalog_argument
@click.option("--base-location", metavar="URL", required=True, help="Where its tables are kept, such as s3://lake/.")
@click.option(
    "--allowed-location", "allowed", metavar="URL", multiple=True, help="Another place that tables may lie in; may be repeated."
)
@click.option(
    "--file-place",
    "places",
    metavar="URL",
    multiple=True,
    help="A location whose files are all its tables', such as that of write.data.path; may be repeated.",
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
def create_catalog_command(
    session: CliSession,
    address: Address,
    base_location: str,
    allowed: tuple[str, ...],
    places: tuple[str, ...],
    default_branch: str,
    hold: float | None,
    properties: dict[str, str],
) -> None:
    """Create a catalog. After an interruption, run the same command to complete it."""
    with opened_catalogs(session, address.realm) as catalogs:
        fields = CatalogFields(
            base_location=base_location, allowed_locations=allowed, default_branch=default_branch, properties=properties
        )
        if hold is not None:
            fields["hold_seconds"] = hold
        if places:
            fields["files"] = CatalogFiles(places=places)
        definition = catalogs.create_catalog(address.name, **fields)
        session.show_done(
            CATALOG, CatalogRow(address.realm, definition), f"catalog {address.without_ref} is {definition.state}"
        )


@catalog.command(name="release")
@named_catalog_argument
@prints(CATALOG)
def release_catalog_command(session: CliSession, address: Address) -> None:
    """Forget which resource manages, or last managed, a catalog, so that any Catalog of its realm can take it over.

    Its content does not change. A resource that still exists takes the catalog back at its next look.
    """
    with opened_catalogs(session, address.realm) as catalogs:
        released = catalogs.update_catalog(catalogs.read_catalog(address.name), manager=None, former=None)
        session.show_done(
            CATALOG, CatalogRow(address.realm, released), f"catalog {address.without_ref} is released: no resource manages it"
        )


@catalog.command(name="delete")
@named_catalog_argument
@confirm_option("REALM/CATALOG")
@prints(DELETION_PLAN)
def delete_catalog_command(session: CliSession, address: Address, confirm: str | None) -> None:
    """Delete a catalog with all its branches and tags. The files of its tables are not touched.

    Until its hold is over, `headwater catalog undelete` brings it back; after that, the next collection purges it.
    """
    with opened_catalogs(session, address.realm) as catalogs:
        wanted = address.without_ref
        if confirm != wanted:
            session.show(DELETION_PLAN, _deletion_plan(address.realm, catalogs.open_catalog(address.name)))
            raise RefusedError(f"nothing was deleted: repeat realm and catalog with --confirm {wanted} to go ahead")
        deleted = catalogs.delete_catalog(address.name)
        until = None if deleted.held_until is None else time_after(deleted.held_until)
        session.say(f"catalog {wanted} is deleted" + (f"; it can be undeleted until {until}" if until else ""))


@catalog.command(name="undelete")
@named_catalog_argument
@click.option(
    "--as", "new_name", metavar="NAME", help="The name to undelete it under, if another catalog has its own name now."
)
@prints(CATALOG)
def undelete_catalog_command(session: CliSession, address: Address, new_name: str | None) -> None:
    """Undelete a catalog: the one of that name that was deleted last, or the one with that id."""
    with opened_catalogs(session, address.realm) as catalogs:
        undeleted = CatalogRow(address.realm, catalogs.undelete_catalog(address.name, new_name=new_name))
        session.show_done(CATALOG, undeleted, f"catalog {address.realm}/{undeleted.definition.name} is back")


@catalog.command(name="purge")
@named_catalog_argument
@confirm_option("REALM/CATALOG")
@prints(CATALOG)
def purge_catalog_command(session: CliSession, address: Address, confirm: str | None) -> None:
    """End the hold of a deleted catalog (by its name or id) now. There is no way back; collections remove what it held."""
    with opened_catalogs(session, address.realm) as catalogs:
        wanted = address.without_ref
        if confirm != wanted:
            session.show(CATALOG, CatalogRow(address.realm, catalogs.read_deleted(address.name)))
            raise RefusedError(f"nothing was purged: repeat realm and catalog with --confirm {wanted} to go ahead")
        session.show_done(
            CATALOG,
            CatalogRow(address.realm, catalogs.purge_catalog(address.name)),
            f"catalog {wanted} is purged: it cannot come back, and collections remove what it held",
        )


def _deletion_plan(realm_id: str, opened: Catalog) -> DeletionPlan:
    return DeletionPlan(
        realm_id,
        opened.definition,
        branches=[named.name for named in opened.branches()],
        tags=[named.name for named in opened.tags()],
        keys=opened.count(),
    )
