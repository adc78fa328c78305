"""What is acknowledged has reached a synchronous standby: also where somebody cancels the wait for it, or ends its session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import psycopg
import pytest

from headwater.commits import Transaction, commit_change, read_log
from headwater.errors import UnavailableError, UnknownCommitError, UnknownOutcomeError
from headwater.files import AddFiles, FileScope, RetryPolicy, TrackedFile, open_file_references
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store, open_store
from headwater.store.backends.postgresql import PostgresqlBackend
from servers.postgresql import PostgresqlServer
from specimens import WRITES, reference, row

pytestmark = pytest.mark.long
every_end = pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
EVERY_WRITE = {
    **WRITES,
    "write_in_chunks": lambda backend: backend.write_and_swap(
        [row(number, value=b"x" * 300_000) for number in range(100, 130)], reference(), reference(version=6)
    ),
}


class Standby:
    """A synchronous standby that is named and absent; waits for it are ended by an administrator's function.

    ended         how many waits were ended so far
    """

    def __init__(self, server: PostgresqlServer, end: str) -> None:
        self._server = server
        self._end = end
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._end_waits, name="administrator")
        self.ended = 0
        self.returns_after = 1 << 30

    def leave(self) -> None:
        """Come back when commits do wait: the server reads its settings when it gets to it."""
        self._name("absent")
        self._thread.start()
        with self._server.connect() as connection:
            while not self.ended:
                try:
                    connection.execute("SELECT pg_logical_emit_message(true, 'probe', '')")
                except psycopg.OperationalError:
                    break
        self.ended = 0

    def close(self) -> None:
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._name("")

    def _end_waits(self) -> None:
        ask = f"SELECT {self._end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        with self._server.connect() as connection:
            while not self._is_over.wait(0.01):
                self.ended += len(connection.execute(ask.encode()).fetchall())
                if self.ended >= self.returns_after:
                    self._name("")
                    return

    def _name(self, name: str) -> None:
        self._server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self._server.execute("SELECT pg_reload_conf()")


Away = Callable[[str], AbstractContextManager[Standby]]


@pytest.fixture
def away(server: PostgresqlServer) -> Away:
    """The standby is away for so long; given what ends the waits for it."""

    @contextmanager
    def leave(end: str) -> Iterator[Standby]:
        standby = Standby(server, end)
        try:
            standby.leave()
            yield standby
        finally:
            standby.close()

    return leave


@pytest.fixture
def rows(server: PostgresqlServer, schema: str) -> Iterator[RealmStore]:
    settings = replace(Settings(), commit_timeout_seconds=1.0)
    with open_store(server.url(schema), settings=settings) as store:
        made = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        made.ensure_reference("main")
        yield made


def put(rows: RealmStore, key: bytes) -> ObjectId | None:
    def change(tx: Transaction) -> None:
        tx.index("things").put(key, IndexValue(None, b"1"))

    return commit_change(rows, "main", change).commit_id


@every_end
@pytest.mark.parametrize("write", EVERY_WRITE.values(), ids=EVERY_WRITE)
def test_write_that_no_standby_may_have_has_an_unknown_outcome(
    direct: PostgresqlBackend, away: Away, write: Callable[..., object], end: str
) -> None:
    direct.create_reference(reference())
    direct.write_objects([row(1, token="a")])
    with away(end), pytest.raises(UnknownOutcomeError, match=r"might not have been replicated|connection"):
        write(direct)


def test_warning_is_read_although_the_role_asks_for_errors_alone(
    server: PostgresqlServer, direct: PostgresqlBackend, away: Away
) -> None:
    server.execute(f"ALTER ROLE {server.user} SET client_min_messages = error")
    try:
        with away("pg_cancel_backend"), pytest.raises(UnknownOutcomeError, match="might not have been replicated"):
            direct.create_reference(reference())
    finally:
        server.execute(f"ALTER ROLE {server.user} RESET client_min_messages")


@every_end
def test_commit_that_no_standby_has_is_not_acknowledged(rows: RealmStore, away: Away, end: str) -> None:
    with away(end), pytest.raises(UnknownCommitError) as unknown:
        put(rows, b"k")

    assert [entry.id for entry in read_log(rows, "main")] == [unknown.value.commit_id]


@every_end
def test_commit_is_acknowledged_once_the_standby_is_back(rows: RealmStore, away: Away, end: str) -> None:
    patient = RealmStore(_patient(rows.store), rows.realm, rows.key, None)
    with away(end) as standby:
        standby.returns_after = 1
        commit_id = put(patient, b"k")

    assert [entry.id for entry in read_log(rows, "main")] == [commit_id]
    assert rows.find_row("main").version > 2


def _patient(store: Store) -> Store:
    return Store(store.backend, url=store.url, settings=replace(store.settings, commit_timeout_seconds=60.0), clock=store.clock)


@every_end
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.create_reference("new"),
        lambda rows: rows.ensure_references(["new", "newer"]),
        lambda rows: rows.raise_version(rows.find_row("main")),
        lambda rows: rows.delete_reference(rows.find_row("main")),
    ],
    ids=["create", "ensure", "raise", "delete"],
)
def test_change_of_a_reference_that_no_standby_has_is_unknown(
    rows: RealmStore, away: Away, change: Callable[[RealmStore], object], end: str
) -> None:
    with away(end), pytest.raises(UnknownOutcomeError):
        change(rows)


@every_end
def test_node_that_no_standby_knows_leased_makes_no_ids(
    server: PostgresqlServer, schema: str, rows: RealmStore, away: Away, end: str
) -> None:
    with open_store(server.url(schema), settings=rows.settings) as another:
        with away(end), pytest.raises(UnavailableError, match="no node could be leased"):
            another.new_id()
        assert another.new_id()


@every_end
def test_file_references_that_no_standby_has_are_not_acknowledged(rows: RealmStore, away: Away, end: str) -> None:
    policy = RetryPolicy(sleep=lambda seconds: None, attempts=3)
    scope = FileScope(rows.key, "orders")
    references = open_file_references(rows.store, scope, create=True, policy=policy, takes_old_files=True)
    request = AddFiles(files=(TrackedFile(filename="a"),), request="add")
    with away(end), pytest.raises(UnknownOutcomeError):
        references.apply_requests([request])

    assert [outcome.request for outcome in references.apply_requests([request])] == ["add"]
