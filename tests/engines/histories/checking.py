"""Whether what clients were told, and what a store holds in the end, can be true together. Everything is read from the database, by a
process that nothing disturbs.

Call it when all clients have ended. ``check_garbage`` comes after one more collection of each realm, beyond all graces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engines.histories.journal import COMMIT, LOOK, Event, Outcome, is_marker
from engines.histories.walking import Chain, Walk, all_objects, all_references, pinned, references_of
from headwater.clock import Micros
from headwater.commits import COLLECTION_ID, Head, read_collection, read_log
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import SYSTEM_KEY, ObjectId, RealmStore, ReferenceRow, Store, StoredObject, id_text, is_fixed

__all__ = ["Kept", "check_garbage", "check_history", "check_purged", "check_readable", "markers_at"]

_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)
_OWN = ("cuts",)
"""What a collection writes for the next one: of the one before the last it may be there still."""
_NOT_DONE = (Outcome.REFUSED, Outcome.BEATEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a realm's retention allows to stay: so many commits of history; all references alike, so the larger number."""

    commits: int
    age_seconds: float = 0.0


def check_history(store: Store, events: Sequence[Event], *, lasting: Mapping[str, int]) -> list[str]:
    """What is wrong, a line each; with nothing wrong, none.

    Every acknowledged commit is in the history of its reference exactly once, those refused never, open ones at most once; looks
    saw what they had to; nobody met an error that nobody should.

    events        all operations of all clients on this store
    lasting       names of references, of whatever realm, that no one moves but by commits that the events tell of, each with the
                  commits that it had before
    """
    faults = [f"nobody should ever be told: {event}" for event in events if event.outcome is Outcome.BROKEN]
    commits = [event for event in events if event.action == COMMIT and event.marker]
    faults += [f"two commits put {marker}" for marker, n in Counter(one.marker for one in commits).items() if n > 1]
    by_marker = {event.marker: event for event in commits}
    for realm in _served(store):
        rows = _rows(store, realm)
        for row in references_of(rows):
            if row.deleted is None and row.pointer is not None:
                where = f"reference {row.name} of realm {realm.id}"
                faults += Chain(rows, row.pointer).faults(where)
                faults += _held(rows, row, by_marker, where, lasting.get(row.name))
        names = {row.name for row in references_of(rows)}
        faults += [f"reference {name} of realm {realm.id} is gone" for name in lasting if _is_of(name, realm, commits) - names]
    for (_, name), there in _by_reference(events).items():
        if name in lasting:
            faults += _looks(there, lasting[name])
    return faults


def check_readable(store: Store) -> list[str]:
    """Every head of every realm, listed or not, can be read in full."""
    faults: list[str] = []
    for rows in [store.system.without_cache(budget_bytes=1 << 25), *(_rows(store, realm) for realm in _served(store))]:
        walk = Walk(rows)
        for row in references_of(rows):
            if row.deleted is None and row.pointer is not None:
                walk.commit(row.pointer, f"reference {row.name} of realm {rows.realm}")
        faults += walk.faults
    return faults


def check_purged(store: Store) -> list[str]:
    """There is no row but of realms that are there; of those that are PURGED there is none either."""
    realms = {realm.key: realm for realm in RealmRegistry(store).list_realms()}
    alive = {key for key, realm in realms.items() if realm.state is not RealmState.PURGED} | {SYSTEM_KEY}
    rows = Counter(key.realm for key in all_objects(store.backend)) + Counter(key for key, _ in all_references(store.backend))
    return [
        f"{n} rows are left of the purged realm of key {key} ({realms.get(key)})" for key, n in rows.items() if key not in alive
    ]


def check_garbage(store: Store, realm_id: str, kept: Kept) -> list[str]:
    """Nothing is left that nothing needs, but what is younger than the cut-off of the last collection."""
    realm = RealmRegistry(store).read_realm(realm_id)
    rows = _rows(store, realm)
    record = read_collection(rows)
    if record is None:
        return [f"realm {realm_id} was never collected"]
    faults = [f"the sweep of realm {realm_id} is still on, of {record.value.owner}"] if record.value.sweeping else []
    needed = _needed(rows, kept, Micros(record.value.reader_cutoff))
    parts: dict[ObjectId, int] = {}
    own = 0
    for key in all_objects(store.backend):
        if key.realm != realm.key or is_fixed(key.id) or key.created > record.value.writer_cutoff:
            continue
        if key.id not in needed and key.type in _OWN:
            own += 1
        elif key.id not in needed:
            faults.append(f"object {id_text(key.id)} of type {key.type} in realm {realm_id} is garbage, made at {key.created}")
        elif key.part and key.part >= parts.setdefault(key.id, _parts_of(rows, key.id)):
            faults.append(f"part {key.part} of object {id_text(key.id)} of type {key.type} in realm {realm_id} is left over")
    return [*faults, f"{own} objects of former collections are left in realm {realm_id}"] if own > 1 else faults


def markers_at(head: Head) -> set[str]:
    """The markers that hold at a commit, in whichever index."""
    found = (key.decode(errors="replace") for name in head.names for key in head.index(name).keys())  # noqa: SIM118
    return {key for key in found if is_marker(key)}


