"""A batch of claims ends as if each of them had been taken alone, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.catalogs import CLAIMS, ClaimConflict, TableClaim, TableClaims
from headwater.catalogs.table_claims import BY_LOCATION, BY_UUID, ClaimOwner
from headwater.commits import read_head
from headwater.store import RealmId, RealmKey, RealmStore

MakeRealm = Callable[[], RealmStore]
ids = st.sampled_from([UUID(int=number) for number in range(1, 5)])
places = st.lists(st.sampled_from(["a", "b", "ab", "a b", ""]), max_size=3).map(lambda names: "/".join(["s3://lake", *names]))
paths = st.lists(places, max_size=2).map(tuple)
claims = st.builds(TableClaim, st.sampled_from(["00000000000000aa", "00000000000000bb"]), ids, places, st.none() | ids, paths)
batches = st.lists(st.lists(claims, max_size=6), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def make_realm() -> Iterator[MakeRealm]:
    """Each without claims, in one store in memory."""
    with open_store("memory://", settings=Settings(), clock=FakeClock()) as store:

        def make() -> RealmStore:
            rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
            rows.ensure_reference(CLAIMS)
            return rows

        yield make


def told(conflicts: Sequence[ClaimConflict]) -> list[tuple[TableClaim, str]]:
    return [(conflict.claim, str(conflict)) for conflict in conflicts]


def owners(rows: RealmStore) -> dict[tuple[str, bytes], tuple[str, UUID]]:
    """Whose each entry of the claims is."""
    held = read_head(rows, CLAIMS, fresh=True)
    entries = [] if held is None else [(name, *entry) for name in (BY_LOCATION, BY_UUID) for entry in held.index(name).range()]
    decoded = {(name, key): ClaimOwner.from_value(value) for name, key, value in entries}
    return {entry: (owner.catalog_id, owner.content_id) for entry, owner in decoded.items()}


@given(batches)
def test_batch_is_taken_as_its_claims_one_by_one(make_realm: MakeRealm, batches: list[list[TableClaim]]) -> None:
    together, apart = make_realm(), make_realm()
    for batch in batches:
        alone = [conflict for claim in batch for conflict in TableClaims(apart).take_claims([claim])]

        assert told(TableClaims(together).take_claims(batch)) == told(alone)
    assert owners(together) == owners(apart)


@pytest.mark.long
@given(batches)
def test_batch_is_checked_as_its_claims_one_by_one(make_realm: MakeRealm, batches: list[list[TableClaim]]) -> None:
    claims = TableClaims(make_realm())
    for batch in batches:
        alone = [conflict for claim in batch for conflict in claims.find_conflicts([claim])]

        assert told(claims.find_conflicts(batch)) == told(alone)
        claims.take_claims(batch)
