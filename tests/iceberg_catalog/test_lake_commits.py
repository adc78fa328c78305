"""Content operations of clients that write their own metadata files: the same door, the same ids, the same rules as everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA, append

from file_writing_client import FileWritingClient, commit_on, head_of, with_snapshot
from headwater import Store
from headwater.catalogs import (
    Catalog,
    Catalogs,
    CommitMeta,
    ConflictKind,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    KeyMerge,
    MergeOptions,
    Namespace,
    Put,
    TableClaims,
    Unmodified,
    derive_content_id,
)
from headwater.errors import ConflictError, NotFoundError, RefusedError
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, ReadOnlyReferenceError, TableCreation
from headwater.iceberg_catalog.content_puts import DOCUMENTS_LIMIT
from headwater.realms import RealmRegistry
from headwater.store import ObjectId

COPY = SALES.child("copy")


def table_at(catalog: Catalog, key: ContentKey, ref: str | None = None) -> IcebergTable:
    content = catalog.get_content(ref, key)
    assert isinstance(content, IcebergTable)
    return content


def conflict_kinds(caught: pytest.ExceptionInfo[ConflictError]) -> list[tuple[ConflictKind, ContentKey | None]]:
    return [(each.kind, each.key) for each in caught.value.details]  # type: ignore[attr-defined]


def test_created_table_is_loaded_by_the_other_door(lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_document("orders")
    content_id = client.create(lake, ORDERS, document)

    loaded = lake.tables.load(ORDERS)
    assert (loaded.content_id, loaded.document) == (content_id, document)
    assert content_id == derive_content_id(UUID(document["table-uuid"]))


def test_stored_content_states_the_uuid(lake: IcebergCatalog, client: FileWritingClient, catalog: Catalog) -> None:
    document = client.new_document("orders")
    client.create(lake, ORDERS, document)

    assert table_at(catalog, ORDERS).table_uuid == document["table-uuid"]


def test_table_of_the_other_door_is_updated(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable, catalog: Catalog
) -> None:
    content = client.content(with_snapshot(orders.document, 7), content_id=orders.content_id)
    commit_on(lake, [Put(ORDERS, content)])

    loaded = lake.tables.load(ORDERS)
    assert (loaded.document["current-snapshot-id"], loaded.content_id) == (7, orders.content_id)
    assert table_at(catalog, ORDERS).snapshot_id == 7
    assert lake.tables.commit(append(loaded, 8, after=7, number=2)).content_id == orders.content_id


def test_created_table_has_its_place_claimed(lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_document("orders")
    client.create(lake, ORDERS, document)

    with pytest.raises(RefusedError, match="overlaps a place of another table"):
        lake.tables.create(TableCreation(key=LINES, schema=SCHEMA, location=document["location"]))


def test_table_in_a_taken_place_is_refused(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="overlaps a place of another table"):
        client.create(lake, LINES, client.new_document("lines", location=orders.document["location"]))


def test_table_around_a_taken_place_is_refused(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    around = orders.document["location"].rpartition("/")[0]

    with pytest.raises(RefusedError, match="overlaps a place of another table"):
        client.create(lake, LINES, client.new_document("lines", location=around))


def test_foreign_place_is_refused_before_it_is_read(lake: IcebergCatalog, client: FileWritingClient, tmp_path: Path) -> None:
    outside = IcebergTable(metadata_location=(tmp_path / "elsewhere" / "v1.metadata.json").as_uri())

    with pytest.raises(RefusedError, match=r"sales\.orders cannot have files at .* outside the locations"):
        commit_on(lake, [Put(ORDERS, outside)])


def test_missing_file_is_named_with_its_key(lake: IcebergCatalog, client: FileWritingClient, warehouse: Path) -> None:
    gone = (warehouse / "gone" / "v1.metadata.json").as_uri()

    with pytest.raises(RefusedError, match=r"sales\.orders: .*gone/v1\.metadata\.json does not exist: name a metadata file"):
        commit_on(lake, [Put(ORDERS, IcebergTable(metadata_location=gone))])


def test_file_that_is_no_metadata_is_refused(lake: IcebergCatalog, client: FileWritingClient, warehouse: Path) -> None:
    place = client.write({"location": "x"}, (warehouse / "odd" / "v1.metadata.json").as_uri())

    with pytest.raises(RefusedError, match="is no sound metadata of a table"):
        commit_on(lake, [Put(ORDERS, IcebergTable(metadata_location=place))])


def test_document_that_disagrees_is_refused(lake: IcebergCatalog, client: FileWritingClient, catalog: Catalog) -> None:
    place = client.write(client.new_document("orders"))
    wrong = IcebergTable(metadata_location=place, snapshot_id=5, spec_id=3)

    with pytest.raises(RefusedError) as caught:
        commit_on(lake, [Put(ORDERS, wrong)])

    assert f"sales.orders has the snapshot id 5, and {place} says -1" in str(caught.value)
    assert "has the spec id 3" in str(caught.value)
    assert catalog.get_content(None, ORDERS) is None


@pytest.mark.parametrize("current", [-1, None, "absent"])
def test_table_without_a_snapshot_agrees(lake: IcebergCatalog, client: FileWritingClient, current: int | str | None) -> None:
    document = client.new_document("orders") | {"current-snapshot-id": current}
    if current == "absent":
        del document["current-snapshot-id"]
    place = client.write(document)

    commit_on(lake, [Put(ORDERS, IcebergTable(metadata_location=place, snapshot_id=-1))])

    assert lake.tables.load(ORDERS).metadata_location == place


def test_update_keeps_the_uuid(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    other = dict(orders.document) | {"table-uuid": str(uuid4())}
    content = client.content(other, content_id=orders.content_id)

    with pytest.raises(RefusedError, match="it is metadata of another table, with another uuid"):
        commit_on(lake, [Put(ORDERS, content)])


def test_update_to_the_file_of_another_table_is_refused(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    stolen = IcebergTable(id=orders.content_id, metadata_location=lines.metadata_location)

    with pytest.raises(RefusedError, match="lies in a place of another table"):
        commit_on(lake, [Put(ORDERS, stolen)])


def test_view_is_created_and_loaded_by_the_other_door(lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_view_document("totals")
    content = client.content(document)
    done = lake.commits.apply_operations([Put(COPY, content)])

    loaded = lake.views.load(COPY)
    assert (loaded.document, loaded.content_id) == (document, done.result[COPY])


def test_view_that_disagrees_is_refused(lake: IcebergCatalog, client: FileWritingClient) -> None:
    place = client.write(client.new_view_document("totals"))

    with pytest.raises(RefusedError, match=r"has the version id 9, and .* says 1"):
        commit_on(lake, [Put(COPY, IcebergView(metadata_location=place, version_id=9))])


@pytest.mark.parametrize("is_put_first", [True, False])
def test_rename_reads_no_file(
    lake: IcebergCatalog, orders: LoadedTable, catalog: Catalog, is_put_first: bool, files: Callable[[], set[str]]
) -> None:
    Path(orders.metadata_location.removeprefix("file://")).unlink()
    wire = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location)
    operations = [Put(COPY, wire), Delete(ORDERS)]

    commit_on(lake, operations if is_put_first else operations[::-1])

    renamed = lake.tables.load(COPY)
    assert (renamed.document, renamed.content_id) == (orders.document, orders.content_id)
    assert not lake.tables.exists(ORDERS)


def test_rename_with_a_new_version_reads_it(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    content = client.content(with_snapshot(orders.document, 7), content_id=orders.content_id)

    commit_on(lake, [Delete(ORDERS), Put(COPY, content)])

    assert lake.tables.load(COPY).document["current-snapshot-id"] == 7


def test_equal_content_makes_no_commit(lake: IcebergCatalog, orders: LoadedTable) -> None:
    before = head_of(lake)
    wire = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location)

    assert commit_on(lake, [Put(ORDERS, wire)]) == before


def test_kept_file_with_another_snapshot_is_refused(lake: IcebergCatalog, orders: LoadedTable) -> None:
    wire = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location, snapshot_id=3)

    with pytest.raises(RefusedError, match=r"has the snapshot id 3, and .* says -1"):
        commit_on(lake, [Put(ORDERS, wire)])


def test_old_fields_of_a_view_are_kept_with_its_document(
    lake: IcebergCatalog, client: FileWritingClient, catalog: Catalog
) -> None:
    content_id = lake.commits.apply_operations([Put(COPY, client.content(client.new_view_document("totals")))]).result[COPY]
    stored = catalog.get_content(None, COPY)
    assert isinstance(stored, IcebergView)
    wire = IcebergView(id=content_id, metadata_location=stored.metadata_location, version_id=1, sql_text="SELECT 1")

    commit_on(lake, [Put(COPY, wire)])

    assert catalog.get_content(None, COPY).sql_text == "SELECT 1"  # type: ignore[union-attr]
    assert catalog.metadata(None, COPY) is not None


def test_expected_content_needs_no_uuid(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    wire = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location)
    content = client.content(with_snapshot(orders.document, 7), content_id=orders.content_id)

    with pytest.raises(ConflictError) as caught:
        commit_on(lake, [Put(ORDERS, content, IcebergTable(metadata_location="file:///other"))])
    commit_on(lake, [Put(ORDERS, content, wire)])

    assert conflict_kinds(caught) == [(ConflictKind.VALUE_DIFFERS, ORDERS)]


def test_dropped_table_is_created_again_as_itself(lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_document("orders")
    content_id = client.create(lake, ORDERS, document)
    commit_on(lake, [Delete(ORDERS)])

    assert client.create(lake, ORDERS, document) == content_id


def test_table_deleted_and_put_as_itself_only_changes(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    content = client.content(with_snapshot(orders.document, 7))

    commit_on(lake, [Delete(ORDERS), Put(ORDERS, content)])

    assert lake.tables.load(ORDERS).content_id == orders.content_id
    assert lake.tables.load(ORDERS).document["current-snapshot-id"] == 7


def test_table_is_replaced_by_another_in_one_commit(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    document = client.new_document("orders")

    done = lake.commits.apply_operations([Delete(ORDERS), Put(ORDERS, client.content(document))], expected=head_of(lake))

    assert done.result == {ORDERS: derive_content_id(UUID(document["table-uuid"]))}
    assert lake.tables.load(ORDERS).content_id != orders.content_id


def test_table_deleted_and_put_elsewhere_keeps_its_id(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    wire = IcebergTable(metadata_location=orders.metadata_location)

    done = lake.commits.apply_operations([Delete(ORDERS), Put(COPY, wire)], expected=head_of(lake))

    assert done.result == {COPY: orders.content_id}


def test_table_of_a_uuid_that_is_there_is_refused(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="another table"):
        commit_on(lake, [Put(COPY, IcebergTable(metadata_location=orders.metadata_location))])


def test_several_are_committed_together(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    lists = ContentKey.of("lists")
    keys = [lists.child(f"t{number}") for number in range(20)]
    puts = [Put(key, client.content(client.new_document(key.name))) for key in keys]
    update = Put(ORDERS, client.content(with_snapshot(orders.document, 7), content_id=orders.content_id))

    done = lake.commits.apply_operations([*puts, update, Put(lists, Namespace(properties={"a": "b"}))], expected=head_of(lake))

    assert set(done.result) == {*keys, lists}
    assert all(lake.tables.exists(key) for key in keys)
    assert lake.tables.load(ORDERS).document["current-snapshot-id"] == 7


def test_one_bad_put_commits_none(lake: IcebergCatalog, client: FileWritingClient) -> None:
    good = Put(ORDERS, client.content(client.new_document("orders")))
    bad = Put(LINES, IcebergTable(metadata_location=good.content.metadata_location + ".gone"))  # type: ignore[union-attr]

    with pytest.raises(RefusedError):
        commit_on(lake, [good, bad])

    assert not lake.tables.exists(ORDERS)


def test_refused_commit_leaves_the_clients_files(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable, files: Callable[[], set[str]]
) -> None:
    content = client.content(client.new_document("orders"))
    before = files()

    with pytest.raises(RefusedError):
        commit_on(lake, [Put(ORDERS, content)])

    assert files() == before


def test_older_expected_commit_without_a_conflict_is_applied(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    expected = head_of(lake)
    client.create(lake, LINES)
    content = client.content(with_snapshot(orders.document, 7), content_id=orders.content_id)

    commit_on(lake, [Put(ORDERS, content)], expected)

    assert lake.tables.load(ORDERS).document["current-snapshot-id"] == 7
    assert lake.tables.exists(LINES)


def test_older_expected_commit_with_a_conflict_reads_no_file(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable
) -> None:
    expected = head_of(lake)
    lake.tables.commit(append(orders, 1))
    gone = IcebergTable(id=orders.content_id, metadata_location=orders.metadata_location + ".gone")

    with pytest.raises(ConflictError) as caught:
        commit_on(lake, [Put(ORDERS, gone)], expected)

    assert conflict_kinds(caught) == [(ConflictKind.VALUE_DIFFERS, ORDERS)]


def test_all_conflicts_are_told(lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable) -> None:
    expected = head_of(lake)
    lake.tables.commit(append(orders, 1))
    client.create(lake, LINES)
    new = client.content(client.new_document("lines"))

    with pytest.raises(ConflictError) as caught:
        commit_on(lake, [Put(LINES, new), Unmodified(ORDERS), Put(ContentKey.of("no", "t"), new)], expected)

    assert set(conflict_kinds(caught)) == {
        (ConflictKind.KEY_EXISTS, LINES),
        (ConflictKind.VALUE_DIFFERS, ORDERS),
        (ConflictKind.NAMESPACE_ABSENT, ContentKey.of("no")),
    }


def test_commit_of_another_branch_is_not_expected(
    lake: IcebergCatalog, client: FileWritingClient, catalog: Catalog, open_lake: Callable[..., IcebergCatalog]
) -> None:
    catalog.create_branch("dev")
    dev = open_lake("dev")
    client.create(dev, ORDERS)

    with pytest.raises(NotFoundError, match="is not in the history of branch 'main'"):
        commit_on(lake, [Delete(ORDERS)], head_of(dev))


def test_unknown_expected_commit_is_not_found(lake: IcebergCatalog) -> None:
    with pytest.raises(NotFoundError):
        commit_on(lake, [Delete(ORDERS)], ObjectId(0x1234567890ABCDEF))


def test_commit_without_an_expected_one_names_its_conflicts(lake: IcebergCatalog, client: FileWritingClient) -> None:
    client.create(lake, ORDERS)

    with pytest.raises(ConflictError) as caught:
        client.create(lake, ORDERS)

    assert conflict_kinds(caught) == [(ConflictKind.KEY_EXISTS, ORDERS)]


def test_table_has_one_id_on_every_branch(
    lake: IcebergCatalog, client: FileWritingClient, catalog: Catalog, open_lake: Callable[..., IcebergCatalog]
) -> None:
    catalog.create_branch("dev")
    document = client.new_document("orders")
    content_id = client.create(lake, ORDERS, document)

    assert client.create(open_lake("dev"), ORDERS, document) == content_id


def test_branch_and_merge_carry_what_another_door_made(
    lake: IcebergCatalog,
    client: FileWritingClient,
    orders: LoadedTable,
    catalog: Catalog,
    open_lake: Callable[..., IcebergCatalog],
) -> None:
    catalog.create_branch("dev")
    dev = open_lake("dev")
    commit_on(dev, [Put(ORDERS, client.content(with_snapshot(orders.document, 7), content_id=orders.content_id))])
    before = lake.tables.load(ORDERS)

    catalog.merge("dev")

    assert before.document == orders.document
    assert lake.tables.load(ORDERS).document["current-snapshot-id"] == 7


def test_first_commit_of_a_catalog_goes_through(open_lake: Callable[..., IcebergCatalog]) -> None:
    lake = open_lake()

    assert set(lake.commits.apply_operations([Put(SALES, Namespace())]).result) == {SALES}


def test_committer_is_the_sessions(open_lake: Callable[..., IcebergCatalog], catalog: Catalog) -> None:
    lake = open_lake(committer="ann")
    lake.commits.apply_operations([Put(SALES, Namespace())], meta=CommitMeta(message="m", authors=("bob",)))

    meta = next(iter(catalog.log())).meta
    assert (meta.committer, meta.authors, meta.message) == ("ann", ("bob",), "m")


@pytest.mark.parametrize("meta", [CommitMeta(committer="eve"), CommitMeta(merged=(ObjectId(5),))])
def test_committer_and_merge_parents_cannot_be_chosen(lake: IcebergCatalog, meta: CommitMeta) -> None:
    with pytest.raises(RefusedError, match=r"cannot be chosen|cannot be asked for"):
        lake.commits.apply_operations([Put(ORDERS.child("x"), Namespace())], meta=meta)


def test_tag_takes_no_commit(catalog: Catalog, lake: IcebergCatalog, open_lake: Callable[..., IcebergCatalog]) -> None:
    catalog.create_tag("v1")

    with pytest.raises(ReadOnlyReferenceError):
        open_lake("v1").commits.apply_operations([Delete(SALES)])


def test_property_that_chooses_code_is_refused(lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_document("orders", **{"io-impl": "evil"})

    with pytest.raises(RefusedError, match="io-impl"):
        client.create(lake, ORDERS, document)
    with pytest.raises(RefusedError, match="io-impl"):
        commit_on(lake, [Put(COPY, Namespace(properties={"io-impl": "evil"}))])


def test_delta_table_lies_where_the_catalog_allows(lake: IcebergCatalog, warehouse: Path) -> None:
    inside, outside = (warehouse / "d" / "_delta_log").as_uri(), "s3://elsewhere/d/_delta_log"

    commit_on(lake, [Put(COPY, DeltaLakeTable(metadata_location_history=(inside,)))])
    with pytest.raises(RefusedError, match="outside the locations"):
        commit_on(lake, [Put(LINES, DeltaLakeTable(metadata_location_history=(inside, outside)))])


def test_table_of_another_catalog_is_refused(
    store: Store, lake: IcebergCatalog, client: FileWritingClient, warehouse: Path, orders: LoadedTable
) -> None:
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("other", base_location=warehouse.as_uri())
    other = IcebergCatalog.open(store, "acme", "other")
    other.namespaces.create(SALES, {})

    with pytest.raises(RefusedError, match="lies in a place of another table"):
        commit_on(other, [Put(ORDERS, IcebergTable(metadata_location=orders.metadata_location))])


def test_claim_of_a_refused_table_is_not_taken(store: Store, lake: IcebergCatalog, client: FileWritingClient) -> None:
    document = client.new_document("orders")
    wrong = IcebergTable(metadata_location=client.write(document), snapshot_id=5)

    with pytest.raises(RefusedError):
        commit_on(lake, [Put(ORDERS, wrong)])

    claims = TableClaims(RealmRegistry(store).open_realm("acme"))
    assert claims.find_location(document["location"]) is None


def test_table_without_a_uuid_survives_a_lost_race(
    lake: IcebergCatalog, overtaken_by: Callable[..., IcebergCatalog], client: FileWritingClient, catalog: Catalog
) -> None:
    """The second attempt claims for the content id of the first."""
    document = client.new_document("orders") | {"format-version": 1, "schema": SCHEMA, "partition-spec": []}
    del document["table-uuid"]
    ns = lake.session.state().find_content(SALES)
    assert isinstance(ns, Namespace)
    change = Put(SALES, Namespace(id=ns.id, properties={"at": "once"}))
    slow = overtaken_by(lambda: catalog.commit(None, [change]))

    done = slow.commits.apply_operations([Put(ORDERS, client.content(document)), Unmodified(SALES)])

    assert lake.tables.load(ORDERS).content_id == done.result[ORDERS]


def test_commit_of_too_many_files_reads_none(lake: IcebergCatalog) -> None:
    many = range(DOCUMENTS_LIMIT + 1)
    puts = [Put(SALES.child(f"t{at}"), IcebergTable(metadata_location="s3://elsewhere/v1.json")) for at in many]

    with pytest.raises(RefusedError, match="1001 new metadata files; 1000 are read for one"):
        commit_on(lake, puts)


def test_commit_overtaken_on_another_key_is_applied(
    lake: IcebergCatalog, overtaken_by: Callable[..., IcebergCatalog], client: FileWritingClient
) -> None:
    slow = overtaken_by(lambda: lake.tables.create(TableCreation(key=LINES, schema=SCHEMA)))

    client.create(slow, ORDERS)

    assert lake.tables.exists(ORDERS) and lake.tables.exists(LINES)


def test_creation_overtaken_by_another_is_in_conflict(
    lake: IcebergCatalog, overtaken_by: Callable[..., IcebergCatalog], client: FileWritingClient
) -> None:
    slow = overtaken_by(lambda: lake.tables.create(TableCreation(key=ORDERS, schema=SCHEMA)))
    put = Put(ORDERS, client.content(client.new_document("orders")))

    with pytest.raises(ConflictError) as named:
        slow.commits.apply_operations([put], expected=head_of(lake))
    with pytest.raises(ConflictError) as unnamed:
        slow.commits.apply_operations([put])

    assert conflict_kinds(named) == conflict_kinds(unnamed) == [(ConflictKind.KEY_EXISTS, ORDERS)]


def test_resolved_table_of_a_merge_gets_its_document(
    lake: IcebergCatalog,
    client: FileWritingClient,
    orders: LoadedTable,
    catalog: Catalog,
    open_lake: Callable[..., IcebergCatalog],
) -> None:
    catalog.create_branch("dev")
    open_lake("dev").tables.commit(append(orders, 1))
    mine = lake.tables.commit(append(orders, 2))
    resolved = client.content(with_snapshot(mine.document, 3))
    expected = IcebergTable(metadata_location=mine.metadata_location, snapshot_id=2)

    wish = MergeOptions(keys={ORDERS: KeyMerge(expected=expected, resolved=resolved)})
    ready = lake.commits.prepare_merge(wish, "dev")
    catalog.merge("dev", options=ready.options, fence=lake.session.hold_claims(ready.claims, "merge"))

    merged = lake.tables.load(ORDERS)
    assert (merged.document["current-snapshot-id"], merged.content_id) == (3, orders.content_id)
    assert catalog.metadata(None, ORDERS) is not None
    assert table_at(catalog, ORDERS).table_uuid == orders.document["table-uuid"]


def test_table_resolved_as_it_is_keeps_its_document(
    lake: IcebergCatalog, orders: LoadedTable, catalog: Catalog, open_lake: Callable[..., IcebergCatalog]
) -> None:
    catalog.create_branch("dev")
    open_lake("dev").tables.commit(append(orders, 1))
    mine = IcebergTable(metadata_location=orders.metadata_location)

    ready = lake.commits.prepare_merge(MergeOptions(keys={ORDERS: KeyMerge(expected=mine, resolved=mine)}), "dev")
    catalog.merge("dev", options=ready.options)

    assert catalog.metadata(None, ORDERS) is not None
    assert lake.tables.load(ORDERS).etag == orders.etag


def test_resolved_table_that_moves_is_claimed(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable, warehouse: Path
) -> None:
    moved = dict(orders.document) | {"location": (warehouse / "moved").as_uri()}

    ready = lake.commits.prepare_merge(MergeOptions(keys={ORDERS: KeyMerge(resolved=client.content(moved))}), "main")

    assert [claim.location for claim in ready.claims] == [moved["location"]]


def test_resolved_table_with_a_foreign_file_is_refused(
    lake: IcebergCatalog, client: FileWritingClient, orders: LoadedTable, lines: LoadedTable
) -> None:
    stolen = IcebergTable(metadata_location=lines.metadata_location)
    other = IcebergTable(id=lines.content_id, metadata_location=lines.metadata_location)

    with pytest.raises(RefusedError, match="lies in a place of another table"):
        lake.commits.prepare_merge(MergeOptions(keys={ORDERS: KeyMerge(resolved=stolen)}), "main")
    with pytest.raises(RefusedError, match="none that the target or the source has there"):
        lake.commits.prepare_merge(MergeOptions(keys={ORDERS: KeyMerge(resolved=other)}), "main")
