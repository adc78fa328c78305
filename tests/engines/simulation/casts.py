"""Who acts in a simulated world, and what they do: a realm that is served, and one that comes and goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from worlds import START, Actor, World

from engines.model import COMMIT, LOOK, Journal, marker_of, markers_at
from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put, RefKind
from headwater.catalogs.registry import content_reference
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import CorruptionError, FencedError, HeadwaterError, NotFoundError, RefusedError
from headwater.index import IndexValue
from headwater.jobs import COLLECT, EXPORT, PURGE, RESTORE, run_collection, run_purge
from headwater.jobs.task_runs import file_arguments, run_export, run_restore
from headwater.realms import REALM_REFERENCES, CredentialsHash, HistoryRetention, RealmRegistry, RealmState, bootstrap
from headwater.restore import RestoreRequest, RestoreTarget
from headwater.settings import Settings
from headwater.store import ObjectId, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import REFERENCE as TASKS
from headwater.tasks import LeaseWatch, TaskLease, TaskQueue, TaskStoppedError

__all__ = ["KEPT_COMMITS", "RAW", "SETTINGS", "Cast", "prepare"]

GRACE = 300.0
KEPT_COMMITS = 2
RAW = "policy-mappings"
"""A reference of the realm that nobody moves but by commits, written here without a catalog's rules."""
BRANCHES = ("red", "blue")
SETTINGS = Settings(
    writer_grace_seconds=GRACE,
    reader_grace_seconds=GRACE,
    purge_hold_seconds=100,
    catalog_hold_seconds=200,
    index_embedded_bytes=400,
    index_stripe_bytes=400,
    delete_batch=4,
    sweep_splits=1,
    task_backoff_seconds=5,
    content_commits=KEPT_COMMITS,
    content_age_seconds=1,
    reference_commits=KEPT_COMMITS,
    cache_bytes=4 * 1024 * 1024,
)
_BURSTS = 9
_GAPS = (30.0, 100.0, 400.0, 400.0, 700.0)
"""Seconds from one burst of activity to the next: within a grace, and beyond it."""
_BURST_SECONDS = 0.6
_RETENTION = HistoryRetention(content_commits=KEPT_COMMITS, content_age_seconds=1, reference_commits=KEPT_COMMITS)
_HASH = CredentialsHash(client_id="c", salt=b"s", digest=b"d")


def prepare(backend: MemoryBackend) -> MemoryBackend:
    """The database with one realm that is served, which has a lake."""
    store = Store(backend, url="memory://", settings=SETTINGS, clock=FakeClock(START - 7_200_000_000))
    store.system.ensure_reference(TASKS)
    realms = RealmRegistry(store)
    realm = realms.move_realm(realms.create_realm("acme", retention=_RETENTION), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realm, RealmState.ACTIVE)
    Catalogs(realms.open_realm("acme")).create_catalog("lake")
    return backend


_WORK = {COLLECT: run_collection, PURGE: run_purge, EXPORT: run_export, RESTORE: run_restore}


