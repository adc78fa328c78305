"""What becomes of calls when the way to the server, or the server itself, fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg
import pytest

from headwater.errors import (
    HeadwaterError,
    RefusedError,
    StoreFullError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store import Backend
from headwater.store.backends.postgresql import PostgresqlBackend
from headwater.store.backends.postgresql.errors import connecting_error
from servers.postgresql import PostgresqlServer
from servers.proxy import Proxy
from specimens import READS, REALM, WRITES, find_reference, key, read_object, reference, row, state

pytestmark = pytest.mark.long

EVERY_WRITE = {**WRITES, "delete_realm": lambda backend: backend.delete_realm(REALM, 10)}
writes = pytest.mark.parametrize("write", EVERY_WRITE.values(), ids=EVERY_WRITE)
reads = pytest.mark.parametrize("read", READS.values(), ids=READS)


@pytest.fixture(autouse=True)
def stored(direct: PostgresqlBackend, spoiled: PostgresqlBackend) -> None:
    """One reference and one object; every statement of the spoiled store is known to its server."""
    direct.create_reference(reference())
    direct.write_objects([row(1, token="a")])
    for read in READS.values():
        read(spoiled)


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Start it; the list gets what it returned or raised."""
    said: list[object] = []

    def run() -> None:
        try:
            said.append(work())
        except HeadwaterError as fault:
            said.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, said


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline, "it did not come so"
        time.sleep(0.01)


@writes
def test_write_without_its_answer_is_unknown_and_happened(
    spoiled: PostgresqlBackend, direct: PostgresqlBackend, proxy: Proxy, write: Callable[[Backend], object]
) -> None:
    before = state(direct)
    warm(spoiled)
    proxy.drop_answers()
    with pytest.raises(UnknownOutcomeError):
        write(spoiled)

    assert state(direct) != before


@writes
def test_write_lost_on_its_way_is_unknown_and_undone(
    spoiled: PostgresqlBackend, direct: PostgresqlBackend, proxy: Proxy, write: Callable[[Backend], object]
) -> None:
    before = state(direct)
    proxy.drop_requests()
    with pytest.raises(UnknownOutcomeError):
        write(spoiled)

    assert state(direct) == before


def warm(backend: Backend) -> None:
    """Let the server know the statements of all writes, so that the next is a single round trip; nothing is changed."""
    missing = row(99, token="z")
    with pytest.raises(SwapConflictError):
        backend.create_reference(reference())
    with pytest.raises(SwapConflictError):
        backend.swap_reference(reference(version=99), reference(version=100))
    with pytest.raises(SwapConflictError):
        backend.write_and_swap([row(2)], reference(version=99), reference(version=100))
    with pytest.raises(SwapConflictError):
        backend.remove_reference(reference(version=99))
    with pytest.raises(SwapConflictError):
        backend.insert_object(row(1, token="a"))
    with pytest.raises(SwapConflictError):
        backend.update_object(missing, "y")
    backend.write_objects([row(1, token="a")])
    backend.delete_objects([key(missing)])
    backend.delete_realm(row(1).realm, 0)


@reads
def test_read_goes_through_when_its_connection_is_cut_once(
    spoiled: PostgresqlBackend, direct: PostgresqlBackend, proxy: Proxy, read: Callable[[Backend], object]
) -> None:
    proxy.drop_answers(times=1)

    assert read(spoiled) == read(direct)


@reads
def test_read_is_unavailable_when_every_connection_is_cut(
    spoiled: PostgresqlBackend, proxy: Proxy, read: Callable[[Backend], object]
) -> None:
    proxy.drop_requests()
    with pytest.raises(UnavailableError):
        read(spoiled)


@pytest.mark.parametrize("swallow", [Proxy.hang, Proxy.hang_answers])
def test_calls_over_a_hanging_connection_end_in_time(
    spoiled: PostgresqlBackend, proxy: Proxy, swallow: Callable[[Proxy], None]
) -> None:
    swallow(proxy)
    with pytest.raises(UnknownOutcomeError, match="no answer"):
        spoiled.write_objects([row(2)])
    proxy.pass_on()
    spoiled.write_objects([row(2)])
    swallow(proxy)
    with pytest.raises(UnavailableError, match="no answer"):
        read_object(spoiled, 1)


