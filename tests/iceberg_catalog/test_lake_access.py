"""What a caller with few rights may do on a lake, and the ways around them that are refused on the very state of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA, append, creation_of

from headwater.access import AccessRule, AccessRules, ForbiddenError, Privilege, Securable, SecurableKind
from headwater.catalogs import Catalog, ContentKey
from headwater.errors import NotFoundError
from headwater.iceberg_catalog import (
    IcebergCatalog,
    LakeAccess,
    LoadedTable,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableCommit,
    TableCreation,
)

K, P = SecurableKind, Privilege
MINE = ContentKey.of("mine")
COPY = MINE.child("copy")
CATALOG = Securable(kind=K.CATALOG, catalog="lake")
Grant = tuple[Privilege, Securable, str]
OpenAs = Callable[..., IcebergCatalog]
AccessOf = Callable[..., LakeAccess]


def below(*path: str) -> Securable:
    return Securable(kind=K.NAMESPACE, catalog="lake", path=path)


def table(content_id: UUID) -> Securable:
    return Securable(kind=K.TABLE, catalog="lake", content_id=content_id)


def access_of(*grants: Grant, reference: str | None = None) -> LakeAccess:
    rules = AccessRules([AccessRule(privilege=privilege, on=on, references=where) for privilege, on, where in grants])
    return LakeAccess(reference, lambda definition: rules)


OWN = ((P.TABLE_FULL_METADATA, below("mine"), "*"), (P.TABLE_WRITE_DATA, below("mine"), "*"))
"""Everything on the tables of one namespace."""


@pytest.fixture
def open_as(open_lake: Callable[..., IcebergCatalog], lake: IcebergCatalog) -> OpenAs:
    lake.namespaces.create(MINE, {})

    def make(*grants: Grant, reference: str | None = None) -> IcebergCatalog:
        return open_lake(reference, guard=access_of(*grants, reference=reference).check_change)

    return make


def test_table_is_made_and_changed_where_that_is_granted(open_as: OpenAs) -> None:
    lake = open_as(*OWN)
    made = lake.tables.create(TableCreation(key=COPY, schema=SCHEMA))

    assert lake.tables.commit(append(made, 1)).content_id == made.content_id
    lake.tables.drop(COPY)


def test_refused_change_leaves_no_file(open_as: OpenAs, files: Callable[[], set[str]]) -> None:
    with pytest.raises(ForbiddenError, match=r"this needs TABLE_CREATE on table sales.orders of catalog lake, which was not"):
        open_as((P.NAMESPACE_LIST, CATALOG, ""), *OWN).tables.create(TableCreation(key=ORDERS, schema=SCHEMA))

    assert files() == set()


def test_table_that_may_not_be_listed_is_told_as_missing(open_as: OpenAs, orders: LoadedTable) -> None:
    lake = open_as(*OWN)

    with pytest.raises(NoSuchTableError, match=r"^Table does not exist: sales\.orders$"):
        lake.tables.drop(ORDERS)
    with pytest.raises(NoSuchTableError, match=r"^Table does not exist: sales\.orders$"):
        lake.tables.commit(append(orders, 1))
    with pytest.raises(NoSuchNamespaceError, match=r"^Namespace does not exist: sales$"):
        lake.tables.create(TableCreation(key=LINES, schema=SCHEMA))


def test_table_is_not_taken_by_a_rename(open_as: OpenAs, orders: LoadedTable) -> None:
    may_drop = open_as(*OWN, (P.TABLE_DROP, below("sales"), ""))

    with pytest.raises(ForbiddenError, match=r"TABLE_READ_DATA on table sales.orders"):
        may_drop.tables.rename(ORDERS, COPY)
    with pytest.raises(ForbiddenError, match=r"TABLE_DROP on table sales.orders"):
        open_as(*OWN, (P.TABLE_READ_DATA, below("sales"), "")).tables.rename(ORDERS, COPY)


def test_right_on_a_content_id_creates_no_other_key(open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable) -> None:
    held = (P.TABLE_FULL_METADATA, table(orders.content_id), "*"), (P.TABLE_READ_DATA, table(orders.content_id), "*")

    with pytest.raises(NoSuchNamespaceError):
        open_as(*held).tables.rename(ORDERS, COPY)
    assert lake.tables.exists(ORDERS)


def test_branch_is_no_way_around_a_right_on_another(open_as: OpenAs, catalog: Catalog, orders: LoadedTable) -> None:
    catalog.create_branch("dev")
    grants = (P.TABLE_WRITE_DATA, below("sales"), "main"), (P.TABLE_DROP, below("sales"), "main")

    with pytest.raises(NoSuchTableError):
        open_as(*grants, reference="dev").tables.drop(ORDERS)
    open_as(*grants).tables.drop(ORDERS)


def test_right_on_metadata_changes_no_data(open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable) -> None:
    caller = open_as((P.TABLE_FULL_METADATA, CATALOG, ""))
    renamed = [{"action": "set-properties", "updates": {"owner": "me"}}]
    moved = [{"action": "set-properties", "updates": {"write.data.path": f"{orders.document['location']}/other"}}]

    caller.tables.commit(TableCommit(ORDERS, [], renamed))
    for refused in (append(orders, 1), TableCommit(ORDERS, [], moved)):
        with pytest.raises(ForbiddenError, match="TABLE_WRITE_DATA"):
            caller.tables.commit(refused)
    lake.tables.commit(append(orders, 1))
    with pytest.raises(ForbiddenError, match="TABLE_WRITE_DATA"):
        caller.tables.register(ORDERS, orders.metadata_location, overwrite=True)


def test_table_of_another_is_not_registered_as_ones_own(
    open_as: OpenAs, lake: IcebergCatalog, catalog: Catalog, orders: LoadedTable
) -> None:
    lake.tables.drop(ORDERS)

    with pytest.raises(ForbiddenError, match="TABLE_READ_DATA"):
        open_as(*OWN).tables.register(COPY, orders.metadata_location)
    readable = (P.TABLE_READ_DATA, table(orders.content_id), "")
    assert open_as(*OWN, readable).tables.register(COPY, orders.metadata_location).content_id == orders.content_id


def test_table_of_another_is_not_staged_as_ones_own(open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.drop(ORDERS)

    with pytest.raises(ForbiddenError, match="TABLE_READ_DATA"):
        open_as(*OWN).tables.commit(replace(creation_of(orders.document), key=COPY))


def test_second_table_of_a_transaction_needs_its_own_right(open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable) -> None:
    caller = open_as(*OWN)
    own = caller.tables.create(TableCreation(key=COPY, schema=SCHEMA))

    with pytest.raises(NoSuchTableError, match="sales"):
        caller.tables.commit_many([append(own, 1), append(orders, 1)])
    assert (lake.tables.load(COPY).etag, lake.tables.load(ORDERS).etag) == (own.etag, orders.etag)


def test_namespaces_above_a_new_one_need_the_right_to_create_them(open_as: OpenAs) -> None:
    caller = open_as((P.NAMESPACE_CREATE, below("a", "b"), ""), (P.NAMESPACE_LIST, CATALOG, ""))

    with pytest.raises(ForbiddenError, match="NAMESPACE_CREATE on namespace a of catalog lake"):
        caller.namespaces.create(ContentKey.of("a", "b"), {})


def test_listing_shows_what_may_be_seen_and_the_way_there(
    open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable
) -> None:
    open_as()
    state, access = lake.session.state(), access_of((P.TABLE_LIST, table(orders.content_id), ""))

    assert access.filter_listed(state, K.TABLE, [ORDERS, LINES]) == (ORDERS,)
    assert access.filter_listed(state, K.TABLE, [ORDERS, LINES], content_ids=[orders.content_id, lines.content_id]) == (ORDERS,)
    assert access.filter_listed(state, K.NAMESPACE, [SALES, MINE]) == (SALES,)


def test_later_page_shows_what_stood_there_when_the_listing_began(
    open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable
) -> None:
    open_as()
    access = access_of((P.TABLE_LIST, table(orders.content_id), ""))
    first = lake.tables.list(SALES, limit=1)
    lake.tables.drop(ORDERS)
    page = lake.tables.list(SALES, token=first.next_token)

    listed = access.filter_listed(lake.session.state(), K.TABLE, page.keys, content_ids=page.content_ids)

    assert (first.keys, listed) == ((LINES,), (ORDERS,))


def test_reference_without_a_right_is_told_as_missing(lake: IcebergCatalog, catalog: Catalog) -> None:
    definition = catalog.definition
    grant = (P.TABLE_READ_DATA, CATALOG, "")

    access_of(grant).check_reference(definition)
    access_of(grant, reference="main").check_reference(definition)
    for grants, reference in (
        ((), None),
        ((grant,), "dev"),
        ((grant,), "0123456789abcdef"),
        ((grant,), "main@0123456789abcdef"),
    ):
        with pytest.raises(NotFoundError, match="there is no catalog 'lake', or no reference"):
            access_of(*grants, reference=reference).check_reference(definition)


def test_history_needs_a_right_of_its_own(catalog: Catalog) -> None:
    definition, grant = catalog.definition, (P.TABLE_READ_DATA, CATALOG, "*")
    every = Securable(kind=K.REFERENCE, catalog="lake", pattern="*")
    main = Securable(kind=K.REFERENCE, catalog="lake", pattern="main")

    for reference in ("main~1", "main*2024-01-01T00:00:00Z", "main@0123456789abcdef", "0123456789abcdef"):
        with pytest.raises(ForbiddenError, match="REFERENCE_READ_HISTORY"):
            access_of(grant, reference=reference).check_reference(definition)
        access_of(grant, (P.REFERENCE_READ_HISTORY, every, ""), reference=reference).check_reference(definition)
    access_of(grant, (P.REFERENCE_READ_HISTORY, main, ""), reference="main~1").check_reference(definition)
    with pytest.raises(ForbiddenError):
        access_of(grant, (P.REFERENCE_READ_HISTORY, main, ""), reference="0123456789abcdef").check_reference(definition)


def test_namespace_of_a_table_on_another_branch_is_not_listed(
    open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable
) -> None:
    open_as()
    access = access_of((P.TABLE_LIST, table(orders.content_id), "dev"))

    assert access.filter_listed(lake.session.state(), K.NAMESPACE, [SALES, MINE]) == ()


def test_namespace_on_the_way_is_gone_through(open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable) -> None:
    open_as()
    state, access = lake.session.state(), access_of((P.TABLE_READ_DATA, table(orders.content_id), ""))

    access.check_content(state, P.NAMESPACE_LIST, SALES)
    with pytest.raises(ForbiddenError, match="NAMESPACE_READ_PROPERTIES"):
        access.check_content(state, P.NAMESPACE_READ_PROPERTIES, SALES)
    with pytest.raises(NoSuchNamespaceError):
        access.check_content(state, P.NAMESPACE_LIST, MINE)
