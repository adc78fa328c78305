"""A backend and its model, two plain dictionaries, through every method of the protocol: they never differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from rows_of_all_kinds import few, moves, names, object_ids, pointers, realms, times, tokens, type_names, values, versions

from headwater.clock import Micros
from headwater.errors import RefusedError, SwapConflictError
from headwater.store import (
    Backend,
    ObjectId,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    RealmKey,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
)

__all__ = ["BackendModel", "key_of_object", "key_of_reference", "scan_all", "wipe"]

K = TypeVar("K", ReferenceKey, ObjectKey)
_MANY = 10_000
_pick = st.integers(0, 1 << 16)
"""Which one of those that there are, counted around."""
_limits = st.sampled_from([1, 2, 3, 7, 1000])
_counts = st.sampled_from([1, 2, 3, 5, 40])


class ReferenceBody(NamedTuple):
    """All of a reference but its key."""

    pointer: ObjectId | None
    version: int
    created: Micros
    recent: tuple[ObjectId, ...]
    moves: tuple[Any, ...]
    deleted: Micros | None


class PartBody(NamedTuple):
    """What a part of an object has of its own."""

    value: bytes


class ObjectBody(NamedTuple):
    """All of an object but its key."""

    type: str
    created: Micros
    token: str | None
    parts: tuple[bytes, ...]


reference_bodies = st.builds(
    ReferenceBody, pointers, versions, times, st.lists(object_ids, max_size=3).map(tuple), moves, st.one_of(st.none(), times)
)
object_bodies = st.one_of(
    st.builds(ObjectBody, type_names, times, tokens, st.tuples(values)),
    st.builds(ObjectBody, type_names, times, st.none(), st.lists(values, min_size=1, max_size=4).map(tuple)),
)


class BackendModel(RuleBasedStateMachine):
    """Each run has few realms, names and ids, so that rules meet the same rows again."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.backend = backend
        self.references: dict[ReferencePosition, ReferenceRow] = {}
        self.objects: dict[ObjectPosition, ObjectRow] = {}
        self.is_ordered = backend.capabilities.ordered_keys
        wipe(backend)

    reference_cuts = Bundle("reference_cuts")
    object_cuts = Bundle("object_cuts")

    @initialize(
        realms=few(realms, 4),
        names=few(names, 6),
        ids=few(object_ids, 5),
    )
    def choose_keys(self, realms: list[RealmKey], names: list[str], ids: list[ObjectId]) -> None:
        self.realms = realms
        self.names = names
        self.ids = ids

    # references

    @rule(realm=_pick, name=_pick, body=reference_bodies)
    def create_reference(self, realm: int, name: int, body: ReferenceBody) -> None:
        row = self._reference(realm, name, body)
        if _position(row) in self.references:
            with pytest.raises(SwapConflictError):
                self.backend.create_reference(row)
        else:
            self.backend.create_reference(row)
            self.references[_position(row)] = row

    @rule(wishes=st.lists(st.tuples(_pick, _pick, reference_bodies), max_size=8))
    def create_references(self, wishes: list[tuple[int, int, ReferenceBody]]) -> None:
        rows = {_position(row): row for row in (self._reference(*wish) for wish in wishes)}
        expected = [position not in self.references for position in rows]

        assert self.backend.create_references(list(rows.values())) == expected
        self.references = rows | self.references

    @rule(realm=_pick, asked=st.lists(_pick, max_size=8))
    def read_references(self, realm: int, asked: list[int]) -> None:
        key = _one(self.realms, realm)
        wanted = [_one(self.names, name) for name in asked]

        assert self.backend.read_references(key, wanted) == [self.references.get((key, name)) for name in wanted]

    @rule(
        realm=_pick,
        name=_pick,
        body=reference_bodies,
        how=st.sampled_from(["as it is", "only what counts", "older", "elsewhere"]),
    )
    def swap_reference(self, realm: int, name: int, body: ReferenceBody, how: str) -> None:
        new = self._reference(realm, name, body)
        seen, is_right = self._seen(new, how)
        if is_right:
            self.backend.swap_reference(seen, new)
            self.references[_position(new)] = new
        else:
            with pytest.raises(SwapConflictError):
                self.backend.swap_reference(seen, new)

    @rule(
        realm=_pick,
        name=_pick,
        body=reference_bodies,
        how=st.sampled_from(["as it is", "only what counts", "older", "elsewhere"]),
    )
    def remove_reference(self, realm: int, name: int, body: ReferenceBody, how: str) -> None:
        seen, is_right = self._seen(self._reference(realm, name, body), how)
        if is_right:
            self.backend.remove_reference(seen)
            del self.references[_position(seen)]
        else:
            with pytest.raises(SwapConflictError):
                self.backend.remove_reference(seen)

    @rule(
        realm=_pick,
        name=_pick,
        body=reference_bodies,
        how=st.sampled_from(["as it is", "only what counts", "older", "elsewhere"]),
        wishes=st.lists(st.tuples(_pick, _pick, object_bodies), max_size=6),
    )
    def write_and_swap(
        self, realm: int, name: int, body: ReferenceBody, how: str, wishes: list[tuple[int, int, ObjectBody]]
    ) -> None:
        new = self._reference(realm, name, body)
        seen, is_right = self._seen(new, how)
        wanted = {(_one(self.realms, of), _one(self.ids, number)): object_body for of, number, object_body in wishes}
        whole = {place: object_body for place, object_body in wanted.items() if not self._collides(place, object_body)}
        rows = [row for (of, object_id), object_body in whole.items() for row in _rows(of, object_id, object_body)]
        if is_right:
            self.backend.write_and_swap(rows, seen, new)
            self.references[_position(new)] = new
        else:
            with pytest.raises(SwapConflictError):
                self.backend.write_and_swap(rows, seen, new)
        if is_right or not self.backend.capabilities.atomic_commits:
            self._remember(whole, rows)

    def _seen(self, other: ReferenceRow, how: str) -> tuple[ReferenceRow, bool]:
        """A row that somebody may have seen, and whether its pointer and version are those of now."""
        stored = self.references.get(_position(other))
        if stored is None:
            return other, False
        seen = {
            "as it is": stored,
            "only what counts": dataclasses.replace(other, pointer=stored.pointer, version=stored.version),
            "older": dataclasses.replace(stored, version=other.version),
            "elsewhere": dataclasses.replace(stored, pointer=other.pointer),
        }[how]
        return seen, (seen.pointer, seen.version) == (stored.pointer, stored.version)

    # objects

    @rule(
        wishes=st.lists(st.tuples(_pick, _pick, object_bodies), max_size=5),
        times=st.integers(1, 2),
        order=st.randoms(use_true_random=False),
    )
    def write_objects(self, wishes: list[tuple[int, int, ObjectBody]], times: int, order: Any) -> None:
        whole = {(_one(self.realms, realm), _one(self.ids, number)): body for realm, number, body in wishes}
        rows = [row for (realm, object_id), body in whole.items() for row in _rows(realm, object_id, body)]
        order.shuffle(rows)
        for _ in range(times):
            self.backend.write_objects(rows)
        self._remember(whole, rows)

    def _collides(self, place: tuple[RealmKey, ObjectId], body: ObjectBody) -> bool:
        """Whether an object of other bytes is there, which a commit does not replace."""
        there = [self.objects.get(_place(row)) for row in _rows(*place, body)]
        return any(
            old is not None and (old.type, old.value) != (new.type, new.value)
            for old, new in zip(there, _rows(*place, body), strict=True)
        )

    def _remember(self, whole: Container[tuple[RealmKey, ObjectId]], rows: list[ObjectRow]) -> None:
        """The rows of whole objects, which have no others now."""
        self.objects = {place: row for place, row in self.objects.items() if place[:2] not in whole}
        self.objects |= {_place(row): row for row in rows}

    @rule(realm=_pick, number=_pick, body=object_bodies)
    def insert_object(self, realm: int, number: int, body: ObjectBody) -> None:
        row = self._single(realm, number, body)
        if _place(row) in self.objects:
            with pytest.raises(SwapConflictError):
                self.backend.insert_object(row)
        else:
            self.backend.insert_object(row)
            self.objects[_place(row)] = row

    @rule(realm=_pick, number=_pick, body=object_bodies, token=tokens, is_right=st.booleans())
    def update_object(self, realm: int, number: int, body: ObjectBody, token: str, is_right: bool) -> None:
        row = self._single(realm, number, body)
        stored = self.objects.get(_place(row))
        if stored is not None and stored.token is not None and is_right:
            token = stored.token
        if stored is not None and stored.token == token:
            self.backend.update_object(row, token)
            self.objects[_place(row)] = row
        else:
            with pytest.raises(SwapConflictError):
                self.backend.update_object(row, token)

    @rule(realm=_pick, asked=st.lists(st.tuples(_pick, st.integers(0, 4)), max_size=8))
    def read_objects(self, realm: int, asked: list[tuple[int, int]]) -> None:
        key = _one(self.realms, realm)
        wanted = [(_one(self.ids, number), part) for number, part in asked]

        assert self.backend.read_objects(key, wanted) == [self.objects.get((key, *place)) for place in wanted]

    @rule(
        wishes=st.lists(
            st.tuples(_pick, st.sampled_from(["right", "right", "token", "none", "time", "absent", "else"]), tokens, times),
            max_size=6,
        )
    )
    def delete_objects(self, wishes: list[tuple[int, str, str, Micros]]) -> None:
        keys = {}
        for number, how, token, created in wishes:
            key = self._key_to_delete(number, how, token, created)
            keys[key.position] = key
        gone = [place for place, key in keys.items() if place in self.objects and _is_as_in(self.objects[place], key)]

        assert self.backend.delete_objects(list(keys.values())) == len(gone)
        for place in gone:
            del self.objects[place]

    def _key_to_delete(self, number: int, how: str, token: str, created: Micros) -> ObjectKey:
        absent = ObjectKey(_one(self.realms, number), _one(self.ids, number), 7, "note", created, token, 1, 3)
        if not self.objects or how == "absent":
            return absent
        key = key_of_object(_one(sorted(self.objects.items()), number)[1])
        changed = {
            "right": key,
            "token": key._replace(token=token),
            "none": key._replace(token=None),
            "time": key._replace(created=created),
            "else": key._replace(type="other", parts=key.parts + 1, bytes=key.bytes + 1),  # what no condition looks at
        }
        return changed[how]

    # scans

    @rule(realm=st.one_of(st.none(), _pick), limit=_limits, after=st.one_of(st.none(), _pick), is_there=st.booleans())
    def scan_references_from_anywhere(self, realm: int | None, limit: int, after: int | None, is_there: bool) -> None:
        self._scan_from_anywhere(
            self.backend.scan_references, self._all_references(self._realm(realm)), self._realm(realm), limit, after,
            None if is_there else lambda number: (_one(self.realms, number), _one(self.names, number)),
        )  # fmt: skip

    @rule(realm=st.one_of(st.none(), _pick), limit=_limits, after=st.one_of(st.none(), _pick), is_there=st.booleans())
    def scan_objects_from_anywhere(self, realm: int | None, limit: int, after: int | None, is_there: bool) -> None:
        self._scan_from_anywhere(
            self.backend.scan_objects, self._all_objects(self._realm(realm)), self._realm(realm), limit, after,
            None if is_there else lambda number: (_one(self.realms, number), _one(self.ids, number), number % 5),
        )  # fmt: skip

    def _scan_from_anywhere(
        self,
        scan: Callable[..., Any],
        expected: list[Any],
        realm: RealmKey | None,
        limit: int,
        after: int | None,
        made_up: Callable[[int], Any] | None,
    ) -> None:
        """``expected`` is in key order; where the order is the database's own, what it told before counts instead."""
        if not self.is_ordered:
            told = scan(ScanSplit(), None, _MANY)
            assert sorted(told) == sorted(expected)
            expected = told
        position = None
        if after is not None and made_up is not None and self.is_ordered:
            position = made_up(after)
        elif after is not None and expected:
            position = _one(expected, after).position
        if position is not None:
            where = [key.position for key in expected]
            start = where.index(position) + 1 if position in where else sum(place <= position for place in where)
            expected = expected[start:]

        assert scan(ScanSplit(realm), position, limit) == expected[:limit]

    @rule(target=reference_cuts, realm=st.one_of(st.none(), _pick), count=_counts)
    def split_references(self, realm: int | None, count: int) -> tuple[RealmKey | None, list[ScanSplit[Any]]]:
        key = self._realm(realm)
        splits = self.backend.split_references(key, count)
        _assert_whole(splits, key, count)
        return key, splits

    @rule(target=object_cuts, realm=st.one_of(st.none(), _pick), count=_counts)
    def split_objects(self, realm: int | None, count: int) -> tuple[RealmKey | None, list[ScanSplit[Any]]]:
        key = self._realm(realm)
        splits = self.backend.split_objects(key, count)
        _assert_whole(splits, key, count)
        return key, splits

    @rule(cut=reference_cuts, limit=_limits)
    def scan_references_in_splits(self, cut: tuple[RealmKey | None, list[ScanSplit[Any]]], limit: int) -> None:
        """Perhaps long after they were cut."""
        found = [scan_all(self.backend.scan_references, split, limit) for split in cut[1]]
        self._assert_same([key for part in found for key in part], self._all_references(cut[0]))

    @rule(cut=object_cuts, limit=_limits)
    def scan_objects_in_splits(self, cut: tuple[RealmKey | None, list[ScanSplit[Any]]], limit: int) -> None:
        found = [scan_all(self.backend.scan_objects, split, limit) for split in cut[1]]
        self._assert_same([key for part in found for key in part], self._all_objects(cut[0]))

    @rule(realm=_pick)
    def scan_one_realm_where_there_is_no_order(self, realm: int) -> None:
        if not self.is_ordered:
            for call in (
                lambda: self.backend.scan_references(ScanSplit(_one(self.realms, realm)), None, 5),
                lambda: self.backend.split_objects(_one(self.realms, realm), 5),
            ):
                with pytest.raises(RefusedError):
                    call()

    # realms and forks

    @rule(realm=_pick, limit=_limits)
    def delete_realm(self, realm: int, limit: int) -> None:
        key = _one(self.realms, realm)
        if not self.backend.capabilities.bulk_realm_deletion:
            with pytest.raises(RefusedError):
                self.backend.delete_realm(key, limit)
            return
        rows = sum(place[0] == key for place in [*self.references, *self.objects])
        deleted = self.backend.delete_realm(key, limit)
        self.references = self._left(self.references, key, scan_all(self.backend.scan_references, ScanSplit(), _MANY))
        self.objects = self._left(self.objects, key, scan_all(self.backend.scan_objects, ScanSplit(), _MANY))

        assert (0 < deleted <= limit) if rows else deleted == 0
        assert sum(place[0] == key for place in [*self.references, *self.objects]) == rows - deleted

    def _left(self, known: dict[Any, Any], realm: RealmKey, scanned: Sequence[Any]) -> dict[Any, Any]:
        """Of the realm's rows only those that a scan still tells; of other realms' all."""
        there = {key.position for key in scanned}
        return {place: row for place, row in known.items() if place[0] != realm or place in there}

    @rule()
    def fork(self) -> None:
        """What the parent does around a fork: afterwards all goes on."""
        self.backend.before_fork()
        self.backend.before_fork()
        self.backend.after_fork(is_child=False)

    # what holds after each step

    @invariant()
    def all_rows_read_back_as_they_were_written(self) -> None:
        for realm, places in groupby(sorted(self.references), key=lambda place: place[0]):
            asked = [name for _, name in places]
            assert self.backend.read_references(realm, asked) == [self.references[realm, name] for name in asked]
        for realm, places in groupby(sorted(self.objects), key=lambda place: place[0]):
            wanted = [(object_id, part) for _, object_id, part in places]
            assert self.backend.read_objects(realm, wanted) == [self.objects[realm, i, part] for i, part in wanted]

    @invariant()
    def scans_tell_all_rows(self) -> None:
        self._assert_same(self.backend.scan_references(ScanSplit(), None, _MANY), self._all_references(None))
        self._assert_same(self.backend.scan_objects(ScanSplit(), None, _MANY), self._all_objects(None))

    # inside

    def _assert_same(self, found: list[K], expected: list[K]) -> None:
        assert (found if self.is_ordered else sorted(found, key=_by_position)) == expected

    def _all_references(self, realm: RealmKey | None) -> list[ReferenceKey]:
        """In key order: Python compares text by code points, which is the order of UTF-8 bytes."""
        return [
            key_of_reference(row) for place, row in sorted(self.references.items(), key=_by_key) if realm in (None, place[0])
        ]

    def _all_objects(self, realm: RealmKey | None) -> list[ObjectKey]:
        return [key_of_object(row) for place, row in sorted(self.objects.items(), key=_by_key) if realm in (None, place[0])]

    def _realm(self, number: int | None) -> RealmKey | None:
        return None if number is None or not self.is_ordered else _one(self.realms, number)

    def _reference(self, realm: int, name: int, body: ReferenceBody) -> ReferenceRow:
        return ReferenceRow(realm=_one(self.realms, realm), name=_one(self.names, name), **body._asdict())

    def _single(self, realm: int, number: int, body: ObjectBody) -> ObjectRow:
        return _rows(
            _one(self.realms, realm), _one(self.ids, number), body._replace(token=body.token or "a", parts=body.parts[:1])
        )[0]


