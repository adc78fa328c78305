"""The queue of requests in the folder of the embedded broker: a file for each request, and each change one rename.

    requests/TABLE/TIME-KEY.STRIKES.TRIES.req     waits
    requests/TABLE/TIME-KEY.STRIKES.TRIES.taken   is held by a reader until the time that the file was last changed, which lies ahead
    requests/TABLE/TIME-KEY.STRIKES.TRIES.later   was handed back, and waits again from that time on
    aside/KEY                                     was set aside
    slots/N                                       locked by whoever holds a batch: the kernel unlocks it when that process dies
    new/N                                         is being written
    bell                                          was changed when a request was added
    counts                                        counters, as JSON

All readers are processes of one machine, so its clock is everybody's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from headwater.errors import UnavailableError
from headwater.typed_values import decode_msgpack
from headwater_workers.file_queue.request_queue import (
    LEASE_SECONDS,
    QueuedRequest,
    QueueFigures,
    RequestBatch,
    SetAsideRequest,
    Settlement,
)

POLL_SECONDS = 0.05
WRITE_TRIES = 100
_WAITING, _HELD, _DELAYED = "req", "taken", "later"


class _FileName(NamedTuple):
    """What the name of a request's file says."""

    order: str
    key: str
    strikes: int
    tries: int
    state: str

    @classmethod
    def parse(cls, name: str) -> _FileName | None:
        """The parts of a name; None for a file of another kind, such as one that is being written."""
        stem, _, rest = name.partition(".")
        order, _, key = stem.partition("-")
        parts = rest.split(".")
        if not order or len(parts) != 3 or not (parts[0].isdigit() and parts[1].isdigit()):
            return None
        return cls(order, key, int(parts[0]), int(parts[1]), parts[2])

    def __str__(self) -> str:
        return f"{self.order}-{self.key}.{self.strikes}.{self.tries}.{self.state}"


