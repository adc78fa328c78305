"""A small store with some of everything, copied for each case, and what anybody can read of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

import msgspec

from engines.model import fsck_finds_nothing
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import (
    CLAIMS,
    Catalog,
    CatalogRoles,
    Catalogs,
    ContentKey,
    IcebergTable,
    Namespace,
    Put,
    TableClaim,
    TableClaims,
)
from headwater.clock import Micros
from headwater.commits import Commit, listed_extensions, read_head, read_log, read_pins
from headwater.errors import NotFoundError
from headwater.fsck import FindingWeight, FsckFinding, check_store, plan_repairs, repair_realm
from headwater.jobs.task_runs import Run, list_runs, record_run
from headwater.realms import CredentialsHash, Realm, RealmRegistry, RealmState, bootstrap, find_root, read_realm_grants
from headwater.settings import Settings
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmKey, RealmStore, Store
from headwater.store.backend import ReferenceRow
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskLease as TaskClaim
from headwater.tasks import TaskQueue

SETTINGS = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60, purge_hold_seconds=60)
ROOT = CredentialsHash(client_id="root", salt=b"s", digest=b"d", cost=2)
OTHER_ROOT = CredentialsHash(client_id="other", salt=b"s", digest=b"d", cost=2)
TABLE, OTHER_TABLE = UUID(int=1), UUID(int=2)
ORDERS, SALES = ContentKey.of("sales", "orders"), ContentKey.of("sales")
UNLISTED = ("things", "more")
"""References of no catalog and no realm, which some operations are tried on."""
SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)


class ContestedBackend(FaultyBackend):
    """Lets somebody else be faster at one call: what it would swap is swapped just before, for what says the same."""

    _left = 0

    def contest(self, *, at: int) -> None:
        self._left = at

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left == 0 and name == "update_object":
            row, _ = arguments
            [stored] = self.backend.read_objects(row.realm, [(row.id, 0)])
            assert stored is not None and stored.token is not None
            self.backend.update_object(msgspec.structs.replace(stored, token="rival"), stored.token)
        elif self._left == 0:
            seen = next(one for one in arguments if isinstance(one, ReferenceRow))
            self.backend.swap_reference(seen, replace(seen, version=seen.version + 1))
        return super()._call(name, *arguments, **named)


@dataclass
class World:
    """One process on a copy of the store, with a backend that fails on demand; ``raw`` is what no fault meets."""

    raw: MemoryBackend
    faults: ContestedBackend
    clock: FakeClock
    store: Store

    @property
    def realms(self) -> RealmRegistry:
        return RealmRegistry(self.store)

    @property
    def rows(self) -> RealmStore:
        return self.realms.open_realm("acme")

    @property
    def catalogs(self) -> Catalogs:
        return Catalogs(self.rows)

    @property
    def lake(self) -> Catalog:
        return self.catalogs.open_catalog("lake")

    @property
    def claims(self) -> TableClaims:
        return TableClaims(self.rows)

    @property
    def tasks(self) -> TaskQueue:
        return TaskQueue(self.store, chance=lambda: 0.5)

    def task(self, subject: str) -> ObjectId:
        return next(seen.id for seen in self.tasks.list_tasks() if seen.value.subject == subject)

    def elsewhere(self) -> Store:
        """Another process, which no fault meets."""
        return Store(self.raw, url="memory://", settings=SETTINGS, clock=self.clock)


@contextmanager
def opened(rows: MemoryBackend, start: int, *, is_atomic: bool = False) -> Iterator[World]:
    """A process on a copy of these rows. It has leased its node: how that goes wrong has its own tests."""
    raw = copied(rows)
    faults, clock = ContestedBackend(raw, is_atomic=is_atomic), FakeClock(start)
    with Store(faults, url="memory://", settings=SETTINGS, clock=clock) as store:  # type: ignore[arg-type]  # faulty is any backend
        store.new_id()
        yield World(raw, faults, clock, store)
        faults.heal()


def copied(rows: MemoryBackend) -> MemoryBackend:
    """Rows never change, so a copy of the dictionaries is one of the database."""
    copy = MemoryBackend()
    copy._references.put_all(dict(rows._references.rows))
    copy._objects.put_all(dict(rows._objects.rows))
    copy._last_parts = dict(rows._last_parts)
    return copy


@cache
def base() -> tuple[MemoryBackend, int]:
    """The rows that every case begins with, and the time then."""
    with opened(MemoryBackend(), 1_780_000_000_000_000) as world:
        _fill_realms(world)
        _fill_lake(world)
        _fill_tasks(world)
        run = Run(kind="gc", realm="acme", started=Micros(1), finished=Micros(2))
        record_run(world.store, run)
        return copied(world.raw), world.clock.now()


def _fill_realms(world: World) -> None:
    realms = world.realms
    for realm_id in ("acme", "rest", "idle"):
        realms.create_realm(realm_id)
        bootstrap(realms, realm_id, ROOT)
    realms.move_realm(realms.read_realm("rest"), RealmState.INACTIVE)
    realms.create_realm("fresh")
    for realm_id in ("going", "gone", "forgotten"):
        realms.move_realm(realms.create_realm(realm_id), RealmState.PURGING)
    for realm_id in ("gone", "forgotten"):
        realms.move_realm(realms.read_realm(realm_id), RealmState.PURGED)
    realms.remove_realm(realms.read_realm("forgotten"))
    world.clock.advance(100)


def _fill_lake(world: World) -> None:
    catalogs = world.catalogs
    for name in ("lake", "pond", "puddle"):
        catalogs.create_catalog(name, base_location=f"s3://{name}/")
    catalogs.delete_catalog("pond")
    catalogs.delete_catalog("puddle")
    lake = world.lake
    world.claims.take_claims([claim_of(world, TABLE, "s3://lake/orders")])
    lake.commit("main", [Put(SALES, Namespace())], message="first")
    table = IcebergTable(metadata_location="s3://lake/orders/v1.json")
    lake.commit("main", [Put(ORDERS, table)], message="second", content_ids={ORDERS: TABLE})
    lake.create_branch("dev")
    lake.commit("dev", [Put(ContentKey.of("trial"), Namespace())], message="third")
    lake.create_tag("v1")
    for make, delete in ((lake.create_branch, lake.delete_branch), (lake.create_tag, lake.delete_tag)):
        name = "late" if make == lake.create_branch else "old"
        make(name)
        delete(name)
    world.clock.advance(1)


def _fill_tasks(world: World) -> None:
    tasks = world.tasks
    for subject in ("failed", "ended", "running", "waiting", "later"):
        due = Micros(world.clock.now() + 10**9) if subject == "later" else None
        tasks.submit_task("gc", realm="acme", subject=subject, due=due)
    claim_task(world, "failed").fail_task("no luck", retry=False)
    claim_task(world, "ended").finish_task({})
    claim_task(world, "running")


def claim_task(world: World, subject: str) -> TaskClaim:
    claimed = world.tasks.claim_task(world.task(subject), "worker")
    assert claimed is not None
    return claimed


def claim_of(world: World, content: UUID, location: str) -> TableClaim:
    return TableClaim(world.lake.definition.id, content, location, table_uuid=content)


# what can be read


def observed(world: World) -> dict[str, Any]:
    """All that the public reads tell, by a process that has seen nothing before."""
    store = world.elsewhere()
    realms = RealmRegistry(store)
    rows = _rows_by_realm(world.raw)
    return {
        "realms": {realm.id: _told_of_realm(realms, realm, rows[realm.key]) for realm in realms.list_realms()},
        "purged": sorted(realms.purged_keys()),
        "tasks": sorted(_built(seen.value) for seen in TaskQueue(store).list_tasks()),
        "runs": [_built(run) for run in list_runs(store)],
    }


_told: dict[tuple[str, frozenset[int]], tuple[list[Any], dict[str, Any]]] = {}
"""What was told of realms, by the identities of their rows, and these rows, so that no other row gets the identity of one."""


def _told_of_realm(realms: RealmRegistry, realm: Realm, rows: list[Any]) -> dict[str, Any]:
    """Rows never change, and reads tell the same of the same rows: most cases change nothing of most realms."""
    key = (_built(realm), frozenset(map(id, rows)))
    if key not in _told:
        if len(_told) >= 100:
            _told.clear()
        _told[key] = (rows, _observed_realm(realms, realm))
    return _told[key][1]


def _rows_by_realm(raw: MemoryBackend) -> defaultdict[RealmKey, list[Any]]:
    rows: defaultdict[RealmKey, list[Any]] = defaultdict(list)
    for row in (*raw._references.rows.values(), *raw._objects.rows.values()):
        rows[row.realm].append(row)
    return rows


def _observed_realm(realms: RealmRegistry, realm: Realm) -> dict[str, Any]:
    told = {"definition": _built(realm)}
    if realm.state in SERVED:
        rows = realms.open_realm(realm.id)
        catalogs = Catalogs(rows)
        told["root"] = _built(find_root(realms, realm.id))
        told["roles"] = _observed_roles(rows)
        told["claims"] = _observed_claims(rows)
        told["pins"] = sorted(_built(pin) for pin in read_pins(rows))
        told["references"] = [_observed_reference(rows, name) for name in ("things", "widgets")]
        told["listed"] = [entry.name for entry in listed_extensions(rows)]
        told["catalogs"] = {one.name: _observed_catalog(catalogs.open_catalog(one.name)) for one in catalogs.list_catalogs()}
        told["deleted"] = {one.name: _built(one) for one in catalogs.list_deleted()}
    return told


def _observed_roles(rows: RealmStore) -> Any:
    grants = read_realm_grants(rows)
    told: dict[str, Any] = {
        role.name: (grants.privileges_of(entity), len(grants.members_of(entity))) for entity, role in grants.roles.items()
    }
    for definition in Catalogs(rows).list_catalogs():
        roles = CatalogRoles(rows, definition)
        access = roles.read_access()
        for role in roles.list_roles():
            held = sorted(grant.privilege for grant in access.grants_of(role.name))
            told[f"{definition.name}/{role.name}"] = (held, access.grantees_of(role.name))
    return told


def _observed_claims(rows: RealmStore) -> list[str]:
    now = read_head(rows, CLAIMS, fresh=True)
    return [] if now is None else [repr(value) for name in now.names for value in now.index(name).range()]


def _observed_reference(rows: RealmStore, name: str) -> list[str]:
    """A reference of no catalog, which some operations are tried on."""
    try:
        return (
            [_commit_of(found.id, found.commit) for found in read_log(rows, name)]
            if read_head(rows, name, fresh=True)
            else ["empty"]
        )
    except NotFoundError:
        return []


def _observed_catalog(catalog: Catalog) -> dict[str, Any] | str:
    try:
        return _observed_whole(catalog)
    except NotFoundError as fault:
        return f"incomplete: {fault}"


def _observed_whole(catalog: Catalog) -> dict[str, Any]:
    return {
        "definition": _built(catalog.definition),
        "branches": {one.name: _observed_log(catalog, one.name, one.head) for one in catalog.branches()},
        "tags": {one.name: one.head for one in catalog.tags()},
        "deleted branches": {one.name: one.head for one, _ in catalog.deleted_branches()},
        "deleted tags": {one.name: one.head for one, _ in catalog.deleted_tags()},
    }


def _observed_log(catalog: Catalog, name: str, at: ObjectId | None) -> list[str]:
    keys = sorted(str(entry.key) for entry in catalog.entries(name).entries) if at else []
    return [*keys, *(f"{one.seq} {one.meta.message} {one.id}" for one in catalog.log(name))]


def _commit_of(commit_id: ObjectId, commit: Commit) -> str:
    return f"{commit_id} {commit.message} {commit.operations}"


def _built(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        return repr({field.name: getattr(value, field.name) for field in fields(value)})
    return repr(value)


_VARIES = re.compile(r"\b[0-9a-f]{16}\b|\b[0-9]{12,}\b|b'[^']*'|b\"[^\"]*\"|[0-9a-f]{8}-[0-9a-f-]{27}|'[0-9a-f]{16}'")


def plain(told: Any) -> Any:
    """The same without ids, times and bytes, which differ from one run to the next."""
    if isinstance(told, dict):
        return {name: plain(value) for name, value in told.items()}
    if isinstance(told, list):
        return [plain(value) for value in told]
    return _plain_text(str(told))


@lru_cache(maxsize=10_000)
def _plain_text(text: str) -> str:
    return _VARIES.sub("#", text)


def troubles(world: World, keys: set[RealmKey]) -> list[str]:
    """What fsck still finds in the realms of these keys after its safe steps, but for what maintenance clears away by itself."""
    store = world.elsewhere()
    named = {SYSTEM_KEY: SYSTEM_REALM, **{realm.key: realm.id for realm in RealmRegistry(store).list_realms()}}
    realms = sorted(named[key] for key in keys if key in named)
    findings = [finding for realm in realms for finding in check_store(store, realm=realm)]
    steps = [step for step in plan_repairs(findings) if step.is_safe]
    for realm in {step.realm for step in steps}:
        list(repair_realm(store, realm, steps))
    if steps:
        findings = [finding for realm in realms for finding in check_store(store, realm=realm)]
    return fsck_finds_nothing(findings, _is_harmless)


def _is_harmless(finding: FsckFinding) -> bool:
    return finding.weight is FindingWeight.LEFTOVER or finding.subject in UNLISTED or finding.realm == "going"
