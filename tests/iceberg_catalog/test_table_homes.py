"""A catalog is the home of what it creates and adopts; what it imports or registers is a guest."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from commits_of_engines import LINES, ORDERS, SCHEMA, append, creation_of

from file_writing_client import FileWritingClient, with_snapshot
from headwater.catalogs import CLAIMS, ContentKey, TableClaim, TableClaims, find_homes
from headwater.catalogs.table_claims import BY_LOCATION, BY_UUID, ClaimOwner
from headwater.commits import Transaction, commit_change
from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, TableCreation, adopt_guests, list_table_homes

GUEST = ContentKey.of("sales", "guest")


def homes(lake: IcebergCatalog) -> set[UUID]:
    return find_homes(lake.session.rows, lake.session.id)


def guests(lake: IcebergCatalog) -> list[str]:
    return [str(each.key) for each in list_table_homes(lake) if not each.is_home]


def adopt_all(lake: IcebergCatalog) -> tuple[list[ContentKey], dict[ContentKey, str]]:
    adoption = adopt_guests(lake, [each for each in list_table_homes(lake) if not each.is_home])
    return adoption.adopted, adoption.refused


@pytest.fixture
def guest(lake: IcebergCatalog, client: FileWritingClient) -> LoadedTable:
    return lake.tables.register(GUEST, client.write(client.new_document("guest")))


def test_created_table_is_at_home(lake: IcebergCatalog, lines: LoadedTable) -> None:
    staged = lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA))
    orders = lake.tables.commit(creation_of(staged.document))

    assert homes(lake) == {orders.content_id, lines.content_id}
    assert guests(lake) == []


def test_registered_table_is_a_guest(lake: IcebergCatalog, guest: LoadedTable) -> None:
    assert (homes(lake), guests(lake)) == (set(), ["sales.guest"])


def test_first_version_that_a_client_wrote_is_at_home(lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_document("orders")
    own = client.create(lake, ORDERS, document)
    later = with_snapshot(with_snapshot(client.new_document("lines"), 7), 8)
    client.create(lake, LINES, later)

    assert homes(lake) == {own}
    assert guests(lake) == ["sales.lines"]


def test_home_stays_through_rename_drop_and_register(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    lake.tables.rename(ORDERS, LINES)
    last = lake.tables.load(LINES)
    lake.tables.drop(LINES)
    lake.tables.register(ORDERS, last.metadata_location)

    assert homes(lake) == {orders.content_id}


def test_guest_stays_one_however_it_changes(lake: IcebergCatalog, guest: LoadedTable) -> None:
    lake.tables.commit(append(guest, 1))
    lake.tables.register(GUEST, guest.metadata_location, overwrite=True)

    assert guests(lake) == ["sales.guest"]


def test_adopted_guest_is_at_home(lake: IcebergCatalog, guest: LoadedTable, orders: LoadedTable) -> None:
    adopted = adopt_all(lake)

    assert adopted == ([GUEST], {})
    assert homes(lake) == {guest.content_id, orders.content_id}
    assert adopt_all(lake) == ([], {})


def test_guest_in_the_place_of_another_is_not_adopted(lake: IcebergCatalog, guest: LoadedTable) -> None:
    rows, place = lake.session.rows, guest.document["location"]
    other = TableClaim("00000000000000bb", uuid4(), place)
    lake.session.claims.release_own([TableClaim(lake.session.id, guest.content_id, place, UUID(guest.document["table-uuid"]))])
    TableClaims(rows).take_claims([other])

    adopted, refused = adopt_all(lake)

    assert adopted == [] and homes(lake) == set()
    assert "overlaps a place of another table" in refused[GUEST]


def test_adoption_is_of_tables_and_views_only(lake: IcebergCatalog) -> None:
    with pytest.raises(RefusedError, match="sales is no Iceberg table or view"):
        list(list_table_homes(lake, keys=[ContentKey.of("sales")]))
    with pytest.raises(NotFoundError, match=r"has nothing at sales\.orders"):
        list(list_table_homes(lake, keys=[ORDERS]))


def test_home_whose_claim_an_earlier_release_took_is_void(lake: IcebergCatalog, orders: LoadedTable) -> None:
    """It released the claim, not knowing of homes, and took it again for what was registered then."""

    def claim_again(tx: Transaction) -> None:
        for name in (BY_UUID, BY_LOCATION):
            for key, value in list(tx.index(name).range()):
                owner = ClaimOwner.from_value(value)
                tx.index(name).put(bytes(key), ClaimOwner(owner.catalog_id, owner.content_id, tx.time).to_value())

    commit_change(lake.session.rows, CLAIMS, claim_again, message="claim 1 tables")

    assert homes(lake) == set()
    assert lake.session.claims.take_claims([lake.tables.claim_of(orders.content_id, orders.document)]) == ()
    assert homes(lake) == set()


def test_home_without_a_claim_is_void(lake: IcebergCatalog, orders: LoadedTable) -> None:
    claim = lake.tables.claim_of(orders.content_id, orders.document)
    lake.session.claims.release_own([claim])
    assert homes(lake) == set()

    lake.session.claims.take_claims([claim])

    assert homes(lake) == set()
