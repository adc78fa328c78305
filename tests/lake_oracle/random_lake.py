"""A lake of a seed: a store with two realms and three catalogs, real files, and one step after the other that does something to them.

Each step keeps our own books (``lake_model``) by what it did. What is written is written by pyiceberg through our client, through
doors of the core, and by writers that know nothing of us.
"""

from __future__ import annotations

import os
import random
import shutil
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote
from uuid import UUID

import pyarrow as pa

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, IcebergView
from headwater.catalogs.catalog_definition import CatalogFiles
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.gc import collect_realm
from headwater.realms import HistoryRetention, RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import RealmStore
from lake_oracle.lake_model import LakeModel, RefKey, RefLine
from lake_oracle.lake_verdict import LakeView, RunOutcome
from lake_oracle.live_files import KeptVersion, read_document, real_path

REALM, OTHER_REALM = "acme", "zeta"
LAKE, OTHER = "lake", "other"
MAIN = RefKey(REALM, LAKE, "main")
OTHER_MAIN, ZETA_MAIN = RefKey(REALM, OTHER, "main"), RefKey(OTHER_REALM, LAKE, "main")
HOUR, DAY = 3600.0, 86_400.0
CITIES = [
    "Bern",
    "a b",
    "100%",
    "Zürich",
    "A/B",
    "x=y",
    "日本",
    unicodedata.normalize("NFD", "Genève"),
    "UPPER",
    "upper",
    "50%25",
    "#1",
    "+",
]
_HASH = hash_credentials(new_credentials())


class LakeWatcher(Protocol):
    """Who has to know what happens to a lake: an engine, or a verdict."""

    def save(self) -> None: ...
    def roll_back(self) -> None: ...
    def took(self, paths: Iterable[str], places: Collection[str]) -> None: ...


class LakeEngine(LakeWatcher, Protocol):
    """Who reports on a lake."""

    def run(self, view: LakeView) -> RunOutcome: ...


