from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, ContentType, Delete, IcebergTable, Namespace, Put, TableClaims
from headwater.catalogs.importer.import_commit import ImportOptions, import_tables
from headwater.catalogs.importer.import_report import ImportReport
from headwater.commits import read_head
from headwater.errors import FencedError
from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable
from headwater.store import RealmStore

MakeFound = Callable[..., AcceptedTable]
Import = Callable[..., ImportReport]
NAMES = [f"{namespace}.t{number}" for namespace in ("sales", "web.eu") for number in range(4)]


class PowerCutError(Exception):
    """The process ends here."""


@pytest.fixture
def run(catalog: Catalog, claims: TableClaims) -> Import:
    def run(
        *outcomes: AcceptedTable | QuarantinedTable,
        into: Catalog = catalog,
        fence: Callable[[], None] | None = None,
        **options: Any,
    ) -> ImportReport:
        return import_tables(into, claims, outcomes, options=ImportOptions(**options), fence=fence)

    return run


@pytest.fixture
def tables(make_found: MakeFound) -> list[AcceptedTable]:
    return [make_found(name) for name in NAMES]


def names_in(catalog: Catalog) -> list[str]:
    return [str(entry.key) for entry in catalog.entries().entries if entry.type == ContentType.ICEBERG_TABLE]


def codes(report: ImportReport) -> dict[str, int]:
    return report.codes()


def state(catalog: Catalog, realm: RealmStore) -> tuple[Any, ...]:
    """Heads of everything that an import may write."""
    claimed, content = read_head(realm, "claims", fresh=True), catalog.resolve()
    return (claimed and claimed.id, content and content.id)


def test_tables_arrive_with_their_namespaces(run: Import, catalog: Catalog, tables: list[AcceptedTable]) -> None:
    report = run(*tables)

    assert names_in(catalog) == NAMES
    assert (report.imported, report.namespaces, len(report.commits)) == (8, 3, 1)
    assert isinstance(catalog.get_content(None, ContentKey.of("web", "eu")), Namespace)


