"""A whole catalog, a whole realm, and the references that are no branches."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from msgspec import structs
from pasts import (
    catalogs_of,
    claimed,
    contents,
    credentials,
    drop,
    lake_of,
    make_realm,
    passed,
    planned,
    put,
    request,
    restored,
    submitted,
)

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, Catalogs
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import NotFoundError, RefusedError
from headwater.index import IndexValue
from headwater.jobs import run_restore
from headwater.policies import MetadataFileRule, PolicyKind, StoredPolicy, list_policies, set_policy
from headwater.realms import (
    REALM_REFERENCES,
    RealmRegistry,
    RealmState,
    bootstrap,
    create_principal,
    disable_principal,
    drop_principal,
    enable_principal,
    hash_credentials,
    log_in,
    new_credentials,
    rotate_principal,
)
from headwater.realms.realm_bootstrap import PrincipalRole
from headwater.restore import RestoreAction, RestoreResult, RestoreStep
from headwater.store import RealmStore
from headwater.tasks.task import OUTCOME_BYTES

POLICY = StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="", metadata_files=MetadataFileRule(keep=9))


def add_role(rows: RealmStore, name: str) -> None:
    def change(tx: Transaction) -> None:
        role = PrincipalRole(entity=rows.new_id(), name=name, created=tx.time)
        tx.index("by-name").put(name.encode(), IndexValue(tx.add_object(role), b""))

    commit_change(rows, "principal-roles", change)


def remove_role(rows: RealmStore, name: str) -> None:
    commit_change(rows, "principal-roles", lambda tx: tx.index("by-name").remove(name.encode()))


def roles(rows: RealmStore) -> list[str]:
    found = read_head(rows, "principal-roles", fresh=True)
    return [] if found is None else [key.decode() for key, _ in found.index("by-name").range()]


def acts(store: Store, reference: str, moment: int) -> dict[str, str]:
    steps = planned(store, request(reference, moment)).steps  # type: ignore[arg-type]
    return {step.text: step.act.value for step in steps if step.act is not RestoreAction.NOTHING}


def test_reference_of_the_realm_holds_again_what_it_held(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    add_role(rows, "reader")
    moment = passed(clock)
    remove_role(rows, "reader")
    add_role(rows, "writer")
    restored(store, request("principal-roles", moment))

    assert roles(rows) == ["reader", "service_admin"]


def test_policies_say_again_what_they_said(store: Store, rows: RealmStore, lake: Catalog, clock: FakeClock) -> None:
    first = set_policy(rows, lake.definition, POLICY)
    moment = passed(clock)
    set_policy(rows, lake.definition, structs.replace(POLICY, metadata_files=MetadataFileRule(keep=3)))
    set_policy(rows, lake.definition, structs.replace(POLICY, content_id=UUID(int=7)))

    restored(store, request("policy-mappings", moment))

    assert list_policies(rows, lake.definition.id) == [first]


def test_equal_objects_are_no_difference(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    found = read_head(rows, "principal-roles", fresh=True)
    assert found is not None
    moment = passed(clock)
    value = found.index("by-name").get(b"service_admin")
    assert value is not None
    assert value.object_id is not None
    role = rows.read_object(value.object_id, PrincipalRole)
    commit_change(
        rows, "principal-roles", lambda tx: tx.index("by-name").put(b"service_admin", IndexValue(tx.add_object(role), b""))
    )

    assert acts(store, "principal-roles", moment) == {}


@pytest.mark.parametrize(("name", "reason"), [("catalogs", "by its name"), ("claims", "taken anew"), ("pins", "tasks")])
def test_derived_references_are_not_restored_by_themselves(store: Store, lake: Catalog, name: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        planned(store, request(name, store.clock.now()))


@pytest.mark.parametrize(("part", "reason"), [("refs", "the catalog by its name"), ("heads/main", "such as lake/main")])
def test_content_of_a_catalog_is_not_restored_past_its_list(store: Store, lake: Catalog, part: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        planned(store, request(f"reference:cat/{lake.definition.id}/{part}", store.clock.now()))


def test_grants_of_a_catalog_are_a_reference_of_their_own(store: Store, lake: Catalog) -> None:
    assert not planned(store, request(f"reference:cat/{lake.definition.id}/grants", store.clock.now())).is_needed


@pytest.mark.parametrize("name", ["nonsense", "cat/0123456789abcdef/roles"])
def test_reference_that_there_is_not_is_told(store: Store, lake: Catalog, name: str) -> None:
    with pytest.raises(NotFoundError, match="no reference"):
        planned(store, request(f"reference:{name}", store.clock.now()))


@pytest.mark.parametrize("reference", ["", "principals"])
def test_realm_is_not_restored_to_before_its_bootstrap(store: Store, clock: FakeClock, reference: str) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    moment = passed(clock)
    bootstrap(realms, "acme", credentials())

    with pytest.raises(NotFoundError, match="it was filled later"):
        planned(store, request(reference, moment))


def test_realm_is_not_restored_to_a_time_before_it_was(store: Store, lake: Catalog, clock: FakeClock) -> None:
    with pytest.raises(NotFoundError, match="it was filled later"):
        planned(store, request("", Micros(0), prune=True))


def test_rotated_secret_does_not_become_good_again(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    realms, old, new = RealmRegistry(store), new_credentials(), new_credentials()
    rotate_principal(realms, "acme", "root", hash_credentials(old))
    moment = passed(clock)
    rotate_principal(realms, "acme", "root", hash_credentials(new), overlap_seconds=0)
    clock.advance(1)
    restored(store, request("", moment))

    assert log_in(realms, "acme", new).name == "root"
    with pytest.raises(RefusedError):
        log_in(realms, "acme", old)


def test_dropped_principal_comes_back_with_its_last_credentials(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    """Neither a secret that was rotated before the drop nor a token from before it is valid again."""
    realms, old, new = RealmRegistry(store), new_credentials(), new_credentials()
    create_principal(realms, "acme", "etl", hash_credentials(old))
    moment = passed(clock)
    rotate_principal(realms, "acme", "etl", hash_credentials(new), overlap_seconds=0)
    disable_principal(realms, "acme", "etl")
    issued = enable_principal(realms, "acme", "etl").generation
    drop_principal(realms, "acme", "etl")
    clock.advance(1)
    restored(store, request("principals", moment))

    back = log_in(realms, "acme", new)
    assert back.name == "etl"
    assert [generation for generation in range(issued + 1) if back.honors(generation, now=store.clock.now())] == []
    with pytest.raises(RefusedError):
        log_in(realms, "acme", old)
    assert acts(store, "principals", moment) == {}


def test_disabled_principal_that_was_dropped_comes_back_disabled(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    realms, credentials = RealmRegistry(store), new_credentials()
    create_principal(realms, "acme", "etl", hash_credentials(credentials))
    moment = passed(clock)
    disable_principal(realms, "acme", "etl")
    drop_principal(realms, "acme", "etl")
    clock.advance(1)
    restored(store, request("", moment))

    with pytest.raises(RefusedError):
        log_in(realms, "acme", credentials)
    assert enable_principal(realms, "acme", "etl").clients == (credentials.client_id,)


def test_catalog_holds_again_what_it_held_on_every_branch(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, "orders")
    lake.create_branch("dev")
    put(lake, "customers", branch="dev")
    moment = passed(clock)
    drop(lake, "orders")
    lake.delete_branch("dev")
    restored(store, request("lake", moment))

    assert (set(contents(lake)), set(contents(lake, "dev"))) == ({"orders"}, {"orders", "customers"})


def test_branches_made_later_stay_and_are_told(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    lake.create_branch("dev")
    outcome = restored(store, request("lake", moment))

    assert acts(store, "lake", moment) == {"lake/dev": "keep"}
    assert outcome["notes"] == ["lake/dev: made later: it stays, unless --prune says otherwise"]


def test_branches_made_later_are_deleted_on_request(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    lake.create_branch("dev")
    lake.create_tag("v1")
    clock.advance(1)
    restored(store, request("lake", moment, prune=True))

    assert ([named.name for named in lake.branches()], lake.tags()) == (["main"], [])


def test_branch_that_was_collected_is_told_as_lost(store: Store, lake: Catalog, rows: RealmStore, clock: FakeClock) -> None:
    lake.create_branch("dev")
    moment = passed(clock)
    lake.delete_branch("dev")
    tombstone = rows.find_row(f"cat/{lake.definition.id}/heads/dev")
    assert tombstone is not None
    rows.remove_tombstone(tombstone)

    assert acts(store, "lake", moment) == {"lake/dev": "lose"}


def test_tag_is_not_taken_off_its_commit(store: Store, lake: Catalog, clock: FakeClock) -> None:
    lake.create_tag("v1")
    moment = passed(clock)
    lake.assign_tag("v1", put(lake, "orders"))

    assert acts(store, "lake", moment) == {"lake/main": "restore", "lake/v1": "lose"}


def test_default_branch_that_is_lost_is_told(store: Store, lake: Catalog, rows: RealmStore, clock: FakeClock) -> None:
    lake.create_branch("dev")
    catalogs_of(store).update_catalog(lake.definition, default_branch="dev")
    moment = passed(clock)
    catalogs_of(store).update_catalog(catalogs_of(store).read_catalog("lake"), default_branch="main")
    lake_of(store).delete_branch("dev")
    tombstone = rows.find_row(f"cat/{lake.definition.id}/heads/dev")
    assert tombstone is not None
    rows.remove_tombstone(tombstone)

    assert restored(store, request("lake", moment))["notes"] == [
        "lake/dev: it was deleted, and collected after its grace: it cannot come back",
        "lake: its default branch was 'dev', which cannot come back",
    ]


def test_outcome_has_room_whatever_was_restored() -> None:
    step = RestoreStep(act=RestoreAction.MOVE, text="x" * 200, note="y" * 200).as_plain()
    plain = RestoreResult("acme", "a time", [step] * 500, ["z" * 300] * 500, ["z" * 300] * 500).as_plain()

    assert (plain["changed"], plain["conflicts"]) == (500, 500)
    assert len(json.dumps(plain)) < OUTCOME_BYTES


def test_definition_of_a_catalog_is_restored(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    catalogs_of(store).update_catalog(lake.definition, properties={"owner": "nobody"}, deletion_protection=True)
    restored(store, request("lake", moment))

    now = catalogs_of(store).read_catalog("lake")
    assert (now.properties, now.deletion_protection) == ({}, True)


def test_catalog_made_later_cannot_be_restored(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    moment = passed(clock)
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")

    with pytest.raises(NotFoundError, match="it was made later"):
        planned(store, request("lake", moment))


def test_deleted_catalog_comes_back_with_the_realm(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, "orders")
    moment = passed(clock)
    drop(lake, "orders")
    catalogs_of(store).delete_catalog("lake")
    restored(store, request("", moment))

    assert set(contents(lake_of(store))) == {"orders"}


def test_purged_catalog_is_told_as_lost(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    catalogs_of(store).delete_catalog("lake")
    catalogs_of(store).purge_catalog("lake")

    assert acts(store, "", moment) == {"lake": "lose"}


def test_catalog_whose_name_is_taken_is_told(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    catalogs_of(store).delete_catalog("lake")
    catalogs_of(store).create_catalog("lake", base_location="s3://other/")

    assert [step.act.value for step in planned(store, request("", moment)).steps if step.text == "lake"] == ["lose", "keep"]


def test_catalogs_made_later_are_deleted_on_request(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    catalogs_of(store).create_catalog("pond", base_location="s3://pond/")
    restored(store, request("", moment, prune=True))

    assert [one.name for one in catalogs_of(store).list_catalogs()] == ["lake"]
    assert catalogs_of(store).undelete_catalog("pond").name == "pond"


def test_commit_is_no_aim_for_a_whole_realm(store: Store, lake: Catalog) -> None:
    done = put(lake, "orders")

    with pytest.raises(RefusedError, match="belongs to one reference"):
        planned(store, request("", done, is_commit=True))


def test_name_that_means_two_things_is_refused(store: Store, rows: RealmStore, clock: FakeClock) -> None:
    Catalogs(rows).create_catalog("grants", base_location="s3://grants/")
    moment = passed(clock)

    with pytest.raises(RefusedError, match="catalog:grants or"):
        planned(store, request("grants", moment))
    assert acts(store, "catalog:grants", moment) == acts(store, "reference:grants", moment) == {}


def test_unknown_catalog_is_missing(store: Store, rows: RealmStore) -> None:
    with pytest.raises(NotFoundError, match="no catalog 'lake'"):
        planned(store, request("lake", store.clock.now()))


def test_realm_at_rest_is_restored_too(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, "orders")
    moment = passed(clock)
    drop(lake, "orders")
    RealmRegistry(store).move_realm(RealmRegistry(store).read_realm("acme"), RealmState.INACTIVE)
    restored(store, request("", moment))

    assert set(contents(lake_of(store))) == {"orders"}


def test_realm_that_was_created_anew_is_left_alone(store: Store, clock: FakeClock) -> None:
    realms = RealmRegistry(store)
    first = make_realm(store)
    task = submitted(store, request("", passed(clock)))
    gone = realms.move_realm(first, RealmState.INACTIVE)
    clock.advance(25 * 3600)
    for state in (RealmState.PURGING, RealmState.PURGED):
        while store.rows(gone.id, gone.key).delete_rows(1000):
            pass
        gone = realms.move_realm(gone, state)
    realms.remove_realm(gone)
    make_realm(store)

    with pytest.raises(RefusedError, match="created anew"):
        run_restore(store, claimed(store, task))
