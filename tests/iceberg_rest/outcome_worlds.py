"""A server on a copy of one small lake, with a database that fails on demand, and what is there after a client has had its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import msgspec
from rest_actions import RestAction, fill_lake, send
from rest_caller import new_key

from asgi_client import AsgiAnswer, AsgiClient
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs
from headwater.errors import UnknownOutcomeError
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskQueue
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.server_application import ServerApplication

__all__ = ["FAULTS", "LakeBase", "OutcomeWorld", "make_base"]

FOR_GOOD = 10**9
AWAY: dict[str, Any] = {"before": True}
LOST_REQUEST: dict[str, Any] = {"fault": UnknownOutcomeError("the request was lost")}
LOST_ANSWER: dict[str, Any] = {"before": False}
FAULTS: Mapping[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "away": (AWAY, None),
    "away for good": (AWAY, AWAY),
    "request lost": (LOST_REQUEST, None),
    "request lost, then away for good": (LOST_REQUEST, AWAY),
    "answer lost": (LOST_ANSWER, None),
    "answer lost, then away for good": (LOST_ANSWER, AWAY),
}
"""What one call of the database meets, and what all that come after it do."""
_UNTOLD = ("last-updated-ms", "table-uuid", "view-uuid", "location", "timestamp-ms", "metadata-log", "version-log")
"""Parts of a document that differ from one creation to the next."""


@dataclass(frozen=True)
class LakeBase:
    """The rows that every case begins with, the time then, and the documents of the lake's tables and views."""

    rows: MemoryBackend
    time: int
    documents: Mapping[str, Any]

    @contextmanager
    def opened(self, *, is_atomic: bool = False) -> Iterator[OutcomeWorld]:
        raw = copied(self.rows)
        faults = FaultyBackend(raw, is_atomic=is_atomic)
        with OutcomeWorld.over(raw, faults, FakeClock(self.time), self.documents) as world:
            yield world
            faults.heal()


@dataclass
class OutcomeWorld:
    """``raw`` is what no fault meets."""

    raw: MemoryBackend
    faults: FaultyBackend
    clock: FakeClock
    client: AsgiClient
    documents: Mapping[str, Any]

    @classmethod
    @contextmanager
    def over(
        cls, raw: MemoryBackend, faults: FaultyBackend, clock: FakeClock, documents: Mapping[str, Any]
    ) -> Iterator[OutcomeWorld]:
        settings = Settings(server_threads=1)
        with Store(faults, url="memory://", settings=settings, clock=clock) as store:  # type: ignore[arg-type]  # faulty is any backend
            store.new_id()  # the lease of the node has its own tests
            application = ServerApplication(
                ServedStore(store), [iceberg_table()], settings=settings, clock=clock, version="1.2.3"
            )
            client = AsgiClient(application)
            client.request("GET", "/iceberg/v1/acme~lake/namespaces")  # so that the session is open
            yield cls(raw, faults, clock, client, documents)
            application.close()

    def send(self, action: RestAction, *, key: str | None = None) -> AsgiAnswer:
        return send(self.client, action.make(self.documents), key=key)

    def elsewhere(self) -> Store:
        """Another process, which no fault meets."""
        return Store(self.raw, url="memory://", settings=Settings(), clock=self.clock)

    @property
    def lake(self) -> Catalog:
        return Catalogs(RealmRegistry(self.elsewhere()).open_realm("acme")).open_catalog("lake")

    @property
    def commits(self) -> int:
        return sum(1 for _ in self.lake.log())

    def told(self) -> dict[str, Any]:
        """All that is in the lake, without what differs from one creation to the next."""
        lake = self.lake
        keys = [entry.key for entry in lake.entries(None).entries]
        return {str(key): _shown(lake, key, content) for key, content in lake.get_contents(None, keys).items()}

    @property
    def tasks(self) -> int:
        """How many tasks wait. One whose table was not dropped finds it there, and ends."""
        return sum(task.value.is_active for task in TaskQueue(self.elsewhere()).list_tasks())

    def lost_files(self) -> list[str]:
        """Metadata files that the lake names, and that are not there."""
        lake = self.lake
        keys = [entry.key for entry in lake.entries(None).entries]
        named = [getattr(content, "metadata_location", None) for content in lake.get_contents(None, keys).values()]
        return [file for file in named if file and not Path(unquote(urlparse(file).path)).exists()]


def _shown(lake: Catalog, key: Any, content: Any) -> Any:
    text = lake.metadata(None, key)
    if text is None:
        return dict(getattr(content, "properties", {}))
    return _without(msgspec.json.decode(text))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(inner) for name, inner in value.items() if name not in _UNTOLD and name != "manifest-list"}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def copied(rows: MemoryBackend) -> MemoryBackend:
    """Rows never change, so a copy of the dictionaries is one of the database."""
    copy = MemoryBackend()
    copy._references.put_all(dict(rows._references.rows))
    copy._objects.put_all(dict(rows._objects.rows))
    copy._last_parts = dict(rows._last_parts)
    return copy


def make_base(warehouse: str) -> LakeBase:
    """The lake in memory, its files below ``warehouse``."""
    raw, clock = MemoryBackend(), FakeClock(1_780_000_000_000_000)
    make_realm(Store(raw, url="memory://", settings=Settings(), clock=clock), warehouse)
    with OutcomeWorld.over(raw, FaultyBackend(raw), clock, {}) as world:
        documents = fill_lake(world.client)
        return LakeBase(copied(raw), clock.now(), documents)


def make_realm(store: Store, warehouse: str) -> None:
    """An active realm ``acme`` with the catalog ``lake``."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location=warehouse)


def key_or_none(is_keyed: bool) -> str | None:
    return new_key() if is_keyed else None