class RandomLake:
    """The lake, and everything that its steps need.

    history       what was done, a line for each step
    """

    def __init__(self, seed: int, folder: Path, *, on_disk: bool = False) -> None:
        self.chance = random.Random(seed)
        self.seed, self.folder = seed, folder
        self.clock = FakeClock()
        self.url = f"sqlite:///{folder}/store.db" if on_disk else "memory://"
        self.on_disk = on_disk
        self.base = folder / "lake"
        self.model = LakeModel(keeps=self.chance.choice([1, 1, 3]))
        self.torn: dict[str, set[str]] = {}
        self.perhaps: set[str] = set()
        self.given = tuple(f"{self.base}/{name}" for name in ("shared", "sales") if self.chance.random() < 0.4)
        self.history: list[str] = [f"a branch keeps {self.model.keeps} commits; given are {self.given}"]
        self.watchers: list[LakeWatcher] = []
        self.moments: list[tuple[RefKey, int, dict[str, KeptVersion]]] = []
        self.numbers = iter(range(1, 1_000_000))
        self.made: set[str] = set()
        self.left: list[str] = []
        """Places that tables had which were dropped or moved."""
        self._settled: set[str] = set()
        self._clients: dict[RefKey, HeadwaterCatalog] = {}
        self._copy: LakeModel | None = None
        self.store = self._open()
        for realm in (REALM, OTHER_REALM):
            self._create_realm(realm)
        for ref, base in (
            (MAIN, self.base),
            (RefKey(REALM, OTHER, "main"), folder / "lake-of-others"),
            (RefKey(OTHER_REALM, LAKE, "main"), folder),
        ):
            given = CatalogFiles(places=tuple(f"file://{place}" for place in self.given if ref == MAIN))
            Catalogs(self.rows(ref.realm)).create_catalog(
                ref.catalog, base_location=f"file://{base}", allowed_locations=(f"file://{folder}",), files=given
            )
            self.client(ref).create_namespace("sales")
            self.model.lines[ref] = RefLine([{}])

    def close(self) -> None:
        self.store.close()

    def rows(self, realm: str = REALM) -> RealmStore:
        return RealmRegistry(self.store).open_realm(realm)

    def catalog(self, ref: RefKey = MAIN) -> Catalog:
        return Catalogs(self.rows(ref.realm)).open_catalog(ref.catalog)

    def client(self, ref: RefKey = MAIN) -> HeadwaterCatalog:
        if ref not in self._clients:
            self._clients[ref] = HeadwaterCatalog.on(self.store, realm=ref.realm, catalog=ref.catalog, branch=ref.name)
        return self._clients[ref]

    @property
    def now(self) -> float:
        return self.clock.now() / 1_000_000

    def view(self) -> LakeView:
        return LakeView(self.folder, self.model, REALM, LAKE, self.now, self.torn, self.given, self.perhaps)

    def tear(self, place: str, code: str) -> None:
        """Note that a place yields nothing from now on, and the code that says why."""
        self.torn.setdefault(place, set()).add(code)

    def number(self) -> int:
        return next(self.numbers)

    def key(self, name: str) -> ContentKey:
        return ContentKey.of("sales", name)

    def version(self, ref: RefKey, name: str) -> KeptVersion:
        """The version that is at the head now, by its file on the disk."""
        content = self.catalog(ref).get_content(ref.name, self.key(name))
        assert isinstance(content, IcebergTable | IcebergView), f"{name} is not there on {ref}"
        data = Path(real_path(content.metadata_location)).read_bytes()
        document = read_document(data)
        owner = str(document.get("table-uuid") or document.get("view-uuid"))
        return KeptVersion(owner, content.metadata_location, data)

    def note(self, ref: RefKey, *names: str, dropped: Iterable[str] = (), is_home: bool | None = None) -> list[KeptVersion]:
        """Note a commit in the books: what has a new version, and what is gone."""
        versions = {name: self.version(ref, name) for name in names}
        for version in versions.values():
            if is_home is not None:
                self.model.note_table(version.owner, ref.realm, ref.catalog, is_home=is_home)
        self.note_state(ref, {**versions, **dict.fromkeys(dropped)})
        return list(versions.values())

    def note_state(self, ref: RefKey, changes: dict[str, KeptVersion | None]) -> None:
        for reached in self.model.commit(ref, changes):
            for watcher in self.watchers:
                watcher.took(reached.all, reached.places)
        self.remember(ref)

    def remember(self, ref: RefKey) -> None:
        head = self.catalog(ref).branch(ref.name).head
        assert head is not None
        self.moments.append((ref, head, self.model.state(ref)))

    def branches(self) -> list[RefKey]:
        """The live branches of the catalog."""
        return [
            key for key, line in self.model.lines.items() if key[:2] == MAIN[:2] and not line.is_tag and not line.is_deleted
        ]

    def any_table(self, *, home: bool | None = None, made: bool = False) -> tuple[RefKey, str, KeptVersion]:
        """A table, at the head of a branch.

        made          one that we have made, so that pyiceberg can write to it
        raises        LookupError
        """
        found = []
        for branch in self.branches():
            for name, version in self.model.state(branch).items():
                note = self.model.tables.get(version.owner)
                is_home = note is not None and branch[:2] in note.homes
                is_wanted = (home is None or home == is_home) and (not made or version.owner in self.made)
                if b'"view-uuid"' not in version.text and is_wanted:
                    found.append((branch, name, version))
        if not found:
            raise LookupError("there is no such table")
        return self.chance.choice(found)

    def data_files(self, version: KeptVersion) -> list[Path]:
        """The data files of a version that are there."""
        reached = self.model.reader.read(version)
        return sorted(path for each in reached.must if each.endswith(".parquet") and (path := Path(each)).exists())

    def some_rows(self) -> pa.Table:
        count = self.chance.randrange(1, 4)
        cities = self.chance.choices(CITIES, k=count)
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("city", pa.string())])
        return pa.table({"id": self.chance.choices(range(5), k=count), "city": cities}, schema=schema)

    def settle(self, *, at: float | None = None) -> None:
        """Give new files the time of the lake's clock instead of the machine's."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = f"{folder}/{name}"
                if path not in self._settled and not path.startswith(f"{self.folder}/store.db"):
                    self._settled.add(path)
                    time = self.now if at is None else at
                    os.utime(path, (time, time))

    def is_settled(self, path: Path) -> None:
        """Leave a file's time as it is."""
        self._settled.add(str(path))

    def collect(self) -> None:
        """Two collections of all realms, each after all graces: what is garbage is gone for certain then."""
        for _ in range(2):
            self.clock.advance(2 * HOUR)
            for realm in (REALM, OTHER_REALM):
                collect_realm(self.store, realm)
            self.model.collected()
        alive = {id(state) for line in self.model.lines.values() for state in line.states}
        self.moments = [moment for moment in self.moments if id(moment[2]) in alive]

    def save(self) -> None:
        """Copy the database."""
        self._reopen(lambda: shutil.copy(self.folder / "store.db", self.folder / "store.db-copy"))
        self._copy = self.model.copy()
        for watcher in self.watchers:
            watcher.save()

    def roll_back(self) -> None:
        """Put the copy back. What lies in the lake stays."""
        assert self._copy is not None
        self._reopen(lambda: shutil.copy(self.folder / "store.db-copy", self.folder / "store.db"))
        self.model = self._copy.copy()
        self.moments.clear()
        for watcher in self.watchers:
            watcher.roll_back()

    def _reopen(self, meanwhile: Any) -> None:
        self.store.close()
        self._clients.clear()
        for name in ("store.db-wal", "store.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        meanwhile()
        self.store = self._open()

    def _open(self) -> Store:
        graces = Settings(
            unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60, catalog_hold_seconds=3 * DAY
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        return open_store(self.url, settings=graces, clock=self.clock)

    def _create_realm(self, realm: str) -> None:
        realms = RealmRegistry(self.store)
        kept = self.model.keeps
        realms.create_realm(realm, retention=HistoryRetention(content_age_seconds=0, content_commits=kept, reference_commits=1))
        bootstrap(realms, realm, _HASH)


def own_uuid(lake: RandomLake) -> UUID:
    return UUID(int=lake.chance.getrandbits(128), version=4)


def careless_sibling(path: Path, place: Path, chance: random.Random) -> Path | None:
    """Another path in a place that a careless reader takes for this one."""
    inner = str(path.relative_to(place))
    folders, _, name = inner.rpartition("/")
    others = [
        f"{folders}/{name.swapcase()}",
        f"{folders}/{name.replace('-', '%2D')}",
        f"{folders}/{name.replace('-', '%252d', 1)}",
        f"{folders.upper()}/{name}",
        f"{folders.lower()}/{name}",
        quote(inner),
        unquote(inner),
        unquote(unquote(inner)),
        unicodedata.normalize("NFD", inner),
        unicodedata.normalize("NFD", unquote(inner)),
    ]
    kept = [other for other in others if other != inner and other.endswith(path.suffix) and not other.startswith("/")]
    return place / chance.choice(kept) if kept else None