class Cast:
    """The actors of a world, and the journal in which they write what they asked for.

    folder        where exports go; None: there are none
    """

    def __init__(self, world: World, folder: Path | None) -> None:
        self.world = world
        self.folder = folder
        self.journal = Journal(now=world.tick)
        self.chance = world.rng
        self.numbers = iter(range(1_000_000))
        self.watches: dict[Actor, tuple[Store, LeaseWatch]] = {}
        gaps = [self.chance.choice(_GAPS) for _ in range(_BURSTS)]
        self.bursts = [sum(gaps[:number]) for number in range(_BURSTS)]
        bound = world.settings.clock_bound_seconds / 2
        plan: list[tuple[str, Callable[[Actor], None], int]] = [
            ("writer-1", self.write, 12),
            ("writer-2", self.write, 12),
            ("brancher-1", self.branch, 11),
            ("brancher-2", self.branch, 11),
            ("cataloger", self.catalog, 6),
            ("restorer", self.restore, 3),
            ("reader", self.look, 5),
            ("worker-1", self.work, 11),
            ("worker-2", self.work, 11),
            ("keeper", self.ask, 4),
            *([("exporter", self.export, 3)] if self.folder is not None else []),
            ("landlord-1", self.tend, 10),
            ("landlord-2", self.tend, 10),
        ]
        for name, piece, times in plan:
            Actor(world, name, self._repeat(piece, times), shift_seconds=self.chance.uniform(-bound, bound))

    def _repeat(self, piece: Callable[[Actor], None], times: int) -> Callable[[Actor], None]:
        """So many pieces, most of them in the minutes in which the others act too."""
        moments = sorted(self.chance.choice(self.bursts) + self.chance.expovariate(1 / _BURST_SECONDS) for _ in range(times))

        def work(actor: Actor) -> None:
            for moment in moments:
                actor.rest(max(0.0, moment - actor.clock.monotonic()))
                actor.attempt(lambda: piece(actor))

        return work

    # in the realm that is served

    def write(self, actor: Actor) -> None:
        """A commit to a branch, or to the raw reference."""
        marker = marker_of(actor.name, next(self.numbers))
        rows = self._open(actor)
        if rows is None:
            return
        if self.chance.random() < 0.3:

            def change(tx: Transaction) -> None:
                tx.index("markers").put(marker.encode(), IndexValue(None, b""))

            self._note(actor, COMMIT, lambda found: commit_change(rows, RAW, change), rows.key, RAW, marker)
            return
        lake = self._lake(actor)
        if lake is None:
            return
        branch = self.chance.choice(("main", "main", "main", "main", *BRANCHES))
        wish = [Put(ContentKey.of(marker), IcebergTable(metadata_location=f"s3://{marker}"))]
        reference = content_reference(lake.definition.id, RefKind.BRANCH, branch)
        self._note(actor, COMMIT, lambda found: lake.commit(branch, wish), rows.key, reference, marker)

    def branch(self, actor: Actor) -> None:
        """Make, move or delete a branch."""
        lake = self._lake(actor)
        if lake is None:
            return
        name = self.chance.choice(BRANCHES)

        def make(_: dict[str, Any]) -> None:
            lake.create_branch(name, at=self._target(lake, "main"))

        def assign(_: dict[str, Any]) -> None:
            target = self._target(lake, self.chance.choice(("main", "main", *BRANCHES)))
            if target is not None:
                lake.assign_branch(name, target)

        def delete(_: dict[str, Any]) -> None:
            lake.delete_branch(name)

        def undelete(_: dict[str, Any]) -> None:
            lake.undelete_branch(name)

        act = self.chance.choice((make, make, make, assign, assign, delete, delete, undelete))
        self._note(actor, f"{act.__name__} {name}", act)

    def _target(self, lake: Catalog, branch: str) -> ObjectId | None:
        """Mostly the oldest that can be read: the next collection takes it."""
        history = [entry.id for entry in lake.log(branch, limit=12)]
        if not history:
            return None
        return history[-1] if self.chance.random() < 0.6 else self.chance.choice(history)

    def catalog(self, actor: Actor) -> None:
        """Make, fill or delete another catalog."""
        rows = self._open(actor)
        if rows is None:
            return
        catalogs = Catalogs(rows)

        def make(_: dict[str, Any]) -> None:
            catalogs.create_catalog("side")

        def fill(_: dict[str, Any]) -> None:
            key = ContentKey.of(f"t{next(self.numbers)}")
            catalogs.open_catalog("side").commit("main", [Put(key, IcebergTable(metadata_location="s3://side"))])

        def delete(_: dict[str, Any]) -> None:
            catalogs.delete_catalog("side")

        def undelete(_: dict[str, Any]) -> None:
            catalogs.undelete_catalog("side")

        act = self.chance.choice((make, make, fill, delete, undelete))
        self._note(actor, f"{act.__name__} catalog side", act)

    def look(self, actor: Actor) -> None:
        """Read all of a branch or of the raw reference."""
        rows = self._open(actor)
        lake = self._lake(actor)
        if rows is None or lake is None:
            return
        main = content_reference(lake.definition.id, RefKind.BRANCH, "main")
        name = self.chance.choice((RAW, main))

        def work(found: dict[str, Any]) -> None:
            now = read_head(rows, name, fresh=True)
            found |= {"seq": 0, "markers": 0} if now is None else {"seq": now.commit.seq, "markers": len(markers_at(now))}

        self._note(actor, LOOK, work, rows.key, name)

    # the store

    def restore(self, actor: Actor) -> None:
        """Ask that a branch becomes what it was."""
        branch = self.chance.choice(BRANCHES)

        def work(_: dict[str, Any]) -> None:
            found = RealmRegistry(actor.store).read_realm("acme")
            aim = RestoreTarget(time=Micros(actor.clock.now() - round(self.chance.choice((1.0, 100.0, 500.0)) * 1e6)))
            wish = RestoreRequest(reference=f"lake/{branch}", aim=aim).arguments()
            self._tasks(actor).submit_task(RESTORE, realm="acme", realm_key=found.key, subject=f"lake/{branch}", arguments=wish)

        self._note(actor, f"ask for {branch} to be restored", work)

    def export(self, actor: Actor) -> None:
        """Ask for an archive."""
        assert self.folder is not None
        file = self.folder / f"{next(self.numbers)}.archive"

        def work(_: dict[str, Any]) -> None:
            found = RealmRegistry(actor.store).read_realm("acme")
            wish = file_arguments(file, is_here=True)
            self._tasks(actor).submit_task(EXPORT, realm="acme", realm_key=found.key, subject=file.name, arguments=wish)

        self._note(actor, "ask for an export", work)

    def ask(self, actor: Actor) -> None:
        """Ask for a collection."""
        realm = self.chance.choice(("acme", "beta"))

        def work(_: dict[str, Any]) -> None:
            found = RealmRegistry(actor.store).read_realm(realm)
            self._tasks(actor).submit_task(COLLECT, realm=realm, realm_key=found.key)

        self._note(actor, f"ask for a collection of {realm}", work)

    def work(self, actor: Actor) -> None:
        """What a worker does: look, claim, do, and tell how it ended. Its heart beats only in ``check``. Often it asks for work first."""
        tasks = self._tasks(actor)
        if self.watches.get(actor, (None,))[0] is not actor.store:
            self.watches[actor] = actor.store, LeaseWatch(actor.clock, self.world.settings.task_lease_seconds)
        watch = self.watches[actor][1]

        def work(_: dict[str, Any]) -> None:
            if self.chance.random() < 0.6:
                realm = RealmRegistry(actor.store).read_realm("acme")
                tasks.submit_task(COLLECT, realm="acme", realm_key=realm.key)
            for one in tasks.find_claimable(watch):
                claim = tasks.claim_task(one.id, actor.name, watch)
                if claim is not None:
                    self._do(actor.store, claim)

        self._note(actor, "work", work)

    def _do(self, store: Store, claim: TaskLease) -> None:
        try:
            claim.finish_task(_WORK[claim.task.kind](store, claim))
        except FencedError:
            return
        except TaskStoppedError as stopped:
            claim.hand_back(str(stopped))
        except HeadwaterError as error:
            claim.fail_task(str(error), retry=not isinstance(error, RefusedError | NotFoundError | CorruptionError))
            if isinstance(error, CorruptionError):
                raise

    # the realm that comes and goes

    def tend(self, actor: Actor) -> None:
        """Bring the realm ``beta`` one step further in its life, whatever that is; two do so at once."""
        realms = RealmRegistry(actor.store)

        def work(_: dict[str, Any]) -> None:
            realm = realms.find_realm("beta")
            if realm is None:
                realms.create_realm("beta", retention=_RETENTION)
            elif realm.state in (RealmState.CREATED, RealmState.INITIALIZING):
                bootstrap(realms, "beta", _HASH)
            elif realm.state is RealmState.ACTIVE:
                self._fill(actor, realms)
                realms.move_realm(realm, RealmState.INACTIVE)
            elif realm.state is RealmState.INACTIVE:
                if self.chance.random() < 0.3:
                    realms.move_realm(realm, RealmState.ACTIVE)
                    return
                actor.clock.sleep(110)
                realm = realms.move_realm(realm, RealmState.PURGING)
                self._tasks(actor).submit_task(PURGE, realm="beta", realm_key=realm.key)
            elif realm.state is RealmState.PURGING:
                self._tasks(actor).submit_task(PURGE, realm="beta", realm_key=realm.key)
            else:
                realms.remove_realm(realm)

        self._note(actor, "tend beta", work)

    def _fill(self, actor: Actor, realms: RealmRegistry) -> None:
        rows = realms.open_realm("beta")
        for _ in range(2):
            marker = marker_of(actor.name, next(self.numbers))

            def change(tx: Transaction, marker: str = marker) -> None:
                tx.index("markers").put(marker.encode(), IndexValue(None, b""))

            self._note(actor, COMMIT, lambda found, change=change: commit_change(rows, RAW, change), rows.key, RAW, marker)  # type: ignore[misc]

    # what they share

    def _tasks(self, actor: Actor) -> TaskQueue:
        return TaskQueue(actor.store, chance=self.chance.random)

    def _open(self, actor: Actor) -> Any:
        return self._note(actor, "open acme", lambda _: RealmRegistry(actor.store).open_realm("acme"))

    def _lake(self, actor: Actor) -> Catalog | None:
        rows = self._open(actor)
        return None if rows is None else self._note(actor, "open lake", lambda _: Catalogs(rows).open_catalog("lake"))

    def _note(
        self,
        actor: Actor,
        action: str,
        work: Callable[[dict[str, Any]], Any],
        key: int = 0,
        reference: str = "",
        marker: str = "",
    ) -> Any:
        def noted(found: dict[str, Any]) -> Any:
            result = work(found)
            if action == COMMIT:
                found["commit"] = result.commit_id
            return result

        return self.journal.act(actor.name, action, noted, key=key, reference=reference, marker=marker)