def test_server_that_stands_still_is_given_up_in_time(server: PostgresqlServer, spoiled: PostgresqlBackend) -> None:
    server.pause()
    with pytest.raises(UnknownOutcomeError):
        spoiled.write_objects([row(2)])
    with pytest.raises(UnavailableError):  # there is no connection any more, and none to be had
        read_object(spoiled, 1)
    server.resume()
    assert read_object(spoiled, 1) == row(1, token="a")


def test_writes_go_on_after_a_restart(server: PostgresqlServer, direct: PostgresqlBackend) -> None:
    server.restart()
    direct.write_objects([row(2)])

    assert read_object(direct, 2) == row(2)


def test_rows_survive_a_kill_of_the_server(server: PostgresqlServer, direct: PostgresqlBackend) -> None:
    direct.write_objects([row(2)])
    server.kill()
    with pytest.raises(UnavailableError):
        read_object(direct, 2)
    with pytest.raises(UnavailableError):
        direct.write_objects([row(3)])
    server.start()

    assert (read_object(direct, 2), read_object(direct, 3)) == (row(2), None)


def test_commit_survives_a_kill_of_the_server_as_a_whole(server: PostgresqlServer, direct: PostgresqlBackend) -> None:
    direct.write_and_swap([row(2), row(3)], reference(), reference(version=6))
    server.kill()
    with pytest.raises((UnavailableError, UnknownOutcomeError)):
        direct.write_and_swap([row(4)], reference(version=6), reference(version=7))
    server.start()

    assert (find_reference(direct), read_object(direct, 2), read_object(direct, 3)) == (reference(version=6), row(2), row(3))
    assert read_object(direct, 4) is None


def test_commit_that_waits_and_is_beaten_has_written_nothing(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend
) -> None:
    waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = 'headwater' AND wait_event_type = 'Lock'"
    with server.connect() as faster, faster.transaction():
        faster.execute(f"UPDATE {schema}.refs SET version = 6")
        thread, said = in_thread(lambda: direct.write_and_swap([row(2)], reference(), reference(version=6)))
        wait_until(lambda: len(server.execute(waiting)) == 1)
    thread.join(10)

    assert [type(fault) for fault in said] == [SwapConflictError]
    assert read_object(direct, 2) is None


def test_commit_that_waits_too_long_is_unavailable_and_undone(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend, patient: PostgresqlBackend
) -> None:
    with server.connect() as blocker, blocker.transaction():
        blocker.execute(f"UPDATE {schema}.refs SET version = version")
        with pytest.raises(UnavailableError, match="statement timeout"):
            patient.write_and_swap([row(2)], reference(), reference(version=6))

    assert (find_reference(direct), read_object(direct, 2)) == (reference(), None)


