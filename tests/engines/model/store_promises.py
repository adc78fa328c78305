"""What a store holds as a whole: what must be there, what must be gone, and what fsck may find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engines.model.promise import promised
from engines.model.realm_walk import Chain, RowWalk, Walk, all_objects, all_references, pinned, references_of
from headwater.clock import Micros
from headwater.commits import COLLECTION_ID, read_collection
from headwater.fsck import FsckFinding
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import SYSTEM_KEY, ObjectId, RealmKey, RealmStore, ReferenceRow, Store, StoredObject, id_text, is_fixed

COLLECTION = "docs/concepts/collection.md"
SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)
OWN = ("cuts",)
"""What a collection writes for the next one: of the one before the last it may be there still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a realm's retention allows to stay: so many commits of history; all references alike, so the larger number."""

    commits: int
    age_seconds: float = 0.0


@dataclass(slots=True)
class HeadSpan:
    """How long a reference had a pointer. ``until`` None: it has it still. Times are of the world's clock."""

    realm: RealmKey
    name: str
    pointer: ObjectId
    since: int
    until: int | None = None


@promised(COLLECTION, "What stays")
def heads_can_be_read(store: Store) -> list[str]:
    """Every head and every pinned commit of every realm can be read in full, and each of its indexes has its keys once and in order."""
    faults: list[str] = []
    for rows in [store.system.without_cache(budget_bytes=1 << 25), *(rows_of(store, realm) for realm in served_realms(store))]:
        walk = Walk(rows)
        for row in references_of(rows):
            if row.deleted is None and row.pointer is not None:
                walk.commit(row.pointer, f"reference {row.name} of realm {rows.realm}")
        for commit_id in pinned(rows):
            walk.commit(commit_id, f"pins of realm {rows.realm}")
        faults += walk.faults
    return faults


@promised("docs/concepts/index.md", "Grace")
def recent_heads_are_whole(walk: RowWalk, spans: Iterable[HeadSpan], now: int) -> list[str]:
    """What is HEAD, and what was until a reader's grace ago, lacks no object."""
    faults: list[str] = []
    for span in spans:
        missing = walk.missing(span.realm, span.pointer)
        if missing is not None:
            when = "is" if span.until is None else f"was {(now - span.until) / 1e6:.0f} s ago"
            where = f"{span.name} of realm key {span.realm}, whose head commit {id_text(span.pointer)} {when}"
            faults.append(f"{where}: object {id_text(missing)} is gone")
    return faults


def readable_seconds(settings: Settings) -> float:
    """How long what was HEAD can be read: a reader's grace, less what clocks may differ by."""
    return settings.reader_grace_seconds - settings.clock_bound_seconds


@promised("docs/concepts/commits.md", "When many commit at once")
def deleted_objects_are_not_needed(walk: Walk, deleted: Iterable[ObjectId]) -> list[str]:
    """Nobody deletes an object that a head leads to.

    walk          has been to all heads
    """
    return [f"object {id_text(object_id)} was deleted, and a head leads to it" for object_id in sorted(walk.seen & {*deleted})]


@promised("docs/concepts/index.md", "Reference")
def versions_go_up(row: ReferenceRow, before: int) -> list[str]:
    """Whatever is written to a reference gives it a higher version."""
    return [f"reference {row.name} went from version {before} to {row.version}"] if row.version <= before else []


@promised("docs/concepts/index.md", "Realm")
def purged_realms_have_no_rows(store: Store) -> list[str]:
    """There is no row but of realms that are there and not PURGED."""
    realms = {realm.key: realm for realm in RealmRegistry(store).list_realms()}
    alive = {key for key, realm in realms.items() if realm.state is not RealmState.PURGED} | {SYSTEM_KEY}
    rows = Counter(key.realm for key in all_objects(store.backend)) + Counter(key for key, _ in all_references(store.backend))
    return [
        f"{n} rows are left of the purged realm of key {key} ({realms.get(key)})" for key, n in rows.items() if key not in alive
    ]


@promised(COLLECTION, "What stays")
def garbage_is_gone(store: Store, realm_id: str, kept: Kept) -> list[str]:
    """After a collection nothing is left that nothing needs, but what is younger than its cut-off."""
    realm = RealmRegistry(store).read_realm(realm_id)
    rows = rows_of(store, realm)
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
        if key.id not in needed and key.type in OWN:
            own += 1
        elif key.id not in needed:
            faults.append(f"object {id_text(key.id)} of type {key.type} in realm {realm_id} is garbage, made at {key.created}")
        elif key.part and key.part >= parts.setdefault(key.id, _parts_of(rows, key.id)):
            faults.append(f"part {key.part} of object {id_text(key.id)} of type {key.type} in realm {realm_id} is left over")
    return [*faults, f"{own} objects of former collections are left in realm {realm_id}"] if own > 1 else faults


@promised("docs/operate/fsck.md", "What it finds")
def fsck_finds_nothing(findings: Iterable[FsckFinding], is_harmless: Callable[[FsckFinding], bool]) -> list[str]:
    """A check of the store finds nothing but what maintenance clears away by itself.

    is_harmless   whether a finding is one that the faults of this very engine explain
    """
    return [f"fsck: {one.code} {one.realm} {one.subject}: {one.message}" for one in findings if not is_harmless(one)]


def served_realms(store: Store) -> list[Realm]:
    return [realm for realm in RealmRegistry(store).list_realms() if realm.state in SERVED]


def rows_of(store: Store, realm: Realm) -> RealmStore:
    return store.rows(realm.id, realm.key).without_cache(budget_bytes=1 << 25)


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
