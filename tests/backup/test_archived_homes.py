"""A realm that was loaded has its tables as guests, for the realm that was exported may go on with them; its policies it has."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from archived import REALM, SLACK, exported, open_lake

from fake_clock import FakeClock
from headwater import Store
from headwater.backup import load_realm
from headwater.catalogs import TableClaim, TableClaims, find_homes
from headwater.policies import MetadataFileRule, PolicyKind, StoredPolicy, list_policies, set_policy
from headwater.realms import RealmRegistry

ORDERS = UUID(int=7)


def homes(store: Store) -> set[UUID]:
    return find_homes(RealmRegistry(store).open_realm(REALM), open_lake(store).definition.id)


def test_loaded_realm_has_only_guests(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    claim = TableClaim(open_lake(store).definition.id, ORDERS, "s3://lake/orders", ORDERS, is_home=True)
    TableClaims(RealmRegistry(store).open_realm(REALM)).take_claims([claim])
    clock.advance(SLACK)
    load_realm(target, REALM, exported(store, tmp_path / "homes.realm").file)

    assert homes(store) == {ORDERS}
    assert homes(target) == set()

    loaded = TableClaims(RealmRegistry(target).open_realm(REALM))
    assert loaded.take_claims([claim]) == () and homes(target) == set()
    assert loaded.adopt_tables([claim]) == () and homes(target) == {ORDERS}


def test_loaded_realm_has_its_policies(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    def policies(of: Store) -> list[StoredPolicy]:
        return list_policies(RealmRegistry(of).open_realm(REALM), open_lake(of).definition.id)

    for table in (None, ORDERS):
        said = StoredPolicy(
            kind=PolicyKind.METADATA_FILES, catalog_id="", content_id=table, metadata_files=MetadataFileRule(keep=9)
        )
        set_policy(RealmRegistry(store).open_realm(REALM), open_lake(store).definition, said)
    clock.advance(SLACK)
    load_realm(target, REALM, exported(store, tmp_path / "policies.realm").file)

    assert policies(target) == policies(store) and len(policies(store)) == 2
