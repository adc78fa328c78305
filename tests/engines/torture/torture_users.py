"""What users do to a realm under torture: they write, read, move branches, and look at what was a head a while ago.

Every thread of a writer has keys of its own, so it knows what must stand under each of them whatever the others do.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from torture_actors import Actor

from engines.model import COMMIT, LOOK, Journal, marker_of, markers_at, readable_seconds
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put
from headwater.commits import commit_change, read_head
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, UnknownOutcomeError
from headwater.index import IndexValue
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, RealmStore

__all__ = ["COUNTED", "FORGETFUL", "LAKE", "SIDE_BRANCHES", "STEADY", "count", "look_back", "move_branches", "write"]

STEADY, FORGETFUL = "vault", "acme"
"""Realms: one keeps all of its history, the other next to none."""
LAKE = "lake"
COUNTED = "policy-mappings"
"""A reference of the forgetful realm that takes bare commits, one marker each."""
SIDE_BRANCHES = tuple(f"side-{number}" for number in range(4))
REALMS = (STEADY, FORGETFUL)


def lake(actor: Actor, realm: str) -> Catalog:
    return Catalogs(RealmRegistry(actor.store).open_realm(realm)).open_catalog(LAKE)


def write(actor: Actor) -> None:
    """Three threads that put tables of their own on main, take some away again, and look for those that they have been promised."""
    actor.in_threads(3, lambda thread: _Writer(actor, thread).run())


@dataclass
class _Writer:
    actor: Actor
    thread: int
    there: list[str] = field(default_factory=list)
    steps: int = 0

    def run(self) -> None:
        realm = REALMS[self.thread % 2]
        catalog: Catalog | None = None
        while self.actor.goes_on(pause_seconds=0.04):
            with self.actor.trying("write"):
                catalog = catalog if catalog is not None and self.steps % 25 else lake(self.actor, realm)
                self.steps += 1
                self._step(catalog, realm)

    def _step(self, catalog: Catalog, realm: str) -> None:
        choice = self.actor.chance.random()
        if self.there and choice < 0.15:
            self._commit(catalog, realm, "delete", self.there.pop(self.actor.chance.randrange(len(self.there))))
        elif self.there and choice < 0.4:
            self._look(catalog, realm)
        elif choice < 0.5:
            self._put_aside(catalog)
        else:
            self._commit(catalog, realm, "put", f"{self.actor.name}-{self.thread}-{self.steps}")

    def _commit(self, catalog: Catalog, realm: str, step: str, key: str) -> None:
        """Commit to main, and note what was said: done, certainly not, or nobody knows. A death in between is the last."""
        self.actor.note("call", step=step, realm=realm, key=key)
        try:
            done = catalog.commit("main", [_put(key) if step == "put" else Delete(ContentKey.of(key))], message=key)
        except UnknownOutcomeError:
            self.actor.note("open", step=step, realm=realm, key=key)
            raise
        except HeadwaterError as fault:
            self.actor.note("not", step=step, realm=realm, key=key, fault=repr(fault))
            if step == "delete":
                self.there.append(key)
            raise
        self.actor.note("done", step=step, realm=realm, key=key, commit=done.commit_id)
        if step == "put":
            self.there.append(key)

    def _look(self, catalog: Catalog, realm: str) -> None:
        """What a process was told is committed, it sees from then on."""
        key = self.actor.chance.choice(self.there)
        if catalog.get_content("main", ContentKey.of(key)) is None:
            self.actor.note("lost", step="read", realm=realm, key=key)

    def _put_aside(self, catalog: Catalog) -> None:
        """On a branch that others move and delete: no promise, but something to collect."""
        catalog.commit(self.actor.chance.choice(SIDE_BRANCHES), [_put(f"{self.actor.name}-{self.thread}-{self.steps}-aside")])


def count(actor: Actor) -> None:
    """Bare commits of two threads, one marker each, to one reference; and looks at how many there are."""
    journal = Journal(path=actor.stage.folder / f"{actor.name}.events")
    actor.in_threads(2, lambda thread: _count(actor, journal, f"{actor.name}-{thread}"))
    journal.close()


def _count(actor: Actor, journal: Journal, client: str) -> None:
    rows, steps = None, 0
    while actor.goes_on(pause_seconds=0.05):
        with actor.trying("count"):
            rows = rows or RealmRegistry(actor.store).open_realm(FORGETFUL)
            if actor.chance.random() < 0.3:
                journal.act(client, LOOK, partial(_look, rows), key=rows.key, reference=COUNTED)
            else:
                marker = marker_of(client, steps := steps + 1)
                journal.act(client, COMMIT, partial(_mark, rows, marker), key=rows.key, reference=COUNTED, marker=marker)


def _mark(rows: RealmStore, marker: str, found: dict[str, object]) -> None:
    found["commit"] = commit_change(
        rows, COUNTED, lambda tx: tx.index("markers").put(marker.encode(), IndexValue(None, b""))
    ).commit_id


def _look(rows: RealmStore, found: dict[str, object]) -> None:
    seen = read_head(rows, COUNTED, fresh=True)
    found |= {"seq": 0, "markers": 0} if seen is None else {"seq": seen.commit.seq, "markers": len(markers_at(seen))}


def move_branches(actor: Actor) -> None:
    """Branches and tags are made, assigned, deleted and come back, at heads and at commits of the past."""
    old: dict[str, deque[ObjectId]] = {realm: deque(maxlen=30) for realm in REALMS}
    while actor.goes_on(pause_seconds=0.08):
        realm = actor.chance.choice(REALMS)
        with actor.trying("branch"):
            catalog = lake(actor, realm)
            head = catalog.resolve("main")
            if head is not None:
                old[realm].append(head.id)
                _move(actor, catalog, actor.chance.choice((head.id, actor.chance.choice(old[realm]))))


def _move(actor: Actor, catalog: Catalog, target: ObjectId) -> None:
    name = actor.chance.choice(SIDE_BRANCHES)
    there = {branch.name: branch for branch in catalog.branches()}
    if name not in there:
        catalog.create_branch(name, at=target)
    elif actor.chance.random() < 0.4:
        catalog.delete_branch(name)
        if actor.chance.random() < 0.5 and there[name].head is not None:
            catalog.create_branch(name, at=there[name].head)
    else:
        catalog.assign_branch(name, target, expected=there[name].head)
    tag = f"tag-{actor.chance.randrange(3)}"
    try:
        catalog.delete_tag(tag)
    except (NotFoundError, ConflictError):
        catalog.create_tag(tag, at=target)


def look_back(actor: Actor) -> None:
    """What was a head is readable, whole, for the reader's grace less the clocks' difference: by its hash, and page by page."""
    safe = readable_seconds(actor.stage.settings) * 1_000_000
    while actor.goes_on(pause_seconds=0.05):
        realm = actor.chance.choice(REALMS)
        with actor.trying("look back"):
            catalog = lake(actor, realm)
            asked = actor.clock.now()
            row = actor.chance.choice(catalog.branches())
            if row.head is None:
                continue
            time.sleep(actor.chance.uniform(0, safe / 1_000_000 / actor.stage.timeline.speed))
            try:
                page = catalog.entries(f"{row.head:016x}", limit=50)
                entries = list(page.entries)
                while page.next_token is not None:
                    page = catalog.entries(page_token=page.next_token, limit=200)
                    entries += page.entries
                sample = actor.chance.sample(entries, min(len(entries), 20))
                catalog.get_contents(f"{row.head:016x}", [entry.key for entry in sample])
            except NotFoundError as gone:
                if actor.clock.now() - asked < safe:
                    actor.note("damage", step="look back", fault=f"{row} was head at {asked}, and is gone: {gone}")
                raise
            actor.note("looked", entries=len(entries))


def _put(key: str) -> Put:
    return Put(ContentKey.of(key), IcebergTable(metadata_location=f"s3://lake/{key}.json"))
