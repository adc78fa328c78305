"""The rows of each table, and how little is read for them."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, StringStartsWith
from source_queries import CountingBackend, bundles, make_realm, request, rows_of

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import (
    CONTENT,
    Catalog,
    Catalogs,
    CommitMeta,
    ContentKey,
    ContentType,
    ContentValue,
    Delete,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    RefKind,
    content_digest,
)
from headwater.catalogs.registry import content_reference
from headwater.commits import Transaction, commit_change
from headwater.errors import CorruptionError, ExpiredError, NotFoundError, RefusedError
from headwater.realms import RealmRegistry, RealmState
from headwater.store import SYSTEM_REALM, ObjectKey, id_text
from headwater_workers.pipeline.source.data_source import read_from
from headwater_workers.pipeline.source.partitions import divided
from headwater_workers.pipeline.source.pinned_states import pin_states, tenants
from headwater_workers.pipeline.source.pushdown import Selection, select
from headwater_workers.pipeline.source.source_columns import TABLES, arrow_schema
from unordered import UnorderedBackend

ORDERS = ContentKey.of("sales", "orders")
MAIN = EqualTo(("ref",), "main")


def put_many(store: Store, catalog: Catalog, namespaces: int, tables: int) -> None:
    """So many namespaces of so many tables each on main, enough for many stripes: past the rules, which would take their time."""
    table = IcebergTable(metadata_location="s3://lake/t.json")

    def change(tx: Transaction) -> None:
        object_id, digest = tx.add_object(table), content_digest(table)
        for number in range(namespaces * tables):
            key = ContentKey.of(f"ns{number // tables:03}", f"t{number % tables:03}")
            value = ContentValue(ContentType.ICEBERG_TABLE, UUID(int=number), digest, object_id)
            tx.index(CONTENT).put(key.to_index(), value.to_value())

    reference = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
    commit_change(RealmRegistry(store).open_realm("acme"), reference, change, properties={"catalog": catalog.definition.id})


# entries and contents


def test_entries_are_what_every_branch_and_tag_holds(store: Store, lake: Catalog) -> None:
    lake.create_branch("dev")
    lake.create_tag("v1")
    lake.commit("dev", [Delete(ORDERS)])

    found = {(row["kind"], row["ref"], row["key"]) for row in rows_of(store, request("entries"))}
    assert found == {
        *(("branch", "main", key) for key in ("sales", "sales.orders", "sales.paid\\.2024")),
        *(("tag", "v1", key) for key in ("sales", "sales.orders", "sales.paid\\.2024")),
        *(("branch", "dev", key) for key in ("sales", "sales.paid\\.2024")),
    }


def test_entry_says_all_that_the_index_knows(store: Store, lake: Catalog) -> None:
    page = lake.entries()
    value = page.entries[2].value

    assert rows_of(store, request("entries"))[2] == {
        "realm": "acme",
        "catalog": "lake",
        "ref": "main",
        "kind": "branch",
        "hash": page.hash,
        "key": "sales.paid\\.2024",
        "namespace": "sales",
        "name": "paid.2024",
        "type": "ICEBERG_TABLE",
        "content_id": str(value.content_id),
        "object_id": id_text(value.object_id),
    }


def test_contents_say_what_each_type_has(store: Store, lake: Catalog) -> None:
    table = IcebergTable(metadata_location="s3://lake/t.json", snapshot_id=7, schema_id=2, table_uuid="u-1")
    view = IcebergView(metadata_location="s3://lake/v.json", schema_id=3, view_uuid="u-2")
    lake.commit("main", [Put(ContentKey.of("t"), table), Put(ContentKey.of("v"), view)])
    columns = ("name", "metadata_location", "uuid", "snapshot_id", "schema_id", "properties")

    found = [tuple(row.values()) for row in rows_of(store, request("contents", columns=columns))]
    assert found == [
        ("sales", None, None, None, None, [("owner", "ann")]),
        ("orders", "s3://lake/orders.json", None, None, 0, None),
        ("paid.2024", "s3://lake/paid.2024.json", None, None, 0, None),
        ("t", "s3://lake/t.json", "u-1", 7, 2, None),
        ("v", "s3://lake/v.json", "u-2", None, 3, None),
    ]


def test_columns_come_as_they_were_asked_for(store: Store, lake: Catalog) -> None:
    assert rows_of(store, request("entries", columns=("type", "name")))[0] == {"type": "NAMESPACE", "name": "sales"}


def test_key_prefix_reads_only_the_stripes_with_it(store: Store, backend: CountingBackend, lake: Catalog) -> None:
    put_many(store, lake, namespaces=20, tables=200)
    everything = rows_of(store, request("entries"))
    store.cache.after_fork()
    backend.read = 0
    found = rows_of(store, request("entries"), [MAIN, StringStartsWith(("key",), "ns007.")])

    assert (len(everything), len(found)) == (20 * 200 + 3, 200)
    assert backend.read < 12  # what leads to the catalog, its head, and of a dozen stripes the one or two


def test_another_catalog_or_branch_is_not_read(
    store: Store, backend: CountingBackend, make_catalog: Callable[[str, str], Catalog]
) -> None:
    small, large = make_catalog("acme", "small"), make_catalog("acme", "large")
    put_many(store, large, namespaces=10, tables=200)
    asked = request("entries")
    places, pins = tenants(store, asked), pin_states(store, asked)
    selection, _ = select("entries", [EqualTo(("catalog",), "small")])
    store.cache.after_fork()
    backend.read = 0
    pieces = divided(store, asked, selection, places, pins)

    found = [row["catalog"] for batch in read_from(store, asked, selection, pieces[0]) for row in batch.to_pylist()]
    assert (len(pieces), found, backend.read) == (1, ["small"] * 3, 1)
    assert small.count() == 3


def test_branch_that_was_asked_for_alone_is_looked_up(store: Store, lake: Catalog) -> None:
    lake.create_branch("dev")

    assert {pin.place.ref for pin in pin_states(store, request("entries", ref="dev"))} == {"dev"}
    with pytest.raises(NotFoundError, match="no catalog that is read has a branch or tag 'mian'"):
        pin_states(store, request("entries", ref="mian"))


def test_large_state_is_divided_at_stripes_without_overlap(store: Store, lake: Catalog) -> None:
    put_many(store, lake, namespaces=12, tables=1000)
    asked = request("contents", partitions=3, columns=("key",))
    keys = [row["key"] for row in rows_of(store, asked)]

    assert len(bundles(store, asked)) == 3
    assert len(keys) == len(set(keys)) == 12_003


def test_data_frame_stands_still_while_others_commit(store: Store, lake: Catalog) -> None:
    asked = request("entries")
    pins = pin_states(store, asked)
    lake.commit("main", [Delete(ORDERS)])
    pieces = divided(store, asked, Selection({}), tenants(store, asked), pins)

    assert sum(batch.num_rows for batch in read_from(store, asked, Selection({}), pieces[0])) == 3


# states


def test_tables_of_states_are_as_at_the_commit(store: Store, lake: Catalog) -> None:
    first = lake.branch("main").hash
    assert first is not None
    lake.commit("main", [Delete(ORDERS)])

    found = rows_of(store, request("entries", at=first))
    assert [(row["kind"], row["ref"], row["name"]) for row in found] == [
        ("commit", first, name) for name in ("sales", "orders", "paid.2024")
    ]
    assert len(rows_of(store, request("commits", at=first))) == 1


def test_state_at_a_relative_text_is_the_one_meant(store: Store, lake: Catalog) -> None:
    lake.commit("main", [Delete(ORDERS)])

    assert [(row["ref"], row["kind"]) for row in rows_of(store, request("entries", at="main~1"))] == [("main~1", "commit")] * 3


def test_state_at_a_name_is_each_catalogs_branch(store: Store, make_catalog: Callable[[str, str], Catalog]) -> None:
    make_catalog("acme", "one").create_branch("dev")
    make_catalog("acme", "two")

    found = {(row["catalog"], row["ref"], row["kind"]) for row in rows_of(store, request("entries", at="dev"))}
    assert found == {("one", "dev", "branch")}


@pytest.mark.parametrize(("text", "kind"), [("-", "branch"), ("", "branch"), ("main@", "branch"), ("v1", "tag")])
def test_text_for_a_head_has_the_kind_of_its_name(store: Store, lake: Catalog, text: str, kind: str) -> None:
    lake.create_tag("v1")

    assert [pin.place[2:] for pin in pin_states(store, request("entries", at=text))] == [(text, kind)]


@pytest.mark.parametrize("named", [{}, {"catalog": "lake"}])
@pytest.mark.parametrize("name", ["", "main@"])
def test_catalogs_without_the_commit_are_left_out_in_any_realm(
    store: Store, make_catalog: Callable[[str, str], Catalog], named: dict[str, str], name: str
) -> None:
    head = make_catalog("acme", "lake").branch("main").hash
    for realm, catalog in (("acme", "other"), ("beta", "lake")):
        make_catalog(realm, catalog)

    found = pin_states(store, request("entries", at=f"{name}{head}", **named))
    assert [pin.place for pin in found] == [("acme", "lake", f"{name}{head}", "commit")]


@pytest.mark.parametrize("named", [{}, {"catalog": "lake"}, {"realm": "acme"}, {"realm": "acme", "catalog": "lake"}])
def test_state_that_no_catalog_has_is_missing(store: Store, lake: Catalog, named: dict[str, str]) -> None:
    with pytest.raises(NotFoundError, match="no branch, tag or commit 'dev'"):
        pin_states(store, request("entries", at="dev", **named))


def test_commit_that_no_catalog_has_was_collected_or_never_was(
    store: Store, make_catalog: Callable[[str, str], Catalog]
) -> None:
    for realm in ("acme", "beta"):
        make_catalog(realm, "lake")

    with pytest.raises(ExpiredError, match="none of the 2 catalogs that are read has a state '0123456789abcdef', such as"):
        pin_states(store, request("entries", at="0123456789abcdef"))


def test_catalog_cut_before_the_state_is_not_left_out(
    store: Store, backend: CountingBackend, make_catalog: Callable[[str, str], Catalog]
) -> None:
    lakes = [make_catalog(realm, "lake") for realm in ("acme", "beta")]
    first = lakes[0].branch("main").head
    for lake in lakes:
        lake.commit("main", [Delete(ORDERS)])
    rows = RealmRegistry(store).open_realm("acme")
    backend.delete_objects([key for batch in rows.scan_objects() for key in batch if key.id == first])
    store.cache.after_fork()

    with pytest.raises(ExpiredError, match="'main~1' of realm 'acme' has expired"):
        pin_states(store, request("entries", at="main~1"))


def test_state_that_was_collected_says_so(store: Store, backend: CountingBackend, lake: Catalog) -> None:
    asked = request("entries")
    pins = pin_states(store, asked)
    rows = RealmRegistry(store).open_realm("acme")
    backend.delete_objects([key for batch in rows.scan_objects() for key in batch if key.id == pins[0].commit])
    store.cache.after_fork()

    with pytest.raises(ExpiredError, match="collected since this data frame or view was made"):
        divided(store, asked, Selection({}), tenants(store, asked), pins)


def test_realm_that_is_purged_meanwhile_says_so(store: Store, lake: Catalog) -> None:
    asked = request("entries")
    pieces = bundles(store, asked)
    realms = RealmRegistry(store)
    rows = store.rows("acme", realms.read_realm("acme").key)  # type: ignore[arg-type]
    inactive = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    store.clock.sleep(24 * 3600)
    realms.move_realm(inactive, RealmState.PURGING)
    while rows.delete_rows(1000):
        pass

    with pytest.raises(RefusedError, match="realm 'acme' is PURGING"):
        list(read_from(store, asked, Selection({}), pieces[0]))


def test_content_without_its_object_is_named(store: Store, backend: CountingBackend, lake: Catalog) -> None:
    lost = lake.entries().entries[1].value.object_id
    rows = RealmRegistry(store).open_realm("acme")
    keys: list[ObjectKey] = [key for batch in rows.scan_objects() for key in batch if key.id == lost]
    backend.delete_objects(keys)
    store.cache.after_fork()

    with pytest.raises(CorruptionError, match=f"sales.orders of catalog 'lake' in realm 'acme': object {id_text(lost)}"):
        rows_of(store, request("contents"))


# realms and catalogs


def test_realm_that_does_not_serve_is_left_out_or_refused(store: Store, lake: Catalog) -> None:
    RealmRegistry(store).create_realm("new")

    assert {row["realm"] for row in rows_of(store, request("entries"))} == {"acme"}
    with pytest.raises(RefusedError, match="realm 'new' is CREATED"):
        rows_of(store, request("entries", realm="new"))


def test_deleted_catalog_is_left_out_or_missing_when_named(store: Store, lake: Catalog) -> None:
    Catalogs(RealmRegistry(store).open_realm("acme")).delete_catalog("lake")

    assert rows_of(store, request("entries")) == []
    with pytest.raises(NotFoundError, match="no catalog 'lake'; one that was deleted can be undeleted"):
        rows_of(store, request("entries", realm="acme", catalog="lake"))
    with pytest.raises(NotFoundError, match="no realm of the store has a catalog 'lake'"):
        rows_of(store, request("entries", catalog="lake"))


# commits and changes


def test_commit_tells_what_it_was_given(store: Store, lake: Catalog) -> None:
    first = lake.branch("main").hash
    meta = CommitMeta(message="clean up", authors=("bob", "eve"), signed_off_by=("ann",), properties={"ticket": ("1", "2")})
    lake.commit("main", [Delete(ORDERS)], meta=meta)

    row = rows_of(store, request("commits"))[0]
    told = ("seq", "message", "authors", "signed_off_by", "properties", "parent", "merged")
    assert [row[name] for name in told] == [
        2,
        "clean up",
        ["bob", "eve"],
        ["ann"],
        [("ticket", ["1", "2"])],
        first,
        [],
    ]
    assert row["operations"] == [
        {"action": "DELETE", "key": "sales.orders", "type": None, "content_id": None, "object_id": None}
    ]


def test_changes_of_a_key_are_one_row_each(store: Store, lake: Catalog) -> None:
    lake.commit("main", [Delete(ORDERS)], authors=["bob"])

    found = rows_of(store, request("changes"), [EqualTo(("key",), "sales.orders")])
    assert [(row["seq"], row["action"], row["authors"], row["type"]) for row in found] == [
        (2, "DELETE", ["bob"], None),
        (1, "PUT", ["ann"], "ICEBERG_TABLE"),
    ]


@pytest.mark.parametrize("column", ["seq", "time"])
def test_walk_ends_at_the_oldest_commit_that_is_wanted(
    store: Store, backend: CountingBackend, lake: Catalog, column: str
) -> None:
    for number in range(100):
        lake.commit("main", [Put(ContentKey.of(f"n{number}"), Namespace())])
    newest = rows_of(store, request("commits"))[0]
    store.cache.after_fork()
    backend.read = 0

    found = rows_of(store, request("commits"), [GreaterThanOrEqual((column,), newest[column])])
    assert [row["seq"] for row in found] == [101]
    assert backend.read < 30  # what leads there, and the first twenty of a hundred


def test_history_too_old_is_not_looked_at(store: Store, lake: Catalog) -> None:
    assert bundles(store, request("commits"), [GreaterThan(("seq",), 5)]) == []


# objects and references


def test_objects_are_all_rows_of_the_store(store: Store, lake: Catalog) -> None:
    found = rows_of(store, request("objects"))
    rows = RealmRegistry(store).open_realm("acme")

    own = [row for row in found if row["realm"] == "acme"]
    assert {(row["id"], row["part"], row["bytes"]) for row in own} == {
        (id_text(key.id), key.part, key.bytes) for batch in rows.scan_objects() for key in batch
    }
    assert {row["realm"] for row in found} == {"acme", SYSTEM_REALM}


def test_range_of_ids_is_scanned_alone(store: Store, backend: CountingBackend, lake: Catalog) -> None:
    head = lake.branch("main").hash
    asked = request("objects", realm="acme")
    pieces_of = [EqualTo(("id",), head)]
    bundles(store, asked, pieces_of)
    backend.scanned = 0

    assert [row["type"] for row in rows_of(store, asked, pieces_of)] == ["commit"]
    assert backend.scanned == 1


def test_references_tell_whose_they_are(store: Store, lake: Catalog) -> None:
    lake.create_tag("v1")
    lake.delete_tag("v1")

    found = {(row["catalog"], row["kind"], row["ref"]): row["deleted"] for row in rows_of(store, request("references"))}
    assert {("lake", "branch", "main"), ("lake", "tag", "v1"), ("lake", "refs", None), (None, None, None)} <= set(found)
    assert found["lake", "tag", "v1"] is not None and found["lake", "branch", "main"] is None


@pytest.mark.parametrize("asks", ["option", "condition"])
def test_references_are_scanned_only_of_a_wanted_catalog(
    store: Store, backend: CountingBackend, make_catalog: Callable[[str, str], Catalog], asks: str
) -> None:
    make_catalog("acme", "small")
    other = make_catalog("acme", "large")
    for number in range(50):
        other.create_branch(f"b{number}")
    asked = request("references", **({"catalog": "small"} if asks == "option" else {}))
    conditions = [] if asks == "option" else [EqualTo(("catalog",), "small")]
    bundles(store, asked, conditions)
    backend.scanned = 0

    assert {row["catalog"] for row in rows_of(store, asked, conditions)} == {"small"}
    assert backend.scanned == 4


def test_prefix_of_names_is_scanned_alone(store: Store, backend: CountingBackend, lake: Catalog) -> None:
    conditions = [StringStartsWith(("name",), "princ")]
    backend.scanned = 0

    found = [row["name"] for row in rows_of(store, request("references", realm="acme"), conditions)]
    assert found == ["principal-roles", "principals"]
    assert backend.scanned == 2


def test_database_without_order_gives_the_same_rows(settings: Settings, clock: FakeClock) -> None:
    with Store(UnorderedBackend(), url="memory://", settings=settings, clock=clock) as store:
        for realm in ("acme", "other"):
            make_realm(store, realm)
            Catalogs(RealmRegistry(store).open_realm(realm)).create_catalog("lake", base_location="s3://lake/")
        objects = rows_of(store, request("objects", realm="acme"), [GreaterThan(("id",), "0")])
        references = rows_of(store, request("references", realm="acme"), [EqualTo(("catalog",), "lake")])

        keys = [key for batch in RealmRegistry(store).open_realm("acme").scan_objects() for key in batch]
        assert sorted(row["id"] for row in objects) == sorted(id_text(key.id) for key in keys)
        assert sorted(str(row["ref"] or row["kind"]) for row in references) == ["grants", "main", "refs", "roles"]


# what is written


def test_reading_writes_nothing_and_leases_no_node(store: Store, lake: Catalog) -> None:
    with Store(store.backend, url="memory://", settings=store.settings, clock=store.clock) as other:
        before = rows_of(store, request("objects"))
        for table in TABLES:
            rows_of(other, request(table))

        assert rows_of(store, request("objects")) == before


@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_a_type_that_arrow_knows(store: Store, lake: Catalog, table: str) -> None:
    asked = request(table)

    assert arrow_schema(asked.columns).names == list(rows_of(store, asked)[0])