def _held(rows: RealmStore, row: ReferenceRow, by_marker: Mapping[str, Event], where: str, before: int | None) -> list[str]:
    """What one reference holds, against what the clients were told."""
    assert row.pointer is not None
    found = rows.find_object(row.pointer, StoredObject)
    if found is None:
        return [f"{where}: its head {id_text(row.pointer)} is not there"]
    head = next(iter(read_log(rows, row.pointer)))
    there, faults = markers_at(head), []
    for marker in sorted(there):
        event = by_marker.get(marker)
        if event is None:
            faults.append(f"{where}: {marker} was never asked for")
        elif event.outcome in _NOT_DONE:
            faults.append(f"{where}: {marker} is there, and its client was told that it is not: {event}")
        elif event.key and event.key != rows.key:
            faults.append(f"{where}: {marker} is there, and was committed to the realm of key {event.key}: {event}")
    faults += _once(rows, row.pointer, by_marker, where)
    if before is None:
        return faults
    told = {marker for marker, event in by_marker.items() if _is_to(event, row) and event.outcome is Outcome.OK}
    faults += [f"{where}: {by_marker[marker]} was acknowledged, and is lost" for marker in sorted(told - there)]
    if head.commit.seq - before != len(there):
        faults.append(f"{where}: {head.commit.seq - before} commits since the beginning put {len(there)} markers")
    return faults


def _once(rows: RealmStore, pointer: ObjectId, by_marker: Mapping[str, Event], where: str) -> list[str]:
    """No marker is put by two commits of a history, and each by the commit that its client was told of."""
    faults, put_by = [], dict[str, ObjectId]()
    for commit_id, commit in Chain(rows, pointer).commits():
        if commit.message.startswith("restore"):
            continue  # puts again what was there
        for operation in commit.operations:
            marker = operation.key.decode(errors="replace")
            if not is_marker(marker):
                continue
            if marker in put_by:
                faults.append(f"{where}: commits {id_text(commit_id)} and {id_text(put_by[marker])} both put {marker}")
            put_by[marker] = commit_id
            told = by_marker[marker].found.get("commit") if marker in by_marker else None
            if told is not None and told != commit_id:
                faults.append(f"{where}: {marker} was put by {id_text(commit_id)}, and its client was told {id_text(told)}")
    return faults


def _looks(events: Sequence[Event], before: int) -> list[str]:
    """Looks at one reference: each holds what was told before it and nothing from after it, and none goes back behind another."""
    faults: list[str] = []
    done = [event for event in events if event.action == COMMIT and event.outcome is Outcome.OK]
    open_ = [event for event in events if event.action == COMMIT and event.outcome not in _NOT_DONE]
    looks = [event for event in events if event.action == LOOK and event.outcome is Outcome.OK]
    for look in looks:
        assert look.returned is not None
        least = sum(one.returned is not None and one.returned < look.called for one in done)
        most = sum(one.called < look.returned for one in open_)
        seen = look.found["markers"]
        if not least <= seen <= most:
            faults.append(f"{look}: it had to see {least} to {most} commits")
        if seen != look.found["seq"] - before:
            faults.append(f"{look}: its commit has another number than markers")
        for other in looks:
            assert other.returned is not None
            if other.returned < look.called and other.found["seq"] > look.found["seq"]:
                faults.append(f"{look}: an earlier look saw more: {other}")
    return faults


def _needed(rows: RealmStore, kept: Kept, reader_cutoff: Micros) -> set[ObjectId]:
    """All that references keep, and the collector's own record: the most that may be left."""
    walk = Walk(rows)
    slack = round(rows.settings.commit_timeout_seconds * 1_000_000)
    cutoff = reader_cutoff - slack
    if kept.age_seconds:
        cutoff = min(cutoff, rows.clock.now() - round(kept.age_seconds * 1_000_000))
    for row in references_of(rows):
        lines: list[tuple[ObjectId, Micros | None, int]] = [(move.pointer, move.time, 0) for move in row.moves]
        if row.pointer is not None:
            # Like any commit that is made while a collection runs, its own note supersedes a commit that it has marked already.
            commits = kept.commits + row.name.endswith("/refs")
            lines.append((row.pointer, row.deleted, 0 if row.deleted is not None else commits))
        for pointer, left, commits in lines:
            for commit_id in Chain(rows, pointer).kept(superseded=left, commits=commits, cutoff=cutoff):
                walk.commit(commit_id, row.name)
    for commit_id in pinned(rows):
        walk.commit(commit_id, "pins")
    record = rows.find_versioned(COLLECTION_ID, StoredObject)
    if record is not None:
        own = {*record.value.points_to(), getattr(record.value, "cuts", None)} - {None}
        walk.seen |= own  # type: ignore[arg-type]  # None was taken away
    return walk.seen


def _parts_of(rows: RealmStore, object_id: ObjectId) -> int:
    found = rows.store.backend.read_objects(rows.key, [(object_id, 0)])[0]
    return 0 if found is None else found.parts


def _served(store: Store) -> list[Realm]:
    return [realm for realm in RealmRegistry(store).list_realms() if realm.state in _SERVED]


def _rows(store: Store, realm: Realm) -> RealmStore:
    return store.rows(realm.id, realm.key).without_cache(budget_bytes=1 << 25)


def _by_reference(events: Sequence[Event]) -> dict[tuple[int, str], list[Event]]:
    found: dict[tuple[int, str], list[Event]] = {}
    for event in events:
        found.setdefault((event.key, event.reference), []).append(event)
    return found


def _is_to(event: Event, row: ReferenceRow) -> bool:
    return event.reference == row.name and event.key in (0, row.realm)


def _is_of(name: str, realm: Realm, commits: Iterable[Event]) -> set[str]:
    """The reference, if any commit to it was acknowledged in this very realm."""
    return (
        {name}
        if any(one.reference == name and one.key == realm.key and one.outcome is Outcome.OK for one in commits)
        else set()
    )