def test_table_arrives_with_all_that_the_survey_found(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    found = make_found("sales.orders", version=3)

    run(found)

    table = catalog.get_content(None, ContentKey.of("sales", "orders"))
    assert isinstance(table, IcebergTable)
    assert (table.metadata_location, table.snapshot_id, table.table_uuid) == (found.metadata_location, 3, found.uuid)


def test_import_run_again_writes_nothing(run: Import, catalog: Catalog, realm: RealmStore, tables: list[AcceptedTable]) -> None:
    run(*tables)
    before = state(catalog, realm)

    report = run(*tables)

    assert state(catalog, realm) == before
    assert (report.imported, report.unchanged, report.commits) == (0, 8, ())


def test_commits_are_of_bounded_size(run: Import, catalog: Catalog, tables: list[AcceptedTable]) -> None:
    report = run(*tables, batch=3)

    assert len(report.commits) == 3
    assert [entry.hash for entry in catalog.log(oldest_first=True)] == list(report.commits)


@pytest.mark.parametrize("allowed", range(7))
def test_import_cut_off_anywhere_ends_as_if_run_once(
    run: Import, catalog: Catalog, claims: TableClaims, tables: list[AcceptedTable], allowed: int
) -> None:
    left = iter(range(allowed))

    def power() -> None:
        if next(left, None) is None:
            raise PowerCutError

    if allowed < 6:  # three batches, each a commit of claims and one of content
        with pytest.raises(PowerCutError):
            run(*tables, batch=3, fence=power)
    run(*tables, batch=3)

    contents = {
        str(entry.key): entry.content_id for entry in catalog.entries().entries if entry.type == ContentType.ICEBERG_TABLE
    }
    owners = {table.directory: claims.find_location(table.directory) for table in tables}
    assert list(contents) == NAMES
    assert {owner and owner.content_id for owner in owners.values()} == set(contents.values())
    assert len(list(catalog.log())) == 3


def test_dry_run_says_the_same_and_writes_nothing(
    run: Import, catalog: Catalog, realm: RealmStore, tables: list[AcceptedTable]
) -> None:
    before = state(catalog, realm)

    planned = run(*tables, dry_run=True)
    assert state(catalog, realm) == before
    done = run(*tables)

    assert (planned.imported, planned.namespaces, planned.codes()) == (done.imported, done.namespaces, done.codes())


def test_fenced_import_commits_nothing_more(run: Import, catalog: Catalog, tables: list[AcceptedTable]) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        run(*tables, fence=fence)

    assert names_in(catalog) == []


def test_sync_moves_forward_and_keeps_the_content_id(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    key = ContentKey.of("sales", "orders")
    run(make_found("sales.orders", version=1))
    before = catalog.get_content(None, key)

    report = run(make_found("sales.orders", version=2), mode="sync")

    after = catalog.get_content(None, key)
    assert (report.updated, report.imported) == (1, 0)
    assert before and after and before.id == after.id
    assert isinstance(after, IcebergTable)
    assert after.snapshot_id == 2


def test_table_of_another_catalog_is_refused(
    run: Import, make_catalog: Callable[[str], Catalog], make_found: MakeFound
) -> None:
    run(make_found("sales.orders"))

    for dry_run in (True, False):
        report = run(make_found("sales.orders"), into=make_catalog("other"), dry_run=dry_run)
        assert codes(report) == {"Claimed": 1}


def test_claim_of_a_deleted_catalog_is_reported_with_its_name(
    run: Import, realm: RealmStore, make_catalog: Callable[[str], Catalog], make_found: MakeFound
) -> None:
    run(make_found("sales.orders"))
    catalogs = Catalogs(realm)
    catalogs.delete_catalog("lake")

    same, inner = make_found("sales.orders"), make_found("sales.orders.inner")
    for found in (same, replace(inner, uuid=None)):
        [refused] = run(found, into=make_catalog(f"other{found.key[-1]}")).quarantined
        assert f"of the deleted catalog {realm.realm}/lake" in refused.message or (
            f"belongs to the deleted catalog {realm.realm}/lake" in refused.message
        )
        assert f"headwater catalog purge {realm.realm}/lake --confirm" in refused.message


def test_location_of_another_catalog_is_refused_without_a_uuid(
    run: Import, make_catalog: Callable[[str], Catalog], make_found: MakeFound
) -> None:
    run(make_found("sales.orders", uuid=None))

    report = run(make_found("sales.orders", uuid=None), into=make_catalog("other"))

    assert codes(report) == {"Claimed": 1}


def test_paths_of_a_table_are_claimed_with_it(run: Import, claims: TableClaims, make_found: MakeFound) -> None:
    run(replace(make_found("sales.orders"), paths=("s3://lake/apart",)))

    report = run(make_found("web.apart", place="s3://lake"), make_found("apart", place="s3://lake"))

    assert claims.find_location("s3://lake/apart") is not None
    assert codes(report) == {"Claimed": 1}


def test_table_with_files_in_a_place_of_another_is_refused(
    run: Import, make_catalog: Callable[[str], Catalog], make_found: MakeFound
) -> None:
    run(make_found("sales.orders"))
    thief = replace(make_found("web.thief"), elsewhere=("s3a://lake/wh/sales/orders/metadata",))

    for into, dry_run in ((make_catalog("other"), True), (make_catalog("other"), False)):
        report = run(thief, make_found("web.views"), into=into, dry_run=dry_run)
        assert (codes(report), report.imported) == ({"Claimed": 1}, 1)


@pytest.mark.parametrize(("batch", "imported"), [(500, "web.views"), (1, "sales.thief")])
def test_new_tables_that_share_files_yield_only_one(
    run: Import, catalog: Catalog, make_found: MakeFound, batch: int, imported: str
) -> None:
    thief = replace(make_found("sales.thief"), elsewhere=("s3a://lake/wh/web/views/metadata",))
    tables = [thief, make_found("web.views")]

    for dry_run in (True, False):
        report = run(*tables, batch=batch, dry_run=dry_run)
        assert (codes(report), report.imported) == ({"Claimed": 1}, 1)
    assert names_in(catalog) == [imported]


def test_table_that_is_there_keeps_its_place_from_later_ones(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    thief = replace(make_found("sales.thief"), elsewhere=("s3://lake/wh/web/views/metadata",))
    run(thief)

    report = run(thief, make_found("web.views"), batch=1)

    assert (codes(report), report.unchanged, names_in(catalog)) == ({"Claimed": 1}, 1, ["sales.thief"])
    assert "drop that one, or exclude this one" in report.quarantined[0].message


def test_import_without_a_name_says_so_in_its_commit(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    table = make_found("sales.orders")
    run(table)

    origin = catalog.known_metadata().find_many([table.metadata_location])[table.metadata_location]

    assert not origin.is_own


def test_files_in_a_place_of_nobody_are_no_reason(run: Import, make_found: MakeFound) -> None:
    run(make_found("sales.orders"))
    far = replace(make_found("web.far"), elsewhere=("s3://lake/wh/sales", "s3://lake/" + "x" * 600))

    assert run(far).imported == 1


def test_path_that_cannot_be_claimed_leaves_one_table_out(run: Import, make_found: MakeFound) -> None:
    long = replace(make_found("sales.orders"), paths=("s3://lake/" + "x" * 600,))

    report = run(long, make_found("web.views"))
    assert (codes(report), report.imported) == ({"BadLocation": 1}, 1)


def test_refusal_names_no_other_catalog_and_no_content(
    run: Import, make_catalog: Callable[[str], Catalog], catalog: Catalog, make_found: MakeFound
) -> None:
    run(make_found("sales.orders"))
    (content_id,) = (entry.content_id for entry in catalog.entries().entries if entry.type == ContentType.ICEBERG_TABLE)

    report = run(make_found("sales.orders"), make_found("in", place="s3://lake/wh/sales/orders"), into=make_catalog("other"))

    told = " ".join(row.message for row in report.quarantined)
    assert (len(report.quarantined), catalog.definition.id in told, str(content_id) in told) == (2, False, False)


def test_table_within_the_location_of_another_is_refused(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    run(make_found("sales.orders"))

    report = run(make_found("inner", place="s3://lake/wh/sales/orders"), make_found("web.views"))

    assert codes(report) == {"Claimed": 1}
    assert names_in(catalog) == ["sales.orders", "web.views"]


def test_refused_table_leaves_no_namespace(
    run: Import, catalog: Catalog, make_catalog: Callable[[str], Catalog], make_found: MakeFound
) -> None:
    run(make_found("sales.orders"), into=make_catalog("other"))

    report = run(make_found("sales.orders"))

    assert (report.namespaces, catalog.count()) == (0, 0)


def test_renamed_table_does_not_come_back_under_its_old_key(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    old, new = ContentKey.of("sales", "orders"), ContentKey.of("sales", "all_orders")
    run(make_found("sales.orders"))
    table = catalog.get_content(None, old)
    assert table
    catalog.commit(None, [Delete(old), Put(new, table)])

    report = run(make_found("sales.orders"))

    assert codes(report) == {"Claimed": 1}
    assert "sales.all_orders" in report.quarantined[0].message


def test_deleted_table_comes_back_by_an_import(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    run(make_found("sales.orders"))
    catalog.commit(None, [Delete(ContentKey.of("sales", "orders"))])

    assert run(make_found("sales.orders")).imported == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_change_beside_the_import_is_planned_anew(run: Import, catalog: Catalog, make_found: MakeFound, is_first: bool) -> None:
    if not is_first:
        catalog.commit(None, [Put(ContentKey.of("web"), Namespace())])
    meddled: list[str] = []

    def meddle() -> None:
        if not meddled:
            meddled.append("once")
            catalog.commit(None, [Put(ContentKey.of("sales"), Namespace(properties={"by": "another"}))])

    report = run(make_found("sales.orders"), fence=meddle)

    assert (report.imported, report.namespaces) == (1, 0)
    assert names_in(catalog) == ["sales.orders"]


def test_every_table_of_a_survey_is_counted_once(run: Import, make_found: MakeFound, tables: list[AcceptedTable]) -> None:
    broken = QuarantinedTable(directory="s3://lake/wh/x", key=("x",), code=QuarantineCode.CORRUPT, message="broken")
    run(*tables[:3])

    report = run(*random.sample([*tables, broken], 9))

    assert (report.surveyed, report.imported, report.unchanged, codes(report)) == (9, 5, 3, {"Corrupt": 1})


def test_outcome_lists_a_bounded_number_of_tables_and_their_total(run: Import) -> None:
    rows = [
        QuarantinedTable(directory=f"s3://lake/{n}", key=(str(n),), code=QuarantineCode.CORRUPT, message="x")
        for n in range(150)
    ]

    outcome = run(*rows).outcome()

    assert outcome["quarantined"]["total"] == 150
    assert len(outcome["quarantined"]["shown"]) == 100
    assert outcome["quarantined"]["codes"] == {"Corrupt": 150}


def test_progress_counts_tables_batch_by_batch(catalog: Catalog, claims: TableClaims, tables: list[AcceptedTable]) -> None:
    seen: list[tuple[int, int, str]] = []

    import_tables(catalog, claims, tables, options=ImportOptions(batch=3), progress=lambda *numbers: seen.append(numbers))

    assert seen == [(3, 8, "tables imported"), (6, 8, "tables imported"), (8, 8, "tables imported")]


def test_import_that_slept_between_claims_and_commit_claims_anew(
    run: Import, claims: TableClaims, clock: FakeClock, make_found: MakeFound
) -> None:
    table, calls = make_found("sales.orders"), 0

    def sleep_before_the_commit() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:  # the first is the claims' own
            clock.advance(3600)

    report = run(table, fence=sleep_before_the_commit)

    owner = claims.find_location(table.directory)
    assert report.imported == 1
    assert owner is not None and owner.taken >= clock.now() - 1_000_000
