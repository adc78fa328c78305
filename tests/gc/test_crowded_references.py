"""A reference that is moved thousands of times within the grace period: it is reported before it is full, and its past is not guessed."""

from __future__ import annotations

import dataclasses

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog
from headwater.catalogs.registry import RefKind, content_reference
from headwater.clock import Micros
from headwater.commits import Head, state_as_of
from headwater.errors import ExpiredError, RefusedError
from headwater.fsck import FindingCode, check_store
from headwater.gc import collect_realm
from headwater.store import ObjectId, RealmStore, Reference, ReferenceMove, Store
from headwater.store.realm_refs import CROWDED_MOVES, MOVES_LIMIT
from lakes import REALM, put


def crowd(rows: RealmStore, lake: Catalog, pointers: list[ObjectId], count: int) -> Reference:
    """Give main so many recorded moves, a microsecond apart."""
    main = rows.read_reference(content_reference(lake.definition.id, RefKind.BRANCH, "main"), fresh=True)
    now = rows.clock.now()
    moves = tuple(ReferenceMove(pointers[at % len(pointers)], Micros((now - 2 * at) & ~1)) for at in range(count))
    return rows.swap(main, dataclasses.replace(main, version=main.version + 1, moves=moves))


@pytest.fixture
def pointers(lake: Catalog, clock: FakeClock) -> list[ObjectId]:
    made = [put(lake, version) for version in range(3)]
    clock.advance(1)
    return made


def test_past_that_is_not_all_recorded_is_refused(realm_rows: RealmStore, lake: Catalog, pointers: list[ObjectId]) -> None:
    row = crowd(realm_rows, lake, pointers, CROWDED_MOVES + 10)
    known = row.moves[CROWDED_MOVES - 1].time

    assert isinstance(state_as_of(realm_rows, row, known, what=lambda: "main"), Head)
    with pytest.raises(ExpiredError, match="give a commit instead"):
        state_as_of(realm_rows, row, Micros(known - 1), what=lambda: "main")


def test_crowded_reference_is_reported(store: Store, realm_rows: RealmStore, lake: Catalog, pointers: list[ObjectId]) -> None:
    crowd(realm_rows, lake, pointers, CROWDED_MOVES - 1)
    assert check_store(store) == []
    crowd(realm_rows, lake, pointers, CROWDED_MOVES)

    assert [finding.code for finding in check_store(store)] == [FindingCode.MOVES_CROWDED]
    collect_realm(store, REALM)


def test_branch_of_a_purged_catalog_goes_however_often_it_was_moved(
    realm_rows: RealmStore, lake: Catalog, pointers: list[ObjectId]
) -> None:
    distinct = [ObjectId(pointers[0] + at) for at in range(MOVES_LIMIT)]
    row = crowd(realm_rows, lake, distinct, MOVES_LIMIT)
    with pytest.raises(RefusedError, match="use another name until then"):
        realm_rows.delete_reference(row)

    assert realm_rows.delete_reference(row, is_final=True).deleted is not None
