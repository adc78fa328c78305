"""A release beside a later one: what it changes keeps the later one's fields, and what may point to more is not collected by it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fake_clock import FakeClock
from headwater.catalogs import CATALOGS, Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.commits import COLLECTION_ID, read_head
from headwater.errors import CorruptionError
from headwater.fsck import FindingCode, check_store
from headwater.fsck.explanation import explain
from headwater.gc import collect_realm
from headwater.realms import (
    PRINCIPALS,
    REALMS,
    CredentialsHash,
    HistoryRetention,
    MaintenanceSchedule,
    Realm,
    RealmManager,
    RealmRegistry,
    bootstrap,
    reset_principal,
)
from headwater.store import ObjectId, RealmStore, Store
from headwater.tasks import TaskQueue
from lakes import HOUR, rows_of
from newer_release import INVENTED, body_of, rewrite


def held_in(rows: RealmStore, reference: str, index: str, key: bytes) -> ObjectId:
    """The object that an index of a reference holds under a key."""
    at = read_head(rows, reference, fresh=True)
    value = None if at is None else at.index(index).get(key)
    assert value is not None and value.object_id is not None
    return value.object_id


def table_of(lake: Catalog) -> ObjectId:
    at = lake.resolve()
    value = None if at is None else at.index("content").get(ContentKey.of("orders").to_index())
    assert value is not None and value.object_id is not None
    return value.object_id


def widen(body: dict[str, Any], *inner: str) -> None:
    """Fields of a later release in an object and in structs inside of it."""
    body.update(INVENTED)
    for name in inner:
        held = body.setdefault(name, {})
        for struct in held if isinstance(held, list) else [held]:
            struct.update(INVENTED)


def test_realm_keeps_fields_of_a_later_release(store: Store) -> None:
    realms = RealmRegistry(store)
    realms.create_realm("acme", maintenance=MaintenanceSchedule(suspend=True), manager=RealmManager(name="a", uid="1"))
    by_id = lambda: held_in(store.system, REALMS, "by-id", b"acme")  # noqa: E731
    rewrite(store.system, by_id(), lambda body: widen(body, "maintenance", "manager", "retention"))
    bootstrap(realms, "acme", CredentialsHash(client_id="root", salt=b"", digest=b""))
    realm = realms.update_realm(
        realms.read_realm("acme"),
        retention=HistoryRetention(content_commits=2),
        maintenance=MaintenanceSchedule(),
        manager=None,
    )
    realms.update_realm(realm, properties={"team": "one"})
    kept = body_of(store.system, by_id())

    assert kept["invented"] == INVENTED["invented"]
    assert (kept["retention"], kept["maintenance"]) == ({"content_commits": 2, **INVENTED}, INVENTED)
    assert "manager" not in kept


def test_task_keeps_fields_of_a_later_release(store: Store, clock: FakeClock) -> None:
    tasks = TaskQueue(store)
    task_id = tasks.submit_task("gc", realm="acme").id
    first = tasks.claim_task(task_id, "worker-1")
    assert first is not None
    rewrite(store.system, task_id, lambda body: widen(body, "attempts"))
    first.fail_task("no luck")
    clock.advance(HOUR)
    second = tasks.claim_task(task_id, "worker-2")
    assert second is not None
    second.heartbeat()
    second.finish_task({"rows": 1})
    kept = body_of(store.system, task_id)

    assert kept["invented"] == INVENTED["invented"]
    assert ["invented" in attempt for attempt in kept["attempts"]] == [True, False]


def test_catalog_keeps_fields_of_a_later_release(realm_rows: RealmStore, lake: Catalog) -> None:
    catalogs = Catalogs(realm_rows)
    by_name = lambda: held_in(realm_rows, CATALOGS, "by-name", b"lake")  # noqa: E731
    rewrite(realm_rows, by_name(), lambda body: widen(body, "manager"))
    catalogs.update_catalog(catalogs.read_catalog("lake"), properties={"team": "one"})

    assert body_of(realm_rows, by_name())["manager"] == INVENTED
    assert body_of(realm_rows, by_name())["invented"] == INVENTED["invented"]


def test_principal_keeps_fields_of_a_later_release(store: Store) -> None:
    realms = RealmRegistry(store)
    realms.create_realm("acme")
    bootstrap(realms, "acme", CredentialsHash(client_id="root", salt=b"", digest=b""))
    by_name = lambda: held_in(rows_of(store), PRINCIPALS, "by-name", b"root")  # noqa: E731
    rewrite(rows_of(store), by_name(), widen)
    reset_principal(realms, "acme", "root", CredentialsHash(client_id="next", salt=b"", digest=b""))

    assert body_of(rows_of(store), by_name())["invented"] == INVENTED["invented"]


def test_changed_table_keeps_fields_of_a_later_release(realm_rows: RealmStore, lake: Catalog) -> None:
    key = ContentKey.of("orders")
    lake.commit("main", [Put(key, IcebergTable(metadata_location="s3://lake/orders/v1.json"))])
    rewrite(realm_rows, table_of(lake), widen)
    found = lake.get_content("main", key)
    assert isinstance(found, IcebergTable)
    lake.commit("main", [Put(key, msgspec.structs.replace(found, snapshot_id=7))])

    assert body_of(realm_rows, table_of(lake))["invented"] == INVENTED["invented"]


def test_record_of_a_collection_keeps_fields_of_a_later_release(store: Store, realm: Realm, realm_rows: RealmStore) -> None:
    collect_realm(store, "acme")
    rewrite(realm_rows, COLLECTION_ID, widen)
    collect_realm(store, "acme")

    assert body_of(realm_rows, COLLECTION_ID)["invented"] == INVENTED["invented"]


@pytest.mark.parametrize("held", ["table", "head", "record"])
def test_objects_that_may_point_to_more_stop_all_deletion(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock, held: str
) -> None:
    if held == "record":
        collect_realm(store, "acme")
        clock.advance(8 * HOUR)
    object_id = {"table": table_of(lake), "head": old_commits[-1], "record": COLLECTION_ID}[held]
    rewrite(realm_rows, object_id, widen, pointing=1)
    clock.advance(30 * 24 * HOUR)
    before = [key for batch in realm_rows.scan_objects() for key in batch]

    with pytest.raises(CorruptionError, match="was written by a later release"):
        collect_realm(store, "acme")
    assert [key for batch in realm_rows.scan_objects() for key in batch] == before


@pytest.mark.parametrize("held", ["table", "head"])
def test_fsck_names_what_may_point_to_more(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], held: str
) -> None:
    rewrite(realm_rows, table_of(lake) if held == "table" else old_commits[-1], widen, pointing=1)
    found = [one for one in check_store(store, realm="acme") if one.code is FindingCode.TYPE_UNKNOWN]

    assert len(found) == 1
    assert "use a release that knows all of this type" in found[0].repair


def test_record_that_may_point_to_more_is_a_collection_refused(store: Store, realm_rows: RealmStore, lake: Catalog) -> None:
    collect_realm(store, "acme")
    rewrite(realm_rows, COLLECTION_ID, widen, pointing=1)

    assert [one.code for one in check_store(store, realm="acme")] == [FindingCode.COLLECTION_REFUSED]


def test_fields_that_point_nowhere_keep_nobody_from_collecting(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    rewrite(realm_rows, table_of(lake), widen)
    clock.advance(30 * 24 * HOUR)

    assert collect_realm(store, "acme").deleted > 0
    assert not check_store(store, realm="acme")


def test_explanation_says_where_it_cannot_see(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId]
) -> None:
    stray = store.new_id()
    realm_rows.write_objects([(stray, IcebergTable(metadata_location="s3://lake/stray.json"))])
    rewrite(realm_rows, old_commits[-1], widen, pointing=1)

    assert "was written by a later release" in str(explain(store, "acme", stray))