def wipe(backend: Backend) -> None:
    """Delete every row by means of the protocol alone."""
    for key in scan_all(backend.scan_references, ScanSplit(), _MANY):
        backend.remove_reference(
            ReferenceRow(realm=key.realm, name=key.name, pointer=key.pointer, version=key.version, created=key.created)
        )
    backend.delete_objects(scan_all(backend.scan_objects, ScanSplit(), _MANY))


def scan_all(scan: Callable[..., list[K]], split: ScanSplit[Any], limit: int) -> list[K]:
    found: list[K] = []
    while batch := scan(split, found[-1].position if found else None, limit):
        assert len(batch) <= limit
        found += batch
        assert len(found) <= _MANY, "the scan does not end"
    return found


def key_of_reference(row: ReferenceRow) -> ReferenceKey:
    return ReferenceKey(row.realm, row.name, row.pointer, row.version, row.created, row.deleted)


def key_of_object(row: ObjectRow) -> ObjectKey:
    return ObjectKey(row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, len(row.value))


def _rows(realm: RealmKey, object_id: ObjectId, body: ObjectBody) -> list[ObjectRow]:
    return [
        ObjectRow(
            realm=realm,
            id=object_id,
            part=part,
            type=body.type,
            value=value,
            created=body.created,
            token=body.token,
            parts=len(body.parts),
        )
        for part, value in enumerate(body.parts)
    ]


def _assert_whole(splits: list[ScanSplit[Any]], realm: RealmKey | None, count: int) -> None:
    assert 1 <= len(splits) <= count
    assert {split.realm for split in splits} == {realm}
    assert splits[0].after is None
    assert splits[-1].until is None
    assert [split.after for split in splits[1:]] == [split.until for split in splits[:-1]]


def _is_as_in(row: ObjectRow, key: ObjectKey) -> bool:
    return (row.created, row.token) == (key.created, key.token)


def _one(there: Sequence[Any], number: int) -> Any:
    return there[number % len(there)]


def _position(row: ReferenceRow) -> ReferencePosition:
    return row.realm, row.name


def _place(row: ObjectRow) -> ObjectPosition:
    return row.realm, row.id, row.part


def _by_key(item: tuple[Any, Any]) -> Any:
    return item[0]


def _by_position(key: Any) -> Any:
    return key.position
