"""One seed from its beginning to its end: a world with its cast, then one more collection of everything, then all the questions."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog
from casts import KEPT_COMMITS, RAW, SETTINGS, Cast, prepare
from worlds import Luck, World

from engines.model import (
    Kept,
    archive_has_the_head_of_its_moment,
    faults_of_histories,
    fsck_finds_nothing,
    garbage_is_gone,
    heads_can_be_read,
    purged_realms_have_no_rows,
)
from fake_clock import FakeClock
from headwater.backup import load_realm
from headwater.backup.archive_format import read_archive_manifest
from headwater.catalogs import Catalogs, RefKind
from headwater.catalogs.registry import content_reference
from headwater.errors import HeadwaterError
from headwater.fsck import FindingCode, FsckFinding, check_store
from headwater.gc import collect_realm
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskQueue

__all__ = ["Play"]

HOUR = 3600.0
_COPY = "copy-"
_OF_COPIES = (FindingCode.NAME_WITHOUT_ROW, FindingCode.CATALOG_INCOMPLETE, FindingCode.CLAIM_WITHOUT_CONTENT)
_ROUNDS = 9
EXPORTING = 8
"""In one seed of so many there are exports, which write files."""


class Play:
    """Plays a seed; ``faults`` says what was wrong with it, ``story`` what happened."""

    def __init__(self, seed: int, make_backend: Callable[[], MemoryBackend] = MemoryBackend) -> None:
        chance = random.Random(seed)
        luck = Luck(
            stays=chance.choice((0.0, 0.3, 0.6, 0.9)),
            fails=chance.choice((0.0, 0.002, 0.01)),
            dies=chance.choice((0.0, 0.001, 0.004)),
            stops=chance.choice((0.0, 0.0005, 0.002)),
            naps=chance.choice((0.0, 0.1, 0.4)),
        )
        with TemporaryDirectory() as folder, seeded(seed):
            self.archives = Path(folder)
            self.world = World(seed, prepare(make_backend()), SETTINGS, is_atomic=chance.random() < 0.5, luck=luck)
            self.world.ledger.begin(self.world.now)
            self.cast = Cast(self.world, self.archives if seed % EXPORTING == 0 else None)
            self.world.run()
            self._faults = [f"{actor.name} ended by {actor.bug!r}" for actor in self.world.actors if actor.bug is not None]
            self._faults += self.world.ledger.faults
            self._conclude()

    def faults(self) -> list[str]:
        return self._faults

    def story(self) -> str:
        return "\n".join([self.world.story(), *map(str, self.cast.journal.events), *self._faults])

    def _conclude(self) -> None:
        world = self.world
        clock = FakeClock(world.now + round(world.settings.clock_bound_seconds * 1e6))
        with Store(_Lasting(world.backend), url="memory://", settings=world.settings, clock=clock) as store:  # type: ignore[arg-type]
            try:
                catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))
                TaskQueue(store).find_claimable(
                    LeaseWatch(clock, world.settings.task_lease_seconds)
                )  # settles what those who died left
                for definition in catalogs.list_catalogs():
                    catalogs.complete_catalog(definition)  # whose making was interrupted
                for number in range(
                    _ROUNDS
                ):  # the first may end what was interrupted; what one releases makes other commits too old
                    before = self._pointers()
                    clock.advance(HOUR)
                    self._tidy(store)
                    if number and before == self._pointers():
                        break
                else:
                    self._faults.append(f"{_ROUNDS} collections still change references")
                main = content_reference(catalogs.read_catalog("lake").id, RefKind.BRANCH, "main")
                self._faults += faults_of_histories(store, self.cast.journal.events, lasting={RAW: 0, main: 0})
                self._faults += heads_can_be_read(store) + purged_realms_have_no_rows(store)
                for realm in RealmRegistry(store).list_realms():
                    if realm.state in (RealmState.ACTIVE, RealmState.INACTIVE):
                        self._faults += garbage_is_gone(store, realm.id, Kept(commits=KEPT_COMMITS, age_seconds=1))
                for number, file in enumerate(sorted(self.archives.glob("*.archive"))):
                    self._faults += self._load(store, file, f"{_COPY}{number}", (main, RAW))
                self._faults += fsck_finds_nothing(check_store(store), _is_harmless)
            except HeadwaterError as fault:
                self._faults.append(f"afterwards: {type(fault).__name__}: {fault}")

    def _load(self, store: Store, file: Path, realm_id: str, names: Sequence[str]) -> list[str]:
        """An archive holds, of each of these references, the newest commit not after its moment, and can be read in full."""
        load_realm(store, realm_id, file)
        rows, moment = RealmRegistry(store).open_realm(realm_id), read_archive_manifest(file).as_of
        ledger, acme, faults = self.world.ledger, RealmRegistry(store).read_realm("acme").key, list[str]()
        for name in names:
            heads = [(head, ledger.times[head], head in ledger.late) for head in ledger.heads(acme, name)]
            pointer = rows.read_reference(name, fresh=True).pointer
            faults += archive_has_the_head_of_its_moment(f"{name} in {file.name}", moment, pointer, heads)
        return faults + heads_can_be_read(store)

    def _pointers(self) -> dict[tuple[int, str], object]:
        """Without those of the system realm, where every realm's tasks and runs are."""
        rows = self.world.backend.scan_references(ScanSplit(), None, 10_000)
        return {(row.realm, row.name): (row.pointer, row.deleted) for row in rows if row.realm != SYSTEM_KEY}

    def _tidy(self, store: Store) -> None:
        for realm in RealmRegistry(store).list_realms():
            if realm.state in (RealmState.PURGING, RealmState.PURGED):  # also what late writers left since
                purge_realm(store, realm.id)
            elif realm.state in (RealmState.ACTIVE, RealmState.INACTIVE):
                collect_realm(store, realm.id)
        collect_realm(store, SYSTEM_REALM)


def _is_harmless(found: FsckFinding) -> bool:
    """A collector that is stopped between its fence and the tombstone that it makes for a listed name finds the name given up by
    another. And an archive holds a catalog that was being made at its moment as far as it was, names whose
    rows were deleted, and claims of what was deleted.
    """
    return found.code is FindingCode.TOMBSTONE_WITHOUT_NAME or (found.realm.startswith(_COPY) and found.code in _OF_COPIES)


class _Lasting:
    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def close(self) -> None:
        """The world's database stays."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Everything that is drawn by chance, also where chance comes from the machine, comes from the seed."""
    drawn = random.Random(seed)
    state, urandom = random.getstate(), os.urandom
    random.seed(seed)
    os.urandom = random._urandom = drawn.randbytes  # type: ignore[attr-defined,assignment]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        yield
    finally:
        random.setstate(state)
        os.urandom = random._urandom = urandom  # type: ignore[attr-defined]
