from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from expiring_lake import MINUTE, ExpiringLake
from headwater.catalogs import HEADWATER, IcebergTable, KeyMerge, MergeMode, MergeOptions, Put
from headwater.commits import read_head
from headwater.errors import FencedError, RefusedError
from headwater.expiry import AskedRules, ExpiryCounts
from headwater.expiry.looked_tables import LOOKED, POLICY_MAPPINGS
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog import TableCommit
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import RealmStore, Store

THREE = ("lines", "orders", "refunds")


class SlowStorage(TableStorage):
    """Somebody else acts before each of the first files is written."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        super().__init__(realm="acme", catalog="lake")
        self._acts = list(acts)

    def write_new(self, location: str, data: bytes) -> None:
        if self._acts:
            self._acts.pop(0)()
        super().write_new(location, data)


def raising(error: BaseException, *, at: int) -> Callable[[], None]:
    """A fence that raises at a call, 0 for the first."""
    calls = iter(range(100))

    def fence() -> None:
        if next(calls) == at:
            raise error

    return fence


def small_batches(lake: ExpiringLake, **settings: int) -> RealmStore:
    """The realm as another process has it, whose commits have one table each."""
    chosen = Settings(expire_batch=1, **settings)
    store = Store(lake.store.backend, url="memory://", settings=chosen, clock=lake.clock)
    return RealmRegistry(store).open_realm("acme")


def counted(counts: ExpiryCounts) -> dict[str, object]:
    """The counts that are not zero, without what says where."""
    return {name: value for name, value in counts.as_plain().items() if value and name not in ("realm", "catalog")}


def test_expiry_commits_many_tables_at_once(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=3)
    before = lake.load("orders")

    counts = lake.expire()

    assert counted(counts) == {
        "branches": 1, "looked": 3, "changed": 3, "snapshots": 6, "logEntries": 6, "commits": 1,
    }  # fmt: skip
    assert [lake.snapshots(name) for name in THREE] == [[3], [3], [3]]
    newest = next(iter(lake.catalog.log()))
    assert (newest.message, newest.meta.authors, newest.meta.committer) == (
        "expire snapshots of sales.lines, sales.orders, sales.refunds",
        (HEADWATER,),
        HEADWATER,
    )
    after = lake.load("orders")
    assert after.document["metadata-log"][-1]["metadata-file"] == before.metadata_location
    assert TableStorage().read_metadata(after.metadata_location) == after.text


def test_dry_run_counts_the_same_and_writes_nothing(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=3)
    heads = {name: lake.rows.find_reference(name, fresh=True) for name in ("policy-mappings", "claims")}
    head, files = lake.catalog.branch("main").head, lake.files()

    dry = lake.expire(is_dry=True)

    assert lake.catalog.branch("main").head == head and lake.files() == files
    assert {name: lake.rows.find_reference(name, fresh=True) for name in heads} == heads
    assert counted(dry) | {"commits": 1} == counted(lake.expire()) | {"dryRun": True}
    assert dry.snapshots == 6


def test_other_branches_tags_and_history_see_what_they_saw(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=4)
    lake.catalog.create_branch("dev")
    lake.catalog.create_tag("v1")
    lake.catalog.create_branch("gone")
    lake.catalog.delete_branch("gone")
    head = lake.catalog.branch("main").hash
    text = lake.load("orders").text

    lake.expire(branches="main")
    lake.catalog.undelete_branch("gone")

    assert lake.snapshots("orders") == [4]
    for other in ("dev", "v1", "gone", head):
        assert lake.load("orders", other).text == text


def test_branches_are_chosen_by_their_pattern(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=3)
    for branch in ("etl/a", "etl/b", "dev"):
        lake.catalog.create_branch(branch)

    assert lake.expire(branches="etl/*").branches == 2

    left = {branch.name: len(lake.snapshots("orders", branch.name)) for branch in lake.catalog.branches()}
    assert left == {"main": 3, "dev": 3, "etl/a": 1, "etl/b": 1}


def test_branch_that_only_inherits_can_still_be_merged(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=2)
    lake.catalog.create_branch("dev")
    lake.append("lines", branch="dev")
    lake.create("late", snapshots=2)

    counts = lake.expire()

    assert (counts.inherited, counts.changed) == (2, 5)
    assert [lake.snapshots(name, "dev") for name in THREE] == [[3], [1, 2], [1, 2]]
    merged = lake.catalog.merge("dev", options=MergeOptions(keys={lake.key("lines"): KeyMerge(mode=MergeMode.FORCE)}))
    assert merged.conflicts == () and lake.snapshots("orders") == [2]


def test_branch_expires_what_it_inherits_where_the_default_does_not(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=3)
    lake.catalog.create_branch("dev")

    assert lake.expire(branches="d*").inherited == 0
    assert (lake.snapshots("orders"), lake.snapshots("orders", "dev")) == ([1, 2, 3], [3])


def test_guests_are_left_alone_and_counted(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=3)
    lake.create("lines", snapshots=3)
    lake.homes.remove(lake.load("lines").content_id)

    assert counted(lake.expire()) == {
        "branches": 1, "looked": 1, "guests": 1, "changed": 1, "snapshots": 2, "logEntries": 2, "commits": 1,
    }  # fmt: skip
    assert lake.snapshots("lines") == [1, 2, 3]


def test_table_that_collects_no_garbage_is_refused(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=3)
    lake.set_properties("orders", **{"gc.enabled": "false"})

    first, second = lake.expire(), lake.expire()

    assert (first.refused, first.looked) == ({"GcDisabled": 1}, 1)
    assert (second.refused, second.looked, second.unchanged) == ({"GcDisabled": 1}, 0, 1)
    assert lake.snapshots("orders") == [1, 2, 3]


@pytest.mark.parametrize("limit", ["max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms"])
def test_limit_that_cannot_be_read_keeps_everything(lake: ExpiringLake, limit: str) -> None:
    lake.create("orders", snapshots=3)
    lake.set_properties("orders", **{f"history.expire.{limit}": "-1"})
    lake.clock.advance(60 * 24 * 3600)

    lake.expire(AskedRules())

    assert lake.snapshots("orders") == [1, 2, 3]


@pytest.mark.parametrize(("rules", "left"), [(AskedRules(max_age_ms=0), 3), (AskedRules(max_age_ms=0, keep=1), 1)])
def test_limit_that_a_person_names_is_not_read(lake: ExpiringLake, rules: AskedRules, left: int) -> None:
    lake.create("orders", snapshots=3)
    lake.set_properties("orders", **{"history.expire.min-snapshots-to-keep": "five"})

    lake.expire(rules)

    assert len(lake.snapshots("orders")) == left


def test_unchanged_table_is_looked_at_when_it_is_due(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=3)
    rules = AskedRules(max_age_ms=round(10.5 * MINUTE * 1000), keep=1)

    looked = []
    for _ in range(14):
        looked.append(lake.expire(rules).looked)
        lake.clock.advance(MINUTE)

    assert looked == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]
    assert lake.snapshots("orders") == [3]


def test_changed_table_is_looked_at_again(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=2)
    lake.expire()
    lake.append("orders")

    counts = lake.expire()

    assert (counts.looked, counts.unchanged, counts.changed) == (1, 2, 1)
    assert lake.expire(AskedRules(max_age_ms=0, keep=2)).looked == 3


def test_memory_forgets_tables_and_branches_that_are_gone(lake: ExpiringLake) -> None:
    def remembered() -> int:
        head = read_head(lake.rows, POLICY_MAPPINGS, fresh=True)
        return 0 if head is None else len(head.index(LOOKED))

    for name in THREE:
        lake.create(name, snapshots=2)
    lake.catalog.create_branch("dev")
    lake.expire()
    lake.expire(branches="dev")
    assert remembered() == 6

    lake.on().tables.drop(lake.key("orders"))
    lake.catalog.delete_branch("dev")
    lake.expire()

    assert remembered() == 2


def test_table_that_another_commit_changed_is_decided_anew(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=3)
    files = lake.files()

    counts = lake.expire(storage=SlowStorage(lambda: lake.tag("orders", "v2", 2)))

    assert [lake.snapshots(name) for name in THREE] == [[3], [2, 3], [3]]
    assert lake.load("orders").document["refs"]["v2"]["snapshot-id"] == 2
    assert (counts.changed, counts.conflicts, counts.commits, counts.left) == (3, 1, 2, 0)
    assert len(lake.files() - files) == 4  # three versions, and that of the tag


def test_engine_goes_on_from_what_it_loaded_before(lake: ExpiringLake) -> None:
    loaded = lake.create("orders", snapshots=3)
    requirements = [
        {"type": "assert-table-uuid", "uuid": loaded.document["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 3},
    ]
    lake.expire()

    update = {"action": "set-properties", "updates": {"owner": "ada"}}
    lake.on().tables.commit(TableCommit(loaded.key, requirements, [update]))

    assert (lake.snapshots("orders"), lake.load("orders").document["properties"]) == ([3], {"owner": "ada"})


def test_table_that_is_always_changed_is_left_to_the_next_run(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=2)

    counts = lake.expire(storage=SlowStorage(*[lambda: lake.append("orders")] * 6))

    assert (counts.changed, counts.conflicts, counts.left) == (0, 6, 1)
    assert lake.snapshots("orders") == list(range(1, 9))
    assert lake.expire().changed == 1


def test_table_that_was_dropped_meanwhile_is_passed_over(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=2)

    counts = lake.expire(storage=SlowStorage(lambda: lake.on().tables.drop(lake.key("orders"))))

    assert (counts.changed, counts.left) == (2, 0)


def test_branch_that_was_deleted_meanwhile_is_passed_over(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=2)
    lake.catalog.create_branch("dev")

    deleting = SlowStorage(lambda: lake.catalog.delete_branch("dev"))
    counts = lake.expire(branches="d*", storage=deleting)

    assert (counts.branches, counts.changed) == (0, 0)


def test_switch_stops_before_the_next_batch(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=2)
    files, calls = lake.files(), iter(range(100))

    def check() -> None:
        if next(calls) == 4:
            raise RefusedError("stopped")

    expiry = lake.expiry(check=check, rows=small_batches(lake))
    with pytest.raises(RefusedError, match="stopped"):
        expiry.expire()

    assert expiry.counts.changed == len(lake.files() - files) == 1
    assert lake.expire().changed == 2


def test_run_that_lost_its_task_leaves_no_file(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=2)
    files, head = lake.files(), lake.catalog.branch("main").head

    with pytest.raises(FencedError):
        lake.expiry(fence=raising(FencedError("another attempt has the task"), at=1)).expire()

    assert (lake.files(), lake.catalog.branch("main").head) == (files, head)


def test_run_that_died_behind_a_commit_does_nothing_twice(lake: ExpiringLake) -> None:
    lake.create("orders", snapshots=3)
    before = lake.catalog.branch("main").head

    def fence() -> None:
        if lake.catalog.branch("main").head != before:
            raise SystemExit("killed")

    with pytest.raises(SystemExit):
        lake.expiry(fence=fence).expire()
    files, head = lake.files(), lake.catalog.branch("main").head

    counts = lake.expire()

    assert (lake.snapshots("orders"), counts.looked, counts.changed) == ([3], 1, 0)
    assert (lake.files(), lake.catalog.branch("main").head) == (files, head)


def test_limited_run_takes_its_time(lake: ExpiringLake) -> None:
    for name in THREE:
        lake.create(name, snapshots=2)
    before = lake.clock.monotonic()

    assert lake.expiry(rows=small_batches(lake, expire_tables_per_second=2)).expire().commits == 3

    assert lake.clock.monotonic() - before == pytest.approx(1.5)


def test_table_without_stored_metadata_is_read_from_its_file(lake: ExpiringLake) -> None:
    table, key = lake.create("orders", snapshots=3), lake.key("moved")
    content = lake.catalog.get_content(None, table.key)
    assert isinstance(content, IcebergTable)
    lake.on().tables.drop(table.key)
    lake.catalog.commit(None, [Put(key, replace(content, id=None))], content_ids={key: table.content_id})
    assert lake.catalog.metadata(None, key) is None

    assert lake.expire().snapshots == 2
    assert lake.snapshots("moved") == [3]


def test_unreadable_table_is_counted_and_named(lake: ExpiringLake) -> None:
    table, key = lake.create("orders", snapshots=3), lake.key("moved")
    content = lake.catalog.get_content(None, table.key)
    assert isinstance(content, IcebergTable)
    lake.on().tables.drop(table.key)
    lake.catalog.commit(None, [Put(key, replace(content, id=None))], content_ids={key: table.content_id})
    Path(table.metadata_location.removeprefix("file://")).unlink()

    counts = lake.expire()

    assert (counts.unreadable, counts.changed) == (1, 0)
    assert counts.notes[0].startswith("table sales.moved of branch 'main' was left alone: ")
    assert lake.expire().looked == 1
