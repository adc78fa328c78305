"""What becomes of calls when the way to the server, or the server itself, fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from pymongo.errors import ExecutionTimeout

from headwater.errors import HeadwaterError, RefusedError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import Backend
from headwater.store.backends.mongodb import MongodbBackend
from headwater.store.backends.mongodb.errors import driver_error
from servers.mongodb import MongodbServer
from servers.proxy import Proxy
from specimens import READS, REALM, WRITES, eventually, find_reference, in_parts, read_object, reference, row, state

pytestmark = pytest.mark.long

COMMANDS = {"insert": "create_reference", "update": "swap_reference", "delete": "remove_reference"}
writes = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
reads = pytest.mark.parametrize("read", READS.values(), ids=READS)
one_changes = pytest.mark.parametrize(
    ("command", "write"), [(command, WRITES[call]) for command, call in COMMANDS.items()], ids=COMMANDS
)
Act = Callable[[Backend], object]
FailPoint = Callable[..., AbstractContextManager[None]]


@pytest.fixture(autouse=True)
def stored(our_server: MongodbServer, direct: MongodbBackend) -> None:
    """One reference and one object."""
    direct.create_reference(reference())
    direct.write_objects([row(1, token="a")])


@pytest.fixture
def failing(our_server: MongodbServer) -> FailPoint:
    """Lets the server fail a command on demand, as often as ``times`` says or as long as the block lasts."""

    @contextmanager
    def fail(command: str, *, times: int | None = None, **how: Any) -> Iterator[None]:
        point = {"configureFailPoint": "failCommand"}
        with our_server.client() as client:
            mode = "alwaysOn" if times is None else {"times": times}
            client.admin.command({**point, "mode": mode, "data": {"failCommands": [command], **how}})
            try:
                yield
            finally:
                client.admin.command({**point, "mode": "off"})

    return fail


@writes
def test_write_without_its_answer_is_unknown_and_happened(
    spoiled: MongodbBackend, direct: MongodbBackend, proxy: Proxy, database: str, write: Act
) -> None:
    before = state(direct)
    proxy.drop_answers(holding=database)
    with pytest.raises(UnknownOutcomeError, match="whether it happened is not known"):
        write(spoiled)

    assert state(direct) != before


@writes
def test_write_lost_on_its_way_is_unknown_and_undone(
    spoiled: MongodbBackend, direct: MongodbBackend, proxy: Proxy, database: str, write: Act
) -> None:
    before = state(direct)
    proxy.drop_requests(holding=database)
    with pytest.raises(UnknownOutcomeError):
        write(spoiled)

    assert state(direct) == before


def test_lost_insertion_is_never_repeated_by_itself(
    spoiled: MongodbBackend, direct: MongodbBackend, proxy: Proxy, database: str
) -> None:
    proxy.drop_answers(times=1, holding=database)
    with pytest.raises(UnknownOutcomeError):  # and not beaten, by itself
        spoiled.create_reference(reference("new"))

    assert find_reference(direct, "new") == reference("new")


@reads
def test_read_goes_through_when_its_connection_is_cut_once(
    spoiled: MongodbBackend, direct: MongodbBackend, proxy: Proxy, database: str, read: Act
) -> None:
    proxy.drop_answers(times=1, holding=database)

    assert read(spoiled) == read(direct)
    assert proxy.drops == 1


def test_calls_without_a_server_are_unavailable(by_proxy: Callable[[str], str], open_at: Any, proxy: Proxy) -> None:
    backend = open_at(by_proxy("400ms"))
    proxy.close()
    with pytest.raises(UnavailableError):
        read_object(backend, 1)  # the connection that there was is known to be gone from here on
    for call in (*WRITES.values(), *READS.values()):
        with pytest.raises(UnavailableError):
            call(backend)


@pytest.mark.parametrize("swallow", [Proxy.hang, Proxy.hang_answers])
def test_calls_over_a_hanging_connection_end_in_time(
    by_proxy: Callable[[str], str], open_at: Any, proxy: Proxy, swallow: Callable[[Proxy], None]
) -> None:
    backend = open_at(by_proxy("500ms"))
    swallow(proxy)
    with pytest.raises(UnknownOutcomeError, match="timed out"):
        backend.write_objects([row(2)])
    with pytest.raises(UnavailableError):
        read_object(backend, 1)
    backend.close()


def test_server_that_stands_still_is_given_up_and_found_again(our_server: MongodbServer, database: str, open_at: Any) -> None:
    backend = eventually(lambda: open_at(our_server.url(database, timeout="2s")))
    our_server.pause()
    start = time.monotonic()
    with pytest.raises(UnknownOutcomeError):
        backend.swap_reference(reference(), reference(version=6))
    with pytest.raises(UnavailableError):
        read_object(backend, 1)
    took = time.monotonic() - start
    our_server.resume()

    assert (
        took < 20
    )  # twice the time of a call and all that a busy machine adds; by itself the driver waits for half a minute at least
    assert eventually(lambda: read_object(backend, 1)) == row(1, token="a")


def test_rows_survive_a_kill_of_the_server(our_server: MongodbServer, direct: MongodbBackend) -> None:
    direct.write_objects([row(2), *in_parts(3, b"0", b"1")])
    our_server.kill()
    our_server.start()

    assert eventually(lambda: read_object(direct, 2)) == row(2)
    assert read_object(direct, 3, 1) == in_parts(3, b"0", b"1")[1]
    direct.write_objects([row(4)])
    assert read_object(direct, 4) == row(4)


def test_call_waits_for_a_server_that_restarts(our_server: MongodbServer, database: str, open_at: Any) -> None:
    backend = open_at(our_server.url(database, timeout="20s"))
    our_server.restart()
    backend.read_references(REALM, ["main"])  # whose connection was ended

    backend.swap_reference(reference(), reference(version=6))
    assert find_reference(backend) == reference(version=6)


@one_changes
@pytest.mark.parametrize("code", [10107, 13435, 10058])
def test_node_that_is_no_primary_is_asked_until_one_is(
    spoiled: MongodbBackend, direct: MongodbBackend, failing: FailPoint, command: str, write: Act, code: int
) -> None:
    with failing(command, times=2, errorCode=code):
        write(spoiled)

    with pytest.raises(SwapConflictError):  # it happened, and once
        write(direct)


@one_changes
def test_change_for_which_there_is_no_primary_did_not_happen(
    our_server: MongodbServer, direct: MongodbBackend, database: str, open_at: Any, failing: FailPoint, command: str, write: Act
) -> None:
    backend, before = open_at(our_server.url(database, timeout="1s")), state(direct)
    with failing(command, errorCode=10107), pytest.raises(UnavailableError):
        write(backend)

    assert state(direct) == before


@one_changes
@pytest.mark.parametrize("code", [189, 91, 11600, 11602, 50, 262, 6, 7, 89, 9001])
def test_change_that_was_interrupted_has_an_unknown_outcome(
    direct: MongodbBackend, failing: FailPoint, command: str, write: Act, code: int
) -> None:
    with failing(command, times=1, errorCode=code), pytest.raises(UnknownOutcomeError):
        write(direct)


@pytest.mark.parametrize("of_one", [True, False])
def test_call_too_late_for_the_driver_alone_did_not_happen(of_one: bool) -> None:
    said = "operation would exceed time limit, remaining timeout:-0.00473 <= network round trip time:0.00071"
    answer = {"ok": 0, "errmsg": said, "code": 50}
    unsent = ExecutionTimeout(said, 50, answer)
    sent = ExecutionTimeout("operation exceeded time limit", 50, {**answer, "codeName": "MaxTimeMSExpired"})

    kinds = [
        type(driver_error(fault, place="", what="", writes=True, was_sent=True, of_one=of_one, secret=None))
        for fault in (unsent, sent)
    ]
    assert kinds == [UnavailableError if of_one else UnknownOutcomeError, UnknownOutcomeError]


def test_bulk_call_without_a_primary_may_have_done_some(direct: MongodbBackend, failing: FailPoint) -> None:
    with failing("insert", times=1, errorCode=10107), pytest.raises(UnknownOutcomeError):
        direct.create_references([reference("a"), reference("b")])


@pytest.mark.parametrize("call", ["create_reference", "create_references", "write_objects", "swap_reference"])
def test_write_that_no_majority_confirmed_has_an_unknown_outcome(direct: MongodbBackend, failing: FailPoint, call: str) -> None:
    before = state(direct)
    command = "update" if call == "swap_reference" else "insert"
    lapse = {"code": 64, "errmsg": "waiting for replication timed out"}
    with failing(command, times=1, writeConcernError=lapse), pytest.raises(UnknownOutcomeError, match="waiting for repl"):
        WRITES[call](direct)

    assert state(direct) != before


@pytest.mark.parametrize("code", [11602, 10107, 6])
def test_read_that_was_interrupted_is_asked_again(spoiled: MongodbBackend, failing: FailPoint, code: int) -> None:
    with failing("find", times=1, errorCode=code):
        assert read_object(spoiled, 1) == row(1, token="a")


def test_call_without_a_free_connection_is_unavailable(
    our_server: MongodbServer, direct: MongodbBackend, database: str, open_at: Any, failing: FailPoint
) -> None:
    backend = open_at(our_server.url(database, pool="1", timeout="300ms"))
    held = backend._calls._at_hand("test").objs
    with failing("find", blockConnection=True, blockTimeMS=1500):
        holder = threading.Thread(target=held.find_one)
        holder.start()
        time.sleep(0.2)
        with pytest.raises(UnavailableError):  # though it writes: there was no way to send it
            backend.insert_object(row(2, token="a"))
        holder.join(10)

    assert read_object(direct, 2) is None


@pytest.mark.parametrize(("code", "advice"), [(13, "readWrite"), (59, "MongoDB 4.4"), (166, "a view")])
def test_refusal_for_good_by_the_server_says_what_to_do(
    direct: MongodbBackend, failing: FailPoint, code: int, advice: str
) -> None:
    with failing("insert", times=1, errorCode=code), pytest.raises(RefusedError, match=advice):
        direct.create_reference(reference("new"))


def test_repeated_write_heals_what_a_lost_one_left(
    spoiled: MongodbBackend, direct: MongodbBackend, proxy: Proxy, database: str
) -> None:
    direct.write_objects(in_parts(5, b"0", b"1", b"2", b"3"))
    new = in_parts(5, b"0", b"1")
    proxy.drop_answers(holding=database)  # of the first round trip: nothing is replaced yet
    with pytest.raises(UnknownOutcomeError):
        spoiled.write_objects(new)
    proxy.pass_on()
    eventually(lambda: read_object(spoiled, 5))
    spoiled.write_objects(new)

    assert [read_object(direct, 5, part) for part in range(4)] == [*new, None, None]


def test_faults_name_the_store_and_the_call(spoiled: MongodbBackend, proxy: Proxy, database: str) -> None:
    proxy.drop_requests(holding=database)
    with pytest.raises(HeadwaterError, match=rf"mongodb://127\.0\.0\.1:{proxy.port}/.*: swap a reference: "):
        spoiled.swap_reference(reference(), reference(version=6))
