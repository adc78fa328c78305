"""What a caller with few rights may do with branches and tags, and the ways around its rights through them that are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from commits_of_engines import ORDERS, SALES, SCHEMA, append

from headwater.access import AccessRule, AccessRules, ForbiddenError, Privilege, Securable, SecurableKind
from headwater.catalogs import Catalog, ContentKey
from headwater.errors import NotFoundError
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, ReferenceAccess, TableCreation

K, P = SecurableKind, Privilege
CATALOG = Securable(kind=K.CATALOG, catalog="lake")
MINE = ContentKey.of("mine")
COPY = MINE.child("copy")
Grant = tuple[Privilege, Securable, str]
AccessOf = Callable[..., ReferenceAccess]


def below(*path: str) -> Securable:
    return Securable(kind=K.NAMESPACE, catalog="lake", path=path)


def references(pattern: str) -> Securable:
    return Securable(kind=K.REFERENCE, catalog="lake", pattern=pattern)


@pytest.fixture
def access_of(catalog: Catalog) -> AccessOf:
    def make(*grants: Grant) -> ReferenceAccess:
        rules = AccessRules([AccessRule(privilege=privilege, on=on, references=where) for privilege, on, where in grants])
        return ReferenceAccess(catalog.definition, rules)

    return make


@pytest.fixture
def dev(
    open_lake: Callable[..., IcebergCatalog], lake: IcebergCatalog, catalog: Catalog, orders: LoadedTable
) -> IcebergCatalog:
    """A branch with a table of its own, and a change of one that the default branch has, too."""
    catalog.create_branch("dev")
    branch = open_lake("dev")
    branch.namespaces.create(MINE, {})
    branch.tables.create(TableCreation(key=COPY, schema=SCHEMA))
    branch.tables.commit(append(orders, 1))
    return branch


EVERYTHING = (P.CATALOG_MANAGE_CONTENT, CATALOG, "")
READS_DEV = (P.TABLE_READ_DATA, CATALOG, "dev"), (P.NAMESPACE_READ_PROPERTIES, CATALOG, "dev")
WRITES_MINE = (
    (P.TABLE_FULL_METADATA, below("mine"), ""),
    (P.NAMESPACE_CREATE, below("mine"), ""),
    (P.TABLE_READ_DATA, below("sales"), ""),
    (P.NAMESPACE_LIST, CATALOG, ""),
)


def test_merge_needs_a_right_for_every_key(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    guard = access_of(*READS_DEV, *WRITES_MINE).merge_guard("dev", "main")
    before = catalog.branch("main").head

    with pytest.raises(ForbiddenError, match=r"TABLE_WRITE_DATA on table sales\.orders"):
        catalog.merge("dev", guard=guard)
    assert catalog.branch("main").head == before
    allowed = access_of(*READS_DEV, *WRITES_MINE, (P.TABLE_WRITE_DATA, below("sales"), "")).merge_guard("dev", "main")
    assert catalog.merge("dev", guard=allowed).is_applied


def test_merge_brings_nothing_that_may_not_be_read_at_its_source(
    catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf
) -> None:
    writes = (P.TABLE_FULL_METADATA, CATALOG, ""), (P.TABLE_WRITE_DATA, CATALOG, ""), (P.NAMESPACE_CREATE, CATALOG, "")
    sees = (P.TABLE_LIST, CATALOG, "dev"), (P.NAMESPACE_READ_PROPERTIES, CATALOG, "dev")

    with pytest.raises(ForbiddenError, match=r"TABLE_READ_DATA on table mine\.copy of catalog lake on dev"):
        catalog.merge("dev", guard=access_of(*writes, *sees).merge_guard("dev", "main"))


def test_merge_without_any_right_at_its_source_finds_none(dev: IcebergCatalog, access_of: AccessOf) -> None:
    with pytest.raises(NotFoundError, match="no reference 'dev'"):
        access_of((P.TABLE_WRITE_DATA, CATALOG, "main")).merge_guard("dev", "main")


def test_merge_tells_no_conflict_of_what_may_not_be_seen(
    catalog: Catalog, lake: IcebergCatalog, orders: LoadedTable, dev: IcebergCatalog, access_of: AccessOf
) -> None:
    lake.tables.commit(append(orders, 2))
    held = (P.TABLE_FULL_METADATA, below("mine"), "dev"), (P.TABLE_READ_DATA, below("mine"), "dev")

    with pytest.raises(ForbiddenError) as refused:
        catalog.merge("dev", guard=access_of(*held, *WRITES_MINE[:2]).merge_guard("dev", "main"))
    assert "orders" not in str(refused.value)


def test_merge_drops_nothing_without_the_right_to_drop(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    dev.tables.drop(ORDERS)
    writes = (P.TABLE_WRITE_DATA, CATALOG, ""), (P.TABLE_CREATE, CATALOG, ""), (P.NAMESPACE_CREATE, CATALOG, "")

    with pytest.raises(ForbiddenError, match=r"TABLE_DROP on table sales\.orders"):
        catalog.merge("dev", guard=access_of(*READS_DEV, *writes).merge_guard("dev", "main"))


def test_transplant_needs_what_a_merge_needs(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    head = catalog.branch("dev").head
    assert head is not None

    with pytest.raises(ForbiddenError, match="TABLE_WRITE_DATA"):
        catalog.transplant("dev", [head], guard=access_of(*READS_DEV, *WRITES_MINE).merge_guard("dev", "main"))
    assert catalog.transplant("dev", [head], guard=access_of(EVERYTHING).merge_guard("dev", "main")).is_applied


def test_branch_gives_its_maker_nothing_new(dev: IcebergCatalog, access_of: AccessOf) -> None:
    creates = (P.REFERENCE_CREATE, references("me-*"), "")
    reads_mine = (P.TABLE_READ_DATA, below("mine"), "me-*")
    sees_main = (P.TABLE_READ_DATA, below("sales"), "")

    with pytest.raises(ForbiddenError, match="would show you what you may not see of 'main'"):
        access_of(creates, reads_mine, sees_main).check_creation("me-1", "main")
    access_of(creates, (P.TABLE_READ_DATA, below("mine"), "*"), sees_main).check_creation("me-1", "main")
    access_of(creates, reads_mine, sees_main, (P.TABLE_WRITE_DATA, CATALOG, "")).check_creation("me-1", None)
    with pytest.raises(ForbiddenError, match=r"REFERENCE_CREATE on reference other"):
        access_of(creates, sees_main).check_creation("other", "main")


def test_branch_is_not_made_of_what_may_not_be_seen(dev: IcebergCatalog, access_of: AccessOf, catalog: Catalog) -> None:
    held = (P.REFERENCE_CREATE, references("mine"), ""), (P.TABLE_READ_DATA, CATALOG, "")

    for source in ("dev", catalog.branch("dev").hash, f"main@{catalog.branch('main').hash}"):
        with pytest.raises(NotFoundError):
            access_of(*held).check_creation("mine", source)
    with pytest.raises(ForbiddenError, match="REFERENCE_READ_HISTORY"):
        access_of(*held).check_creation("mine", "main~1")


def test_reference_is_moved_by_its_administrator_alone(dev: IcebergCatalog, access_of: AccessOf) -> None:
    caller = access_of((P.REFERENCE_CREATE, references("dev"), ""), (P.TABLE_WRITE_DATA, CATALOG, "dev"))

    with pytest.raises(ForbiddenError, match="REFERENCE_ASSIGN on reference dev"):
        caller.check_assignment("dev")
    with pytest.raises(ForbiddenError, match="REFERENCE_DROP on reference dev"):
        caller.check_drop("dev")
    with pytest.raises(NotFoundError):
        caller.check_drop("other")
    access_of((P.REFERENCE_FULL_METADATA, references("d*"), "")).check_assignment("dev")


def test_references_are_listed_by_their_names(access_of: AccessOf) -> None:
    caller = access_of((P.REFERENCE_LIST, references("d*"), ""), (P.TABLE_READ_DATA, CATALOG, "main"))

    assert caller.filter_listed(["main", "dev", "draft"]) == ["dev", "draft"]


def test_history_is_read_with_a_right_of_its_own(dev: IcebergCatalog, access_of: AccessOf) -> None:
    with pytest.raises(ForbiddenError, match="REFERENCE_READ_HISTORY"):
        access_of((P.TABLE_READ_DATA, CATALOG, "")).check_read("main")
    access_of((P.REFERENCE_READ_HISTORY, references("main"), "")).check_read("main")


def test_difference_shows_what_may_be_listed(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    changes = catalog.diff("main", "dev").changes
    caller = access_of((P.TABLE_LIST, below("mine"), "*"), (P.NAMESPACE_LIST, below("mine"), "*"))

    assert {change.key for change in changes} == {MINE, COPY, ORDERS}
    assert {change.key for change in caller.filter_changes(changes, "main", "dev")} == {MINE, COPY}


def test_difference_hides_where_a_hidden_table_was(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    dev.tables.rename(ORDERS, MINE.child("was_orders"))
    changes = catalog.diff("main", "dev").changes
    shown = access_of((P.TABLE_LIST, below("mine"), "*")).filter_changes(changes, "main", "dev")

    assert {change.key: change.renamed_from for change in shown}[MINE.child("was_orders")] is None


def test_log_shows_no_operation_and_no_message_about_what_is_hidden(
    catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf
) -> None:
    caller = access_of((P.TABLE_LIST, below("mine"), "dev"), (P.NAMESPACE_LIST, CATALOG, "dev"))
    entries = [caller.filter_entry(entry, "dev") for entry in catalog.log("dev")]

    keys = {operation.key for entry in entries for operation in entry.operations}
    assert keys == {SALES, MINE, COPY}
    assert not any("orders" in entry.meta.message for entry in entries)
    assert any("copy" in entry.meta.message for entry in entries)


def test_contents_are_filtered_by_their_ids(
    catalog: Catalog, dev: IcebergCatalog, orders: LoadedTable, access_of: AccessOf
) -> None:
    by_id = Securable(kind=K.TABLE, catalog="lake", content_id=orders.content_id)
    state = dev.session.state()
    values = [(key, value) for key in (ORDERS, COPY) if (value := state.find_value(key)) is not None]

    assert access_of((P.TABLE_LIST, by_id, "dev")).filter_contents(values, "dev") == [ORDERS]
    assert access_of((P.TABLE_LIST, by_id, "dev")).filter_contents(values, "main") == []


def test_many_commits_are_filtered_as_each_alone(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    caller, entries = access_of((P.TABLE_LIST, below("mine"), "dev")), list(catalog.log("dev"))

    shown = caller.filter_entries(entries, "dev")
    assert shown == [caller.filter_entry(entry, "dev") for entry in entries]
    assert shown != entries and any(entry.operations for entry in shown)


def test_content_is_shown_by_another_right_than_its_listing(catalog: Catalog, dev: IcebergCatalog, access_of: AccessOf) -> None:
    state = dev.session.state()
    values = [(key, value) for key in (MINE, COPY, ORDERS) if (value := state.find_value(key)) is not None]
    reads = (P.TABLE_READ_PROPERTIES, below("mine"), "dev"), (P.TABLE_LIST, CATALOG, "dev")

    assert access_of(*reads).shows_each(values, "dev") == [False, True, False]
    assert access_of(*reads).shows_each(values, "main") == [False, False, False]


def test_histories_are_chosen_by_the_right_to_read_them(access_of: AccessOf) -> None:
    caller = access_of((P.REFERENCE_READ_HISTORY, references("d*"), ""), (P.TABLE_LIST, CATALOG, "main"))

    assert caller.filter_histories(["dev", "draft", "main", "other"]) == ["dev", "draft"]
