"""A commit that happened is never told as failed: its author would delete its files, or roll the branch back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from commits_of_engines import ORDERS, SALES, SCHEMA, added, append, creation_of, on, put_on, set_properties

from headwater.catalogs import Catalog, ContentKey
from headwater.errors import NotFoundError, UnknownOutcomeError
from headwater.iceberg.changes import ChangeFormError, RequirementFailedError
from headwater.iceberg_catalog import (
    IcebergCatalog,
    LoadedTable,
    NoSuchTableError,
    TableCommit,
    TableCreation,
)
from headwater.iceberg_catalog.earlier_commits import CommitVerdict, judge_commit


def snapshots_of(table: LoadedTable) -> list[int]:
    return [snapshot["snapshot-id"] for snapshot in table.document["snapshots"]]


def test_commit_that_is_sent_again_is_answered_with_the_table(
    lake: IcebergCatalog, orders: LoadedTable, files: Callable[[], set[str]]
) -> None:
    first = lake.tables.commit(append(orders, 1))
    before = files()

    assert lake.tables.commit(append(orders, 1)).etag == first.etag
    assert files() == before


def test_commit_below_another_append_is_known(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    second = lake.tables.commit(append(orders, 2, after=1, number=2))

    assert lake.tables.commit(append(orders, 1)).etag == second.etag


def test_commit_that_lost_the_race_fails(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))

    with pytest.raises(RequirementFailedError, match="Requirement failed: branch main"):
        lake.tables.commit(append(orders, 2))


def test_commit_without_snapshots_is_judged_by_its_requirements(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))

    with pytest.raises(RequirementFailedError):
        lake.tables.commit(set_properties(ORDERS, on("main", None), owner="ann"))


def test_commit_back_onto_main_after_a_rollback_is_refused(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    lake.tables.commit(append(orders, 2, after=1, number=2))
    lake.tables.commit(TableCommit(ORDERS, [on("main", 2)], [put_on("main", 1)]))

    with pytest.raises(ChangeFormError, match="Snapshot already exists for id: 2"):
        lake.tables.commit(append(orders, 2, after=1, number=2))


def test_commit_with_another_manifest_list_fails(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    again = append(orders, 1)
    again.updates[0]["snapshot"]["manifest-list"] += ".other"

    with pytest.raises(RequirementFailedError):
        lake.tables.commit(again)
    with pytest.raises(ChangeFormError, match="Snapshot already exists for id: 1"):
        lake.tables.commit(TableCommit(ORDERS, [], again.updates))


def test_snapshot_that_is_added_again_for_another_branch_is_refused(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))

    with pytest.raises(ChangeFormError, match="Snapshot already exists for id: 1"):
        lake.tables.commit(TableCommit(ORDERS, [on("dev", None)], [added(orders, 1), put_on("dev", 1)]))


@pytest.mark.parametrize(
    "more",
    [
        {"action": "set-properties", "updates": {"owner": "ann"}},
        {"action": "set-snapshot-ref", "ref-name": "dev", "type": "branch", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1, "min-snapshots-to-keep": 5},
    ],
    ids=["property", "branch", "retention"],
)
def test_commit_that_adds_a_snapshot_again_and_more_is_not_reported_as_done(
    lake: IcebergCatalog, orders: LoadedTable, more: dict[str, object]
) -> None:
    first = append(orders, 1)
    lake.tables.commit(first)

    with pytest.raises(UnknownOutcomeError, match="send what is missing in another commit"):
        lake.tables.commit(TableCommit(ORDERS, first.requirements, [*first.updates, more]))


def test_commit_is_known_although_others_have_changed_what_it_set(lake: IcebergCatalog, orders: LoadedTable) -> None:
    first = append(orders, 1)
    with_owner = TableCommit(ORDERS, first.requirements, [*first.updates, *set_properties(ORDERS, owner="ann").updates])
    lake.tables.commit(with_owner)
    lake.tables.commit(append(orders, 2, after=1, number=2))
    last = lake.tables.commit(set_properties(ORDERS, owner="bob"))

    assert lake.tables.commit(with_owner).etag == last.etag


def test_creation_with_a_uuid_that_is_there_and_more_fails(lake: IcebergCatalog) -> None:
    creation = creation_of(lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA)).document)
    lake.tables.commit(creation)
    more = [*creation.updates, *set_properties(ORDERS, owner="ann").updates]

    with pytest.raises(RequirementFailedError, match="table already exists"):
        lake.tables.commit(TableCommit(ORDERS, creation.requirements, more))


def test_change_of_another_table_beside_a_known_commit_is_not_dropped(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable
) -> None:
    lake.tables.commit(append(orders, 1))

    with pytest.raises(UnknownOutcomeError):
        lake.tables.commit_many([append(orders, 1), set_properties(lines.key, owner="ann")])


def test_commits_of_several_tables_are_known_after_further_changes(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable, catalog: Catalog
) -> None:
    commits = [append(orders, 1), set_properties(lines.key, owner="ann")]
    lake.tables.commit_many(commits)
    lake.tables.commit(set_properties(lines.key, owner="bob"))
    head = catalog.branch("main").head

    lake.tables.commit_many(commits)

    assert catalog.branch("main").head == head


def test_commit_of_which_a_part_is_there_has_an_unknown_outcome(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    both = [added(orders, 1), added(orders, 2, parent=1, number=2), put_on("main", 2)]

    with pytest.raises(UnknownOutcomeError):
        lake.tables.commit(TableCommit(ORDERS, [on("main", None)], both))


def test_commit_whose_snapshot_expired_since_is_known(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    lake.tables.commit(append(orders, 2, after=1, number=2))
    last = lake.tables.commit(TableCommit(ORDERS, [], [{"action": "remove-snapshots", "snapshot-ids": [1]}]))

    assert lake.tables.commit(append(orders, 1)).etag == last.etag
    assert snapshots_of(last) == [2]


def test_expired_snapshot_is_known_after_a_rename(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    lake.tables.commit(append(orders, 2, after=1, number=2))
    lake.tables.commit(TableCommit(ORDERS, [], [{"action": "remove-snapshots", "snapshot-ids": [1]}]))
    renamed = lake.tables.rename(ORDERS, SALES.child("moved"))

    again = append(orders, 1)
    assert lake.tables.commit(TableCommit(renamed.key, again.requirements, again.updates)).etag == renamed.etag


def test_commit_before_a_drop_has_an_unknown_outcome(lake: IcebergCatalog, orders: LoadedTable) -> None:
    """Kept commits hold the table, and after a 404 its author would delete their files."""
    lake.tables.commit(append(orders, 1))
    lake.tables.drop(ORDERS)

    with pytest.raises(UnknownOutcomeError):
        lake.tables.commit(append(orders, 1))
    with pytest.raises(NoSuchTableError):
        lake.tables.commit(append(orders, 2))


def test_expired_snapshot_is_known_below_many_commits(lake: IcebergCatalog, orders: LoadedTable) -> None:
    lake.tables.commit(append(orders, 1))
    for number in range(45):
        lake.namespaces.create(ContentKey.of(f"other-{number}"), {})
    lake.tables.commit(append(orders, 2, after=1, number=2))
    last = lake.tables.commit(TableCommit(ORDERS, [], [{"action": "remove-snapshots", "snapshot-ids": [1]}]))

    assert lake.tables.commit(append(orders, 1)).etag == last.etag


def test_search_that_ends_too_early_is_unclear(lake: IcebergCatalog, orders: LoadedTable, catalog: Catalog) -> None:
    lake.tables.commit(append(orders, 1))
    lake.tables.commit(append(orders, 2, after=1, number=2))
    last = lake.tables.commit(TableCommit(ORDERS, [], [{"action": "remove-snapshots", "snapshot-ids": [1]}]))
    state, again = lake.session.state(), append(orders, 1)

    assert judge_commit(state, last.document, again) is CommitVerdict.HAPPENED
    assert judge_commit(state, last.document, again, within=1) is CommitVerdict.UNCLEAR


def test_lost_race_is_told_from_the_present_version(lake: IcebergCatalog, orders: LoadedTable) -> None:
    """Its metadata log says when the version before was made: nothing else is read, however far away that is."""
    for number in (1, 2):
        late = append(orders, number, after=number - 1 or None, number=number)
        late.updates[0]["snapshot"]["timestamp-ms"] += number * 1000
        last = lake.tables.commit(late)
    lost = append(orders, 7, after=1, number=2)
    lost.updates[0]["snapshot"]["timestamp-ms"] += 2000

    assert judge_commit(lake.session.state(), last.document, lost, within=1) is CommitVerdict.NEW


def test_commit_to_a_table_that_was_replaced_has_an_unknown_outcome(
    lake: IcebergCatalog, orders: LoadedTable, make_table: Callable[..., LoadedTable]
) -> None:
    def asserted(commit: TableCommit) -> TableCommit:
        uuid = {"type": "assert-table-uuid", "uuid": orders.document["table-uuid"]}
        return TableCommit(ORDERS, [uuid, *commit.requirements], commit.updates)

    lake.tables.commit(asserted(append(orders, 1)))
    lake.tables.drop(ORDERS)
    make_table()

    with pytest.raises(UnknownOutcomeError):
        lake.tables.commit(asserted(append(orders, 1)))
    with pytest.raises(RequirementFailedError, match="UUID does not match"):
        lake.tables.commit(asserted(append(orders, 2)))


def test_commit_to_a_deleted_branch_has_an_unknown_outcome(
    lake: IcebergCatalog, orders: LoadedTable, catalog: Catalog, open_lake: Callable[..., IcebergCatalog]
) -> None:
    """It may be merged: after a 404 its author would delete files that another branch has."""
    catalog.create_branch("dev")
    dev = open_lake("dev")
    dev.tables.commit(append(orders, 1))
    catalog.merge("dev", "main")
    catalog.delete_branch("dev")

    for door in (dev, open_lake("dev")):
        with pytest.raises(UnknownOutcomeError, match="keep its files"):
            door.tables.commit(append(orders, 1))
    with pytest.raises(NotFoundError):
        open_lake("dev").tables.commit(set_properties(ORDERS, owner="ann"))


def test_snapshot_that_no_branch_got_is_known(lake: IcebergCatalog, orders: LoadedTable) -> None:
    staged = TableCommit(ORDERS, [], [added(orders, 1)])
    first = lake.tables.commit(staged)

    assert lake.tables.commit(staged).etag == first.etag


def test_creation_that_is_sent_again_is_answered_with_the_table(lake: IcebergCatalog) -> None:
    staged = lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA))
    creation = creation_of(staged.document)
    first = lake.tables.commit(creation)

    assert lake.tables.commit(creation).etag == first.etag


def test_creation_of_another_table_fails(lake: IcebergCatalog, orders: LoadedTable) -> None:
    staged = lake.tables.stage(TableCreation(key=SALES.child("new"), schema=SCHEMA))
    creation = creation_of(staged.document)

    with pytest.raises(RequirementFailedError, match="table already exists"):
        lake.tables.commit(TableCommit(ORDERS, creation.requirements, creation.updates))


def test_commits_of_several_tables_are_known_together(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable, catalog: Catalog
) -> None:
    commits = [append(orders, 1), set_properties(lines.key, owner="ann")]
    lake.tables.commit_many(commits)
    head = catalog.branch("main").head

    lake.tables.commit_many(commits)

    assert catalog.branch("main").head == head


def test_commits_of_which_one_happened_have_an_unknown_outcome(
    lake: IcebergCatalog, orders: LoadedTable, lines: LoadedTable
) -> None:
    lake.tables.commit(append(orders, 1))

    with pytest.raises(UnknownOutcomeError):
        lake.tables.commit_many([append(orders, 1), append(lines, 7)])