class FolderRequestQueue:
    """A queue in a folder that processes of one machine share.

    cap           batches that are held at the same time, by all readers
    """

    def __init__(self, folder: Path, *, cap: int = 1, lease_seconds: float = LEASE_SECONDS) -> None:
        self._folder = folder
        self._cap = cap
        self._lease_seconds = lease_seconds
        self._served = ""
        self._held: dict[str, list[Path]] = {}
        self._slots: dict[str, int] = {}

    def push(self, table: str, requests: Sequence[QueuedRequest]) -> None:
        with self._reached():
            for request in requests:
                self._write(table, request)
            self._ring()

    def take(self, limit: int) -> RequestBatch | None:
        with self._reached():
            slot = self._lock_slot()
            if slot is None:
                return None
            try:
                batch = self._take_turn(limit, slot)
            except BaseException:
                os.close(slot)
                raise
            if batch is None:
                os.close(slot)
            return batch

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        rung = self._bell_time()
        while (left := end - time.monotonic()) > 0 and self._bell_time() == rung:
            time.sleep(min(left, POLL_SECONDS))

    def settle_batch(self, batch: RequestBatch, settlement: Settlement) -> None:
        if (slot := self._slots.pop(batch.id, None)) is not None:
            os.close(slot)
        with self._reached():
            self._settle_files(batch, self._held[batch.id], settlement)
        del self._held[batch.id]  # after an error the batch may be settled again

    def renew_batches(self, batches: Sequence[RequestBatch]) -> None:
        ends = time.time() + self._lease_seconds
        with self._reached():
            for batch in batches:
                for path in self._held.get(batch.id, ()):
                    with contextlib.suppress(FileNotFoundError):
                        os.utime(path, (ends, ends))

    def add_counts(self, counts: Mapping[str, int]) -> None:
        with self._reached(), self._locked("counts.lock"):
            known = self._counts()
            known |= {name: known.get(name, 0) + count for name, count in counts.items()}
            self._replace(self._folder / "counts", json.dumps(known).encode())

    def has_requests(self) -> bool:
        with self._reached():
            return any(self._names(table) for table in self._tables())

    def figures(self) -> QueueFigures:
        found: dict[str, dict[str, int]] = {_WAITING: {}, _HELD: {}, _DELAYED: {}}
        with self._reached():
            for table in self._tables():
                for name in self._names(table):
                    if name.state in found:
                        found[name.state][table] = found[name.state].get(table, 0) + 1
            aside = len(self._aside_files())
            return QueueFigures(found[_WAITING], found[_HELD], found[_DELAYED], aside, self._counts())

    def find_reasons(self, table: str, requests: Sequence[str]) -> dict[str, str]:
        wanted = set(requests)
        return {each.request: each.reason for each in self.list_set_aside() if each.table == table and each.request in wanted}

    def list_set_aside(self) -> list[SetAsideRequest]:
        with self._reached():
            records = [decode_msgpack(path.read_bytes(), SetAsideRequest) for path in self._aside_files()]
        return sorted(records, key=lambda record: (record.time, record.key))

    def retry_set_aside(self, keys: Sequence[str]) -> int:
        records = [record for record in self.list_set_aside() if record.key in keys]
        for record in records:  # twice in the queue is harmless, nowhere is not: so first the push
            self.push(record.table, [QueuedRequest(record.key, record.body)])
        return self._forget_aside(records)

    def discard_set_aside(self, keys: Sequence[str]) -> int:
        return self._forget_aside([record for record in self.list_set_aside() if record.key in keys])

    def close(self) -> None:
        while self._slots:
            os.close(self._slots.popitem()[1])

    def _take_turn(self, limit: int, slot: int) -> RequestBatch | None:
        """The next batch, of the first table after the one that this process served last."""
        tables = self._tables()
        for table in [name for name in tables if name > self._served] + [name for name in tables if name <= self._served]:
            taken = self._take_files(table, limit)
            if taken:
                self._served = table
                batch = RequestBatch(uuid.uuid4().hex, table, tuple(request for _, request in taken))
                self._held[batch.id] = [path for path, _ in taken]
                self._slots[batch.id] = slot
                return batch
        return None

    def _take_files(self, table: str, limit: int) -> list[tuple[Path, QueuedRequest]]:
        taken: list[tuple[Path, QueuedRequest]] = []
        names = self._names(table)
        waiting = sorted(name for name in map(self._bring_back, [table] * len(names), names) if name.state == _WAITING)
        for name in waiting:
            if len(taken) == limit or (name.strikes and taken):
                break
            held = self._hold(table, name)
            if held is None:
                continue  # another reader was faster
            taken.append((held, QueuedRequest(name.key, held.read_bytes(), name.strikes, name.tries)))
            if name.strikes:
                break
        if not names:
            with contextlib.suppress(OSError):  # a request came meanwhile
                self._table_folder(table).rmdir()
        return taken

    def _hold(self, table: str, name: _FileName) -> Path | None:
        path, held = self._path(table, name), self._path(table, name._replace(state=_HELD))
        ends = time.time() + self._lease_seconds
        try:
            os.utime(path, (ends, ends))  # before the rename: a held file must never look as if its lease were over
            path.rename(held)
        except FileNotFoundError:
            return None
        return held

    def _bring_back(self, table: str, name: _FileName) -> _FileName:
        """Let a file wait again whose time has come: a held one was lost by its reader and gets a strike."""
        if name.state not in (_HELD, _DELAYED):
            return name
        path = self._path(table, name)
        waiting = name._replace(state=_WAITING, strikes=name.strikes + int(name.state == _HELD))
        try:
            if path.stat().st_mtime > time.time():
                return name
            path.rename(self._path(table, waiting))
        except FileNotFoundError:
            return name
        return waiting

    def _settle_files(self, batch: RequestBatch, paths: Sequence[Path], settlement: Settlement) -> None:
        later = {request.key: request for request in settlement.later}
        aside = {record.key: record for record in settlement.set_aside}
        due = time.time() + settlement.delay_seconds
        for path, request in zip(paths, batch.requests, strict=True):
            with contextlib.suppress(FileNotFoundError):  # it came back to the queue meanwhile
                if record := aside.get(request.key):
                    path.stat()
                    self._replace(self._folder / "aside" / request.key, msgspec.msgpack.encode(record))
                    path.unlink()
                elif again := later.get(request.key):
                    os.utime(path, (due, due))
                    name = _FileName.parse(path.name)
                    assert name is not None
                    path.rename(path.with_name(str(name._replace(strikes=again.strikes, tries=again.tries, state=_DELAYED))))
                else:
                    path.unlink()

    def _write(self, table: str, request: QueuedRequest) -> None:
        name = _FileName(f"{time.time_ns():020d}", request.key, request.strikes, request.tries, _WAITING)
        path = self._table_folder(table) / str(name)
        for _ in range(WRITE_TRIES):
            # A reader may take the empty folder away at any moment: before the file comes, or while mkdir looks what is there.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                return self._replace(path, request.body)
        return self._replace(path, request.body)

    def _replace(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        hidden = self._folder / "new" / uuid.uuid4().hex
        hidden.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        hidden.write_bytes(content)
        hidden.rename(path)

    def _tables(self) -> list[str]:
        folder = self._folder / "requests"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def _names(self, table: str) -> list[_FileName]:
        try:
            names = [_FileName.parse(path.name) for path in self._table_folder(table).iterdir()]
        except FileNotFoundError:
            return []
        return [name for name in names if name is not None]

    def _table_folder(self, table: str) -> Path:
        return self._folder / "requests" / table

    def _path(self, table: str, name: _FileName) -> Path:
        return self._table_folder(table) / str(name)

    def _lock_slot(self) -> int | None:
        """A slot that is locked for this batch; None: as many batches are held as may be."""
        folder = self._folder / "slots"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(self._cap):
            slot = os.open(folder / str(number), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(slot)
            else:
                return slot
        return None

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / name).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _aside_files(self) -> list[Path]:
        folder = self._folder / "aside"
        return list(folder.iterdir()) if folder.is_dir() else []

    def _forget_aside(self, records: Sequence[SetAsideRequest]) -> int:
        with self._reached():
            for record in records:
                (self._folder / "aside" / record.key).unlink(missing_ok=True)
        return len(records)

    def _counts(self) -> dict[str, int]:
        try:
            counts: dict[str, int] = json.loads((self._folder / "counts").read_bytes())
        except FileNotFoundError:
            return {}
        return counts

    def _ring(self) -> None:
        (self._folder / "bell").touch()

    def _bell_time(self) -> int:
        try:
            return (self._folder / "bell").stat().st_mtime_ns
        except OSError:
            return 0

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            raise UnavailableError(f"the embedded broker in {self._folder} does not do what it is asked: {fault}") from fault
