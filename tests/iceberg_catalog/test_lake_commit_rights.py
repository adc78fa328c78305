"""What callers with few rights may commit as content operations, and that what they may not list is told as missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import uuid4

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA, append

from file_writing_client import FileWritingClient, commit_on, head_of, with_snapshot
from headwater.access import AccessRule, AccessRules, ForbiddenError, Privilege, Securable, SecurableKind
from headwater.catalogs import (
    ConflictKind,
    ContentKey,
    ContentOperation,
    Delete,
    IcebergTable,
    KeyMerge,
    MergeOptions,
    Namespace,
    Put,
    Unmodified,
)
from headwater.errors import ConflictError, HeadwaterError, RefusedError
from headwater.iceberg_catalog import IcebergCatalog, LakeAccess, LoadedTable, TableCreation
from headwater.store import ObjectId

K, P = SecurableKind, Privilege
MINE = ContentKey.of("mine")
COPY = MINE.child("copy")
NOTHING = SALES.child("nothing")
CATALOG = Securable(kind=K.CATALOG, catalog="lake")
OpenAs = Callable[..., IcebergCatalog]


def below(*path: str) -> Securable:
    return Securable(kind=K.NAMESPACE, catalog="lake", path=path)


def only(content_id: object) -> Securable:
    return Securable(kind=K.TABLE, catalog="lake", content_id=content_id)  # type: ignore[arg-type]


OWN = ((P.TABLE_FULL_METADATA, below("mine")), (P.TABLE_WRITE_DATA, below("mine")))


@pytest.fixture
def open_as(open_lake: Callable[..., IcebergCatalog], lake: IcebergCatalog) -> OpenAs:
    lake.namespaces.create(MINE, {})

    def make(*grants: tuple[Privilege, Securable], open_it: Callable[..., IcebergCatalog] = open_lake) -> IcebergCatalog:
        rules = AccessRules([AccessRule(privilege=privilege, on=on, references="*") for privilege, on in grants])
        return open_it(guard=LakeAccess(None, lambda definition: rules).check_change)

    return make


def answer(lake: IcebergCatalog, operations: Sequence[ContentOperation], expected: ObjectId | None = None) -> tuple[type, str]:
    """The error that operations get, with its text."""
    with pytest.raises(HeadwaterError) as caught:
        commit_on(lake, operations, expected)
    return type(caught.value), str(caught.value)


def test_table_is_made_and_changed_where_that_is_granted(open_as: OpenAs, client: FileWritingClient) -> None:
    lake, document = open_as(*OWN), client.new_document("copy")
    content_id = client.create(lake, COPY, document)

    commit_on(lake, [Put(COPY, client.content(with_snapshot(document, 7), content_id=content_id))])
    commit_on(lake, [Delete(COPY)])


def test_refused_change_has_nothing_read(open_as: OpenAs, orders: LoadedTable) -> None:
    lake = open_as((P.TABLE_READ_DATA, below("sales")), (P.NAMESPACE_LIST, CATALOG))
    gone = orders.metadata_location + ".gone"

    with pytest.raises(ForbiddenError, match=r"TABLE_WRITE_PROPERTIES on table sales\.orders"):
        commit_on(lake, [Put(ORDERS, IcebergTable(id=orders.content_id, metadata_location=gone))])
    with pytest.raises(ForbiddenError, match=r"TABLE_CREATE on table sales\.lines"):
        commit_on(lake, [Put(LINES, IcebergTable(metadata_location=gone))])


def test_right_on_metadata_changes_no_data(open_as: OpenAs, client: FileWritingClient, orders: LoadedTable) -> None:
    lake = open_as((P.TABLE_FULL_METADATA, CATALOG))
    renamed = dict(orders.document) | {"properties": {"owner": "me"}}

    commit_on(lake, [Put(ORDERS, client.content(renamed, content_id=orders.content_id))])
    with pytest.raises(ForbiddenError, match="TABLE_WRITE_DATA"):
        commit_on(lake, [Put(ORDERS, client.content(with_snapshot(renamed, 7), content_id=orders.content_id))])


@pytest.mark.parametrize("operation", [Delete, Unmodified])
def test_hidden_table_is_as_a_missing_one(open_as: OpenAs, orders: LoadedTable, operation: type[Delete]) -> None:
    lake = open_as(*OWN)
    hidden, missing = answer(lake, [operation(ORDERS)]), answer(lake, [operation(NOTHING)])

    assert hidden == (missing[0], missing[1].replace(str(NOTHING), str(ORDERS)))
    assert hidden[0] is ConflictError


def test_hidden_table_is_changed_as_a_missing_one(open_as: OpenAs, client: FileWritingClient, orders: LoadedTable) -> None:
    lake = open_as(*OWN)
    guessed = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location)
    other = IcebergTable(id=uuid4(), metadata_location=orders.metadata_location)

    for content in (guessed, other):
        hidden, missing = answer(lake, [Put(ORDERS, content)]), answer(lake, [Put(NOTHING, content)])
        assert hidden == (missing[0], missing[1].replace(str(NOTHING), str(ORDERS)))


def test_creation_over_a_hidden_table_tells_no_id(open_as: OpenAs, client: FileWritingClient, orders: LoadedTable) -> None:
    lake = open_as((P.TABLE_CREATE, below("sales")))
    content = client.content(client.new_document("orders"))

    with pytest.raises(ConflictError, match=r"^1 conflict: KEY_EXISTS sales\.orders: is taken$"):
        commit_on(lake, [Put(ORDERS, content)])
    with pytest.raises(ConflictError, match=r"^1 conflict: KEY_EXISTS sales\.orders: is taken$"):
        lake.commits.apply_operations([Put(ORDERS, content)])


def test_creation_over_a_table_hidden_since_tells_no_id(
    open_as: OpenAs, lake: IcebergCatalog, client: FileWritingClient
) -> None:
    expected = head_of(lake)
    lake.tables.create(TableCreation(key=ORDERS, schema=SCHEMA))

    told = answer(open_as((P.TABLE_CREATE, below("sales"))), [Put(ORDERS, client.content(client.new_document("x")))], expected)

    assert told == (ConflictError, "1 conflict: KEY_EXISTS sales.orders: is taken")


def test_table_replaced_by_a_hidden_one_is_told_as_gone(
    open_as: OpenAs, lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    expected = head_of(lake)
    lake.tables.drop(ORDERS)
    successor = lake.tables.create(TableCreation(key=ORDERS, schema=SCHEMA))
    caller = open_as((P.TABLE_WRITE_DATA, only(orders.content_id)))
    content = client.content(with_snapshot(orders.document, 7), content_id=orders.content_id)

    kind, text = answer(caller, [Put(ORDERS, content)], expected)

    assert (kind, text) == (ConflictError, "1 conflict: KEY_DOES_NOT_EXIST sales.orders: was deleted since")
    assert str(successor.content_id) not in text


def test_hidden_namespace_is_as_an_absent_one(open_as: OpenAs, client: FileWritingClient, lake: IcebergCatalog) -> None:
    caller, absent = open_as(*OWN), ContentKey.of("absent")
    content = client.content(client.new_document("x"))
    texts = [answer(caller, [Put(parent.child("x"), content)]) for parent in (SALES, absent)]

    assert texts[0] == (texts[1][0], texts[1][1].replace("absent", "sales"))
    assert texts[0][0] is ConflictError and ConflictKind.NAMESPACE_ABSENT in texts[0][1]


def test_children_of_a_dropped_namespace_are_not_named(open_as: OpenAs, orders: LoadedTable) -> None:
    caller = open_as((P.NAMESPACE_FULL_METADATA, CATALOG))

    told = answer(caller, [Delete(SALES)])

    assert told == (ConflictError, "1 conflict: NAMESPACE_NOT_EMPTY sales: is not empty")
    assert "sales.orders" in answer(open_as((P.NAMESPACE_FULL_METADATA, CATALOG), (P.TABLE_LIST, CATALOG)), [Delete(SALES)])[1]


def test_table_is_not_taken_by_a_rename(open_as: OpenAs, orders: LoadedTable) -> None:
    caller = open_as(*OWN, (P.TABLE_DROP, below("sales")))
    wire = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location)

    with pytest.raises(ForbiddenError, match=r"TABLE_READ_DATA on table sales\.orders"):
        commit_on(caller, [Delete(ORDERS), Put(COPY, wire)])


def test_table_of_another_is_not_put_as_ones_own(open_as: OpenAs, lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.drop(ORDERS)
    wire = IcebergTable(metadata_location=orders.metadata_location, snapshot_id=99)

    with pytest.raises(ForbiddenError, match="the uuid is that of another table"):
        commit_on(open_as(*OWN), [Put(COPY, wire)])
    with pytest.raises(RefusedError, match="snapshot id 99"):  # told to whoever may read it
        commit_on(open_as(*OWN, (P.TABLE_READ_DATA, only(orders.content_id))), [Put(COPY, wire)])


def test_table_that_was_moved_away_is_not_put_again(open_as: OpenAs, lake: IcebergCatalog, client: FileWritingClient) -> None:
    """Where a table stood at the expected commit says nothing of who may read it now."""
    document = client.new_document("shared")
    shared, taken = MINE.child("shared"), SALES.child("taken")
    client.create(lake, shared, document)
    expected = head_of(lake)
    lake.tables.rename(shared, taken)
    content = client.content(document)

    kind, text = answer(open_as(*OWN), [Put(COPY, content)], expected)

    assert kind is ForbiddenError and "taken" not in text


def test_order_of_operations_tells_nothing(open_as: OpenAs, orders: LoadedTable, lake: IcebergCatalog) -> None:
    lake.tables.create(TableCreation(key=LINES, schema=SCHEMA))
    caller = open_as(
        *OWN, (P.TABLE_LIST, Securable(kind=K.TABLE, catalog="lake", content_id=lake.tables.load(LINES).content_id))
    )

    hidden = answer(caller, [Delete(ORDERS), Delete(LINES)])

    assert hidden == answer(caller, [Delete(NOTHING), Delete(LINES)])
    assert hidden[0] is ForbiddenError


def test_commit_on_an_older_state_is_allowed_by_content_id(
    open_as: OpenAs, lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    expected = head_of(lake)
    lake.namespaces.create(ContentKey.of("more"), {})
    caller = open_as((P.TABLE_WRITE_DATA, only(orders.content_id)))
    content = client.content(with_snapshot(orders.document, 7), content_id=orders.content_id)

    commit_on(caller, [Put(ORDERS, content)], expected)

    assert lake.tables.load(ORDERS).document["current-snapshot-id"] == 7
    lake.tables.commit(append(lake.tables.load(ORDERS), 8, after=7, number=2))


def test_namespace_may_be_changed_by_its_right(open_as: OpenAs, lake: IcebergCatalog) -> None:
    held = lake.session.state().find_content(SALES)
    assert isinstance(held, Namespace)
    change = Put(SALES, Namespace(id=held.id, properties={"a": "b"}))

    commit_on(open_as((P.NAMESPACE_WRITE_PROPERTIES, below("sales"))), [change])
    with pytest.raises(ForbiddenError, match="NAMESPACE_WRITE_PROPERTIES"):
        commit_on(open_as((P.NAMESPACE_LIST, CATALOG)), [change])


def test_hidden_table_that_came_between_is_not_named(
    open_as: OpenAs, lake: IcebergCatalog, client: FileWritingClient, overtaken_by: Callable[..., IcebergCatalog]
) -> None:
    meet = partial(overtaken_by, lambda: lake.tables.create(TableCreation(key=ORDERS, schema=SCHEMA)))
    caller = open_as((P.TABLE_CREATE, below("sales")), open_it=meet)

    told = answer(caller, [Put(ORDERS, client.content(client.new_document("orders")))])

    assert told == (ConflictError, "1 conflict: KEY_EXISTS sales.orders: is taken")


def test_key_of_hidden_content_that_came_between_is_not_named(
    open_as: OpenAs, lake: IcebergCatalog, client: FileWritingClient, overtaken_by: Callable[..., IcebergCatalog]
) -> None:
    content = client.content(client.new_document("orders"))
    assert isinstance(content, IcebergTable)
    meet = partial(overtaken_by, lambda: lake.tables.register(ORDERS, content.metadata_location))
    caller = open_as(*OWN, open_it=meet)

    _, text = answer(caller, [Put(COPY, content)])

    assert "orders:" not in text and "sales.orders" not in text


def test_resolved_table_needs_the_right_to_change_it(open_as: OpenAs, client: FileWritingClient, orders: LoadedTable) -> None:
    options = MergeOptions(keys={ORDERS: KeyMerge(resolved=client.content(with_snapshot(orders.document, 7)))})

    with pytest.raises(ForbiddenError, match="TABLE_WRITE_PROPERTIES"):
        open_as((P.TABLE_READ_DATA, below("sales"))).commits.prepare_merge(options, "main")
    with pytest.raises(ForbiddenError, match="TABLE_WRITE_DATA"):
        open_as((P.TABLE_FULL_METADATA, below("sales"))).commits.prepare_merge(options, "main")
    open_as((P.TABLE_WRITE_DATA, below("sales"))).commits.prepare_merge(options, "main")