def test_connections_ended_while_idle_disturb_nothing(server: PostgresqlServer, direct: PostgresqlBackend) -> None:
    for call in (lambda: direct.write_objects([row(2)]), lambda: read_object(direct, 2)):
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headwater'")
        wait_until(lambda: server.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'headwater'") == [])
        call()

    assert read_object(direct, 2) == row(2)


def test_write_ended_by_the_administrator_is_unknown(server: PostgresqlServer, schema: str, direct: PostgresqlBackend) -> None:
    waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = 'headwater' AND wait_event_type = 'Lock'"
    with server.connect() as blocker, blocker.transaction():
        blocker.execute(f"LOCK TABLE {schema}.refs")
        thread, said = in_thread(lambda: direct.swap_reference(reference(), reference(version=6)))
        wait_until(lambda: len(server.execute(waiting)) == 1)
        server.execute(f"SELECT pg_terminate_backend(pid) FROM ({waiting}) AS w")
        thread.join(10)

    assert [type(fault) for fault in said] == [UnknownOutcomeError]
    assert find_reference(direct) == reference()


def test_write_that_waits_too_long_is_unavailable_and_undone(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend, patient: PostgresqlBackend
) -> None:
    with server.connect() as blocker, blocker.transaction():
        blocker.execute(f"UPDATE {schema}.refs SET version = version")
        with pytest.raises(UnavailableError, match="statement timeout"):
            patient.swap_reference(reference(), reference(version=6))

    assert find_reference(direct) == reference()


def test_read_that_waits_too_long_is_unavailable(server: PostgresqlServer, schema: str, patient: PostgresqlBackend) -> None:
    with server.connect() as blocker, blocker.transaction():
        blocker.execute(f"LOCK TABLE {schema}.objs")
        with pytest.raises(UnavailableError, match="statement timeout"):
            read_object(patient, 1)

    assert read_object(patient, 1) == row(1, token="a")


def test_call_for_which_no_connection_becomes_free_is_unavailable(
    server: PostgresqlServer, schema: str, open_at: Callable[[str], PostgresqlBackend]
) -> None:
    small = open_at(server.url(schema, pool=2, timeout="400ms"))
    with server.connect() as blocker, blocker.transaction():
        blocker.execute(f"LOCK TABLE {schema}.objs")
        threads = [in_thread(lambda: read_object(small, 1)) for _ in range(6)]
        for thread, _ in threads:
            thread.join(10)
    said = [str(faults[0]) for _, faults in threads]

    assert all("statement timeout" in text or "none of 2 connections became free" in text for text in said)
    assert any("none of 2 connections" in text for text in said)
    assert read_object(small, 1) == row(1, token="a")


def test_many_threads_share_few_connections(
    server: PostgresqlServer, schema: str, open_at: Callable[[str], PostgresqlBackend]
) -> None:
    small = open_at(server.url(schema, pool=2, application_name="few"))
    threads = [in_thread(lambda: [read_object(small, 1) for _ in range(50)]) for _ in range(8)]
    counts = [server.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'few'")[0][0] for _ in range(5)]
    for thread, said in threads:
        thread.join(30)
        assert said == [[row(1, token="a")] * 50]

    assert max(counts) <= 2


def test_server_that_takes_no_writes_is_read_and_says_why(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend
) -> None:
    server.execute(f"ALTER ROLE {server.user} SET default_transaction_read_only = on")
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headwater'")
    try:
        wait_until(lambda: server.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'headwater'") == [])
        assert read_object(direct, 1) == row(1, token="a")
        with pytest.raises(UnavailableError, match="read-only"):
            direct.write_objects([row(2)])
    finally:
        with server.connect() as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER ROLE {server.user} RESET default_transaction_read_only".encode())

    direct.write_objects([row(2)])


def test_tables_that_are_gone_are_told_with_what_to_do(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend
) -> None:
    server.drop(schema)
    with pytest.raises(RefusedError, match=r"restore the schema, .* open the store again to begin anew"):
        read_object(direct, 1)


def test_drivers_words_on_several_lines_become_sentences_on_one() -> None:
    said = "server closed the connection unexpectedly\n\tThis probably means the server terminated\n\tbefore the request.\n"

    assert str(connecting_error(psycopg.OperationalError(said), place="here")) == (
        "here: server closed the connection unexpectedly; This probably means the server terminated before the request"
    )


def test_no_fault_shows_the_password(server: PostgresqlServer, spoiled: PostgresqlBackend, proxy: Proxy) -> None:
    proxy.drop_requests()
    for call in (lambda: read_object(spoiled, 1), lambda: spoiled.write_objects([row(2)])):
        with pytest.raises(HeadwaterError) as caught:
            call()
        fault: BaseException | None = caught.value
        while fault is not None:
            assert server.password not in str(fault)
            assert "A%20pass" not in str(fault)
            fault = fault.__cause__ or fault.__context__


def test_full_disk_of_the_server_says_that_nothing_happened(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend
) -> None:
    server.execute(
        f"CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
    )
    server.execute(f"CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.objs EXECUTE FUNCTION {schema}.fail()")
    for write in (
        lambda: direct.write_objects([row(2)]),
        lambda: direct.write_and_swap([row(2)], reference(), reference(version=6)),
    ):
        with pytest.raises(StoreFullError, match=r"No space left on device \(nothing was written; make room"):
            write()

    assert (find_reference(direct), read_object(direct, 2)) == (reference(), None)
