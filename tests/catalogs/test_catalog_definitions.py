"""Catalogs are made, changed and deleted in steps that may be repeated."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import (
    Catalog,
    CatalogDefinition,
    Catalogs,
    CatalogState,
    ContentKey,
    ImportSpec,
    Namespace,
    Put,
    RefKind,
)
from headwater.catalogs.catalog_definition import CatalogGrants, CatalogRole
from headwater.catalogs.catalog_lifecycle import CATALOG_ADMIN
from headwater.catalogs.registry import OwnRefKind, content_reference, own_reference
from headwater.commits import read_head
from headwater.errors import ConflictError, NotFoundError, RefusedError, SwapConflictError
from headwater.store import RealmStore


def make(catalogs: Catalogs, name: str = "lake") -> CatalogDefinition:
    return catalogs.create_catalog(name, base_location="s3://lake/", properties={"a": "1"})


def versions(rows: RealmStore) -> dict[str, int]:
    return {row.name: row.version for row in rows.scan_references()}


def test_new_catalog_is_found_by_its_name(catalogs: Catalogs) -> None:
    made = make(catalogs)

    assert catalogs.read_catalog("lake") == made
    assert (made.state, made.base_location, made.default_branch) == (CatalogState.ACTIVE, "s3://lake/", "main")


def test_new_catalog_has_its_references_and_an_empty_default_branch(catalogs: Catalogs, realm: RealmStore) -> None:
    made = make(catalogs)

    assert {row.name for row in realm.scan_references()} >= {
        *(own_reference(made.id, part) for part in OwnRefKind),
        content_reference(made.id, RefKind.BRANCH, "main"),
    }
    assert [(branch.name, branch.head) for branch in catalogs.open_catalog("lake").branches()] == [("main", None)]


def test_new_catalog_has_a_role_for_its_admin(catalogs: Catalogs, realm: RealmStore) -> None:
    made = make(catalogs)

    for part, cls in ((OwnRefKind.ROLES, CatalogRole), (OwnRefKind.GRANTS, CatalogGrants)):
        found = read_head(realm, own_reference(made.id, part))
        value = found.index("by-name").get(CATALOG_ADMIN.encode()) if found else None
        assert value is not None
        assert value.object_id is not None
        assert isinstance(realm.read_object(value.object_id, cls), cls)


def test_making_a_catalog_again_changes_nothing(catalogs: Catalogs, realm: RealmStore, clock: FakeClock) -> None:
    made, before = make(catalogs), versions(realm)
    clock.advance(10)

    assert make(catalogs) == made
    assert versions(realm) == before


def test_catalog_that_is_there_with_other_fields_is_a_conflict(catalogs: Catalogs) -> None:
    make(catalogs)

    with pytest.raises(ConflictError, match="another base_location"):
        catalogs.create_catalog("lake", base_location="s3://other/")


@pytest.mark.parametrize(
    "fields",
    [{"base_location": "lake"}, {"base_location": "s3://a/../b"}, {"base_location": "s3://a", "default_branch": "a b"}],
)
def test_bad_fields_are_refused_before_anything_is_written(catalogs: Catalogs, fields: dict[str, str]) -> None:
    with pytest.raises(RefusedError):
        catalogs.create_catalog("lake", **fields)  # type: ignore[arg-type]

    assert catalogs.list_catalogs() == []


def test_realm_without_a_list_of_catalogs_is_an_error(rows: RealmStore) -> None:
    with pytest.raises(NotFoundError, match="not bootstrapped"):
        Catalogs(rows).list_catalogs()


def test_update_replaces_fields(catalogs: Catalogs, clock: FakeClock) -> None:
    made = make(catalogs)
    clock.advance(1)
    spec = ImportSpec(name="initial", locations=("s3://lake/old",))
    changed = catalogs.update_catalog(made, imports=(spec,), imported={"initial": spec.digest()})

    assert catalogs.read_catalog("lake") == changed
    assert (changed.imports, changed.imported, changed.properties) == ((spec,), {"initial": spec.digest()}, {"a": "1"})
    assert changed.updated > made.updated


def test_update_that_differs_in_nothing_writes_nothing(catalogs: Catalogs, realm: RealmStore) -> None:
    made, before = make(catalogs), versions(realm)

    assert catalogs.update_catalog(made, properties={"a": "1"}) == made
    assert versions(realm) == before


def test_update_of_what_changed_is_beaten(catalogs: Catalogs) -> None:
    made = make(catalogs)
    catalogs.update_catalog(made, properties={"a": "2"})

    with pytest.raises(SwapConflictError):
        catalogs.update_catalog(made, properties={"a": "3"})


def test_default_branch_is_one_that_is_there(catalogs: Catalogs) -> None:
    made = make(catalogs)

    with pytest.raises(RefusedError, match="no branch 'dev'"):
        catalogs.update_catalog(made, default_branch="dev")


def test_handle_follows_its_catalog_to_another_default_branch(catalogs: Catalogs, catalog: Catalog) -> None:
    catalog.commit(None, [Put(ContentKey.of("a"), Namespace())])
    catalog.create_branch("prod")
    catalogs.update_catalog(catalogs.read_catalog("lake"), default_branch="prod")
    catalog.commit(None, [Put(ContentKey.of("b"), Namespace())])

    assert [str(entry.key) for entry in catalog.entries().entries] == ["a", "b"]
    assert [str(entry.key) for entry in catalog.entries("main").entries] == ["a"]


def test_deleted_catalog_is_not_listed(catalogs: Catalogs) -> None:
    make(catalogs)
    deleted = catalogs.delete_catalog("lake")

    assert (catalogs.list_catalogs(), catalogs.find_catalog("lake"), deleted.state) == ([], None, CatalogState.DELETED)


def test_deleted_catalog_takes_no_commits_and_no_branches(catalog: Catalog, catalogs: Catalogs) -> None:
    catalogs.delete_catalog("lake")

    with pytest.raises(NotFoundError):
        catalog.create_branch("dev")


def test_protected_catalog_is_not_deleted(catalogs: Catalogs) -> None:
    catalogs.update_catalog(make(catalogs), deletion_protection=True)

    with pytest.raises(RefusedError, match="protected"):
        catalogs.delete_catalog("lake")


def test_deleting_a_catalog_again_goes_on_where_it_was(catalogs: Catalogs) -> None:
    make(catalogs)

    assert catalogs.delete_catalog("lake") == catalogs.delete_catalog("lake")


def test_deleting_what_never_was_is_an_error(catalogs: Catalogs) -> None:
    with pytest.raises(NotFoundError):
        catalogs.delete_catalog("lake")


def test_catalog_of_the_same_name_is_another_one(catalogs: Catalogs) -> None:
    old = make(catalogs)
    catalogs.delete_catalog("lake")

    assert make(catalogs).id != old.id
    assert [branch.head for branch in catalogs.open_catalog("lake").branches()] == [None]


def test_deleted_catalog_is_not_completed(catalogs: Catalogs) -> None:
    made = make(catalogs)
    catalogs.delete_catalog("lake")

    with pytest.raises(RefusedError, match="was deleted"):
        catalogs.complete_catalog(made)


def test_catalogs_are_listed_by_name(catalogs: Catalogs) -> None:
    for name in ("b", "a", "c"):
        make(catalogs, name)

    assert [definition.name for definition in catalogs.list_catalogs()] == ["a", "b", "c"]


def test_equal_imports_have_equal_digests() -> None:
    one = ImportSpec(name="a", locations=("s3://x",))

    assert one.digest() == ImportSpec(name="a", locations=("s3://x",), mode="".join(["on", "ce"]), exclude=()).digest()  # type: ignore[arg-type]
    assert one.digest() != ImportSpec(name="a", locations=("s3://y",)).digest()
