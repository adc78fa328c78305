"""Tables of a lake: what is created, staged, committed together, renamed, registered and read without a document."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA, added, append, creation_of, on, set_properties

from headwater import Store
from headwater.catalogs import (
    Catalog,
    ContentKey,
    Delete,
    Put,
    RequestKey,
    RequestKeyReusedError,
    TableClaims,
    derive_content_id,
)
from headwater.errors import RefusedError
from headwater.iceberg.changes import ChangeFormError, RequirementFailedError
from headwater.iceberg_catalog import (
    AlreadyExistsError,
    IcebergCatalog,
    LoadedTable,
    NoSuchNamespaceError,
    NoSuchTableError,
    ReadOnlyReferenceError,
    TableCommit,
    TableCreation,
)
from headwater.iceberg_catalog.lake_tables import PresentTable
from headwater.realms import RealmRegistry

MakeTable = Callable[..., LoadedTable]
Files = Callable[[], set[str]]


def request(number: int, asked: bytes = b"asked") -> RequestKey:
    return RequestKey(UUID(int=number << 80 | 7 << 76 | 2 << 62), b"acme", asked)


def test_new_table_is_in_its_file_and_in_the_catalog(lake: IcebergCatalog, orders: LoadedTable) -> None:
    file = Path(orders.metadata_location.removeprefix("file://"))

    assert json.loads(file.read_text()) == orders.document == lake.tables.load(ORDERS).document


def test_content_id_of_a_new_table_is_derived(orders: LoadedTable) -> None:
    assert orders.content_id == derive_content_id(UUID(orders.document["table-uuid"]))


def test_table_is_created_once(lake: IcebergCatalog, make_table: MakeTable, orders: LoadedTable) -> None:
    with pytest.raises(AlreadyExistsError, match=r"^Table already exists: sales\.orders$"):
        make_table()
    with pytest.raises(AlreadyExistsError, match=r"^Table already exists: sales\.orders$"):
        lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA))


def test_table_needs_a_namespace(make_table: MakeTable) -> None:
    with pytest.raises(NoSuchNamespaceError, match=r"^Namespace does not exist: nothing\.here$"):
        make_table(ContentKey.of("nothing", "here", "t"))


def test_staged_table_is_nowhere_until_its_commit(lake: IcebergCatalog, files: Files) -> None:
    staged = lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA, properties={"owner": "ann"}))
    assert (lake.tables.exists(ORDERS), files()) == (False, set())

    created = lake.tables.commit(creation_of(staged.document))

    assert created.document["table-uuid"] == staged.document["table-uuid"]
    assert created.metadata_location.rpartition("/")[2] in files()


def test_commit_to_a_missing_table_names_it(lake: IcebergCatalog) -> None:
    with pytest.raises(NoSuchTableError, match=r"^Table does not exist: sales\.orders$"):
        lake.tables.commit(set_properties(ORDERS, owner="ann"))


def test_change_is_a_version_that_knows_the_one_before(lake: IcebergCatalog, orders: LoadedTable) -> None:
    changed = lake.tables.commit(append(orders, 1))

    assert [entry["metadata-file"] for entry in changed.document["metadata-log"]] == [orders.metadata_location]
    assert changed.metadata_location.rpartition("/")[2].startswith("00001-")


def test_change_that_changes_nothing_writes_nothing(lake: IcebergCatalog, orders: LoadedTable, files: Files) -> None:
    before = files()

    assert lake.tables.commit(TableCommit(ORDERS, [], [])).etag == orders.etag
    assert files() == before


def test_etag_is_known_without_a_document(lake: IcebergCatalog, orders: LoadedTable) -> None:
    changed = lake.tables.commit(append(orders, 1))

    assert lake.tables.peek(ORDERS) == changed.etag == lake.tables.load(ORDERS).etag != orders.etag
    with pytest.raises(NoSuchTableError):
        lake.tables.peek(LINES)


def test_tables_are_listed_by_page(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    first = lake.tables.list(SALES, limit=1)

    second = lake.tables.list(SALES, limit=1, token=first.next_token)

    assert (first.keys, second.keys, second.next_token) == ((LINES,), (ORDERS,), None)
    with pytest.raises(NoSuchNamespaceError):
        lake.tables.list(ContentKey.of("nothing"))


def test_commit_of_several_tables_is_one_commit(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable, catalog: Catalog
) -> None:
    before = len(list(catalog.log()))

    changed = lake.tables.commit_many([append(orders, 1), append(lines, 2)])

    assert [table.document["current-snapshot-id"] for table in changed] == [1, 2]
    assert len(list(catalog.log())) == before + 1


def test_commit_of_several_tables_happens_whole_or_not(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable, files: Files
) -> None:
    before = files()

    with pytest.raises(RequirementFailedError):
        lake.tables.commit_many([append(orders, 1), set_properties(LINES, on("main", 5), owner="ann")])

    assert (lake.tables.peek(ORDERS), files()) == (orders.etag, before)


def test_table_that_a_commit_only_judges_must_not_change(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable, open_lake: Callable[..., IcebergCatalog]
) -> None:
    other, seen = open_lake(), list[str]()

    def judge(present: PresentTable | None) -> None:
        assert present is not None
        seen.append(present.loaded.etag)
        if len(seen) == 1:
            other.tables.commit(append(orders, 1))

    commits = [TableCommit(ORDERS, [], []), set_properties(LINES, owner="ann")]
    lake.tables.commit_with(commits, [judge, lambda present: dict(lines.document) | {"properties": {"owner": "ann"}}])

    assert seen == [orders.etag, other.tables.peek(ORDERS)]


def test_commits_of_the_same_tables_in_any_order_all_succeed(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable
) -> None:
    def change(number: int) -> None:
        keys = (ORDERS, LINES) if number % 2 else (LINES, ORDERS)
        lake.tables.commit_many([set_properties(key, **{f"n{number}": "x"}) for key in keys])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(12)))

    assert [len(lake.tables.load(key).document["properties"]) for key in (ORDERS, LINES)] == [12, 12]


def test_commit_names_the_element_that_is_wrong(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    unknown = TableCommit(LINES, [], [{"action": "paint-it"}])

    with pytest.raises(ChangeFormError) as fault:
        lake.tables.commit_many([append(orders, 1), unknown])
    assert fault.value.path == "table-changes[1].updates[0].action"


def test_commit_changes_a_table_once(lake: IcebergCatalog, orders: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="each only once"):
        lake.tables.commit_many([append(orders, 1), set_properties(ORDERS, owner="ann")])


def test_table_moves_to_another_namespace(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.namespaces.create(ContentKey.of("eu"), {})
    moved = lake.tables.rename(ORDERS, ContentKey.of("eu", "orders"))

    assert (moved.content_id, lake.tables.exists(ORDERS)) == (orders.content_id, False)
    with pytest.raises(NoSuchNamespaceError, match="Namespace does not exist: us"):
        lake.tables.rename(moved.key, ContentKey.of("us", "orders"))


def test_table_is_not_renamed_over_another(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    text = r"^Cannot rename sales\.orders to sales\.lines\. Table already exists$"

    with pytest.raises(AlreadyExistsError, match=text):
        lake.tables.rename(ORDERS, LINES)


def test_table_without_a_namespace_is_given_one(lake: IcebergCatalog, orders: LoadedTable) -> None:
    stored = lake.tables._session.state().find_content(ORDERS)  # as Nessie's clients may put it
    assert stored is not None
    lake.commits.apply_operations([Delete(ORDERS), Put(ContentKey.of("orders"), stored)])

    renamed = lake.tables.rename(ContentKey.of("orders"), LINES)

    assert (renamed.content_id, renamed.metadata_location) == (orders.content_id, orders.metadata_location)
    with pytest.raises(NoSuchNamespaceError):
        lake.tables.rename(LINES, ContentKey.of("orders"))


def test_dropped_table_is_registered_as_itself(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.drop(ORDERS)

    assert lake.tables.register(LINES, orders.metadata_location).content_id == orders.content_id


def test_registration_over_a_table_moves_it_back(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    with pytest.raises(AlreadyExistsError):
        lake.tables.register(ORDERS, orders.metadata_location)

    back = lake.tables.register(ORDERS, orders.metadata_location, overwrite=True)

    assert (back.content_id, back.document) == (orders.content_id, orders.document)


def test_registration_of_a_missing_file_is_refused(lake: IcebergCatalog, orders: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="does not exist: name a metadata file"):
        lake.tables.register(LINES, orders.metadata_location + ".gone")


def test_registration_quotes_no_file(lake: IcebergCatalog, orders: LoadedTable, warehouse: Path) -> None:
    outside = warehouse.parent / "secrets.json"
    for path in (outside, Path(orders.metadata_location.removeprefix("file://")).with_name("x.metadata.json")):
        path.write_text('{"format-version": "hunter2", "hunter2": 1}')

        with pytest.raises(RefusedError) as refusal:
            lake.tables.register(LINES, path.as_uri())
        assert "hunter2" not in str(refusal.value) and refusal.value.__cause__ is None


def test_snapshot_with_anothers_manifest_list_is_refused(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="outside the table's own places"):
        lake.tables.commit(TableCommit(LINES, [], [added(orders, 1)]))


def test_statistics_of_another_table_are_refused(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    lake.tables.commit(append(lines, 1))
    path = f"{orders.document['location']}/metadata/x.puffin"
    statistics = {"snapshot-id": 1, "statistics-path": path, "file-size-in-bytes": 9}

    for name, more in (("statistics", {"file-footer-size-in-bytes": 9, "blob-metadata": []}), ("partition-statistics", {})):
        with pytest.raises(RefusedError, match="outside the table's own places"):
            lake.tables.commit(TableCommit(LINES, [], [{"action": f"set-{name}", name: statistics | more}]))


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
def test_path_of_a_table_is_not_anothers(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable, name: str) -> None:
    with pytest.raises(RefusedError, match="a place of another table"):
        lake.tables.commit(set_properties(LINES, **{name: f"{orders.document['location']}/data"}))


def test_property_that_reaches_files_is_refused(lake: IcebergCatalog, orders: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="py-io-impl"):
        lake.tables.commit(set_properties(ORDERS, **{"py-io-impl": "hostile.FileIO"}))


def test_table_keeps_its_uuid(lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable) -> None:
    other = {"action": "assign-uuid", "uuid": lines.document["table-uuid"]}

    with pytest.raises(RefusedError):
        lake.tables.commit(TableCommit(ORDERS, [], [other]))


def test_tag_can_only_be_read(catalog: Catalog, orders: LoadedTable, open_lake: Callable[..., IcebergCatalog]) -> None:
    catalog.create_tag("v1", "main")
    tag = open_lake("v1")

    assert tag.tables.load(ORDERS).etag == orders.etag
    with pytest.raises(ReadOnlyReferenceError, match="can only be read"):
        tag.tables.commit(append(orders, 1))


def test_branch_has_its_own_version(catalog: Catalog, orders: LoadedTable, open_lake: Callable[..., IcebergCatalog]) -> None:
    catalog.create_branch("dev", "main")
    dev = open_lake("dev")

    changed = dev.tables.commit(append(orders, 1))

    assert (dev.tables.peek(ORDERS), open_lake().tables.peek(ORDERS)) == (changed.etag, orders.etag)


def test_place_of_a_creation_that_broke_off_can_be_taken(
    lake: IcebergCatalog, store: Store, open_lake: Callable[..., IcebergCatalog]
) -> None:
    staged = lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA))
    document = staged.document
    uuid = UUID(document["table-uuid"])
    claim = lake.tables.claim_of(derive_content_id(uuid), document)
    TableClaims(RealmRegistry(store).open_realm("acme")).take_claims([claim])

    assert open_lake().tables.commit(creation_of(document)).content_id == derive_content_id(uuid)


def test_repeated_request_is_applied_once(lake: IcebergCatalog, orders: LoadedTable, catalog: Catalog) -> None:
    commit = set_properties(ORDERS, owner="ann")
    lake.tables.commit(commit, request=request(1))
    last = lake.tables.commit(set_properties(ORDERS, owner="bob"))

    assert lake.tables.commit(commit, request=request(1)).etag == last.etag
    with pytest.raises(RequestKeyReusedError):
        lake.tables.commit(commit, request=request(1, b"another"))


def test_repeated_creation_and_drop_are_applied_once(lake: IcebergCatalog) -> None:
    creation = TableCreation(key=ORDERS, schema=SCHEMA)
    first = lake.tables.create(creation, request=request(1))

    assert lake.tables.create(creation, request=request(1)).etag == first.etag
    for _ in range(2):
        lake.tables.drop(ORDERS, request=request(2))


def test_table_is_dropped_with_its_files_by_a_task(lake: IcebergCatalog, orders: LoadedTable, store: Store) -> None:
    lake.tables.drop(ORDERS, purge=True)

    assert not lake.tables.exists(ORDERS)
    with pytest.raises(NoSuchTableError):
        lake.tables.drop(ORDERS, purge=True)
