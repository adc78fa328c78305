"""``headwater table``: which tables are at home in their catalog, how a guest is adopted, and how a place is released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from headwater.catalogs import ContentKey, release_location
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, catalog_ref_argument
from headwater.cli.command_options import KEY, confirm_option, realm_argument
from headwater.console import ResultView, ViewField, count_text, prints
from headwater.errors import HeadwaterError, RefusedError
from headwater.iceberg_catalog import IcebergCatalog, TableHome, adopt_guests, list_table_homes
from headwater.realms import RealmRegistry

TABLE_HOME: ResultView[TableHome] = ResultView(
    "table and its home",
    "tables and their homes",
    (
        ViewField("key", "as in a [content](#content)", header="KEY", form=str),
        ViewField("contentId", "survives renames", "entry.content_id", "CONTENT ID", form=str),
        ViewField("home", "whether the catalog created or adopted it", "is_home", "HOME"),
    ),
)


class ReleasedPlace(NamedTuple):
    """A place that no table has claimed any more."""

    location: str


RELEASED_PLACE: ResultView[ReleasedPlace] = ResultView(
    "released place", "released places", (ViewField("location", "as it was claimed", header="LOCATION", form=str),)
)


@click.group()
def table() -> None:
    """Which tables are at home in their catalog, and which are its guests."""


under_option = click.option("--under", metavar="KEY", type=KEY, help="Only what is below this namespace.")


@table.command(name="guests")
@catalog_ref_argument
@under_option
@click.option("--with-homes", is_flag=True, help="List what is at home, too.")
@prints(TABLE_HOME, many=True)
def table_guests_command(session: CliSession, address: Address, under: ContentKey | None, with_homes: bool) -> None:
    """List the tables and views of a catalog that it neither created nor adopted: it lets go no snapshot and no file of theirs."""
    with session.open_store() as store:
        homes = list_table_homes(IcebergCatalog.open(store, address.realm, address.name, address.ref), under=under)
        session.show_all(TABLE_HOME, [each for each in homes if with_homes or not each.is_home])


@table.command(name="adopt")
@catalog_ref_argument
@click.argument("keys", metavar="[KEY]...", type=KEY, nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All guests.")
@under_option
@confirm_option("REALM/CATALOG")
@prints(TABLE_HOME, many=True)
def adopt_tables_command(
    session: CliSession,
    address: Address,
    keys: tuple[ContentKey, ...],
    is_all: bool,
    under: ContentKey | None,
    confirm: str | None,
) -> None:
    """Make guests at home in their catalog: its policies hold for them from then on, and their files may be collected.

    Adopt what nobody else writes any more, through another catalog or without one.
    """
    if is_all == bool(keys) or (keys and under is not None):
        raise click.UsageError("name the tables to adopt, or give --all, which --under narrows down")
    with session.open_store() as store:
        lake, wanted = IcebergCatalog.open(store, address.realm, address.name, address.ref), address.without_ref
        guests = [each for each in list_table_homes(lake, keys=keys or None, under=under) if not each.is_home]
        if not guests:
            session.say(f"catalog {wanted} has no guests there: nothing was adopted")
            session.show_all(TABLE_HOME, [])
            return
        if confirm != wanted:
            session.show_all(TABLE_HOME, guests)
            raise RefusedError(
                f"nothing was adopted: these {len(guests)} are guests; make sure that nobody else writes them, and repeat realm and"
                f" catalog with --confirm {wanted} to go ahead"
            )
        _adopt(session, lake, guests, wanted)


@table.command(name="release")
@realm_argument
@click.argument("locations", metavar="LOCATION...", nargs=-1, required=True)
@prints(RELEASED_PLACE, many=True)
def release_places_command(session: CliSession, realm_id: str, locations: tuple[str, ...]) -> None:
    """Release each LOCATION that dropped tables still have, so that a table of any catalog may lie there.

    Only history may hold such a table, no branch or tag. Its drop can then be undone only while the location stays free.
    """
    with session.open_store() as store:
        rows = RealmRegistry(store).open_realm(realm_id)
        places: list[ReleasedPlace] = []

        def show() -> None:
            session.show_changes(RELEASED_PLACE, places, f"{count_text(len(places), 'place')} of realm {realm_id} released")

        try:
            for location in locations:
                places += map(ReleasedPlace, release_location(rows, location))
        except HeadwaterError:
            if places:  # those of the locations before this one
                show()
            raise
        show()


def _adopt(session: CliSession, lake: IcebergCatalog, guests: Sequence[TableHome], wanted: str) -> None:
    adoption = adopt_guests(lake, guests)
    adopted = set(adoption.adopted)
    at_home = [TableHome(guest.entry, True) for guest in guests if guest.key in adopted]
    session.show_changes(TABLE_HOME, at_home, f"{count_text(len(at_home), 'table')} of catalog {wanted} adopted")
    for key, why in adoption.refused.items():
        session.warn(f"{key} stays a guest: {why}")
    if adoption.refused:
        raise RefusedError(f"{len(adoption.refused)} of {len(guests)} guests of catalog {wanted} were not adopted")
