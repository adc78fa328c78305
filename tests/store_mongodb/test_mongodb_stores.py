"""What a URL may say, and how a database becomes a store."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psutil
import pytest

from forked_children import run_forked
from headwater.errors import CorruptionError, HeadwaterError, RefusedError, UnavailableError
from headwater.store import open_backend, open_store
from headwater.store.backends.mongodb import MongodbBackend
from headwater.store.urls import parse_url
from servers.mongodb import MongodbServer
from specimens import find_reference, read_object, reference, row

pytestmark = pytest.mark.long

Open = Callable[[str], MongodbBackend]
NOWHERE = "mongodb://127.0.0.1:1"
SECRET, QUOTED = "s3cret&with/:@", "s3cret%26with%2F%3A%40"


def refusal(url: str) -> str:
    with pytest.raises(RefusedError) as caught:
        open_backend(parse_url(url))
    return str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        "w=1",
        "wtimeoutMS=5",
        "journal=false",
        "readConcernLevel=local",
        "readPreference=secondary",
        "retryWrites=true",
        "timeoutMS=5",
        "tlsInsecure=true",
        "replicaset=rs0",
    ],
)
def test_no_option_of_the_driver_loosens_what_is_promised(option: str) -> None:
    text = refusal(f"{NOWHERE}/store?{option}")

    assert f"there is no option {option.partition('=')[0]!r}" in text
    assert "timeout, pool, idle, replicaSet, directConnection, authSource" in text


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"{NOWHERE}", "the database is missing: write mongodb://user:password@host:port/database"),
        (f"{NOWHERE}/", "the database is missing"),
        (f"{NOWHERE}/a.b", "'a.b' is not a name of a database"),
        (f"{NOWHERE}/a%20b", "'a b' is not a name of a database"),
        (f"{NOWHERE}/{'n' * 64}", "up to 63 bytes"),
        (f"{NOWHERE}/admin", "'admin' is MongoDB's own database"),
        ("mongodb:///store", "'' is no host"),
        ("mongodb://a:1,,b:2/store", "'' is no host"),
        ("mongodb://a:b/store", "has a port that is no number"),
        ("mongodb://a:99999/store", "Port must be an integer between 0 and 65535"),
        ("mongodb://:secret@a/store", "the user is missing before the password"),
        (f"{NOWHERE}/store?pool=0", "'0' is not a whole number from 1"),
        (f"{NOWHERE}/store?tls=yes", "'yes' is none of true, false"),
        (f"{NOWHERE}/store?authMechanism=GUESS", "'GUESS' is none of SCRAM-SHA-256"),
        (f"{NOWHERE}/store?tlsCAFile=/a", "the option 'tlsCAFile' is of use with tls=true only"),
        (f"{NOWHERE}/store?tls=true&tlsCAFile=/nowhere", "No such file"),
        ("mongodb://a:1,b:2/store?directConnection=true", "multiple hosts"),
    ],
)
def test_wrong_url_is_refused_with_what_is_wrong(url: str, said: str) -> None:
    assert said in refusal(url)


def test_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match=r"set up: .*127\.0\.0\.1:1.*refused"):
        open_backend(parse_url(f"{NOWHERE}/store?timeout=200ms"))


def test_store_may_be_named_by_several_servers(our_server: MongodbServer, database: str, open_at: Open) -> None:
    url = our_server.url(database).replace("mongodb://", "mongodb://127.0.0.1:1,")
    backend = open_at(url)
    backend.create_reference(reference())

    assert find_reference(backend) == reference()


def test_replica_set_of_another_name_is_not_used(our_server: MongodbServer, database: str) -> None:
    with pytest.raises(UnavailableError):
        open_backend(parse_url(our_server.url(database, replicaSet="another", timeout="300ms")))
    open_backend(parse_url(our_server.url(database, replicaSet="secantus"))).close()


def test_ten_processes_that_set_up_at_once_all_succeed(server: MongodbServer, database: str) -> None:
    def set_up(number: int) -> bool:
        with closing(open_backend(parse_url(server.url(database, timeout="60s")))) as backend:
            backend.write_objects([row(number + 1)])
            return read_object(backend, number + 1) == row(number + 1)

    assert run_forked(10, set_up) == [True] * 10
    with server.client() as client:
        assert list(client[database].meta.find()) == [{"_id": "headwater", "version": 1}]
        assert client[database].objs.count_documents({}) == 10


def test_store_from_the_future_is_refused_and_left_alone(server: MongodbServer, database: str) -> None:
    marker = {"_id": "headwater", "version": 2, "new": "thing"}
    with server.client() as client:
        client[database].meta.insert_one(marker)

        assert "newer Headwater (version 2, this one knows 1): upgrade this one" in refusal(server.url(database))
        assert list(client[database].meta.find()) == [marker]


@pytest.mark.parametrize("version", [None, "1", 0, -1, 1.0, True])
def test_marker_that_nobody_wrote_is_unreadable(server: MongodbServer, database: str, version: Any) -> None:
    with server.client() as client:
        client[database].meta.insert_one({"_id": "headwater", "version": version})
    with pytest.raises(CorruptionError, match="no Headwater ever wrote"):
        open_backend(parse_url(server.url(database)))


def test_opening_again_changes_nothing(server: MongodbServer, database: str, open_at: Open) -> None:
    open_at(server.url(database)).create_reference(reference())

    assert find_reference(open_at(server.url(database))) == reference()


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongodbServer]:
    """A server that lets ``ann`` in, and nobody else."""
    folder = tmp_path_factory.mktemp("mongodb_locked")
    server = MongodbServer(folder, given=None).start()
    with server.client() as client:
        client.admin.command("createUser", "ann", pwd=SECRET, roles=["root"])
    server.stop()
    server = MongodbServer(folder, "--auth", given=None).start()
    yield server
    server.stop()


class TestPasswords:
    def url(self, server: MongodbServer, login: str, **options: str) -> str:
        return server.url("store", **options).replace("//", f"//{login}@")

    def test_right_one_opens_the_store(self, locked: MongodbServer, open_at: Open) -> None:
        backend = open_at(self.url(locked, f"ann:{QUOTED}", authSource="admin"))
        backend.write_objects([row(1)])

        assert read_object(backend, 1) == row(1)

    def test_open_store_does_not_show_it(self, locked: MongodbServer) -> None:
        with open_store(self.url(locked, f"ann:{QUOTED}", authSource="admin")) as store:
            assert store.url == self.url(locked, "ann:***", authSource="admin")

    @pytest.mark.parametrize("login", ["ann:wr0ng", "bob:wr0ng"])
    def test_wrong_one_is_refused_and_not_shown(self, locked: MongodbServer, login: str) -> None:
        text = refusal(self.url(locked, login, authSource="admin"))

        assert "are user, password and the option authSource right?" in text
        assert "wr0ng" not in text

    def test_login_is_needed_to_read_anything(self, locked: MongodbServer) -> None:
        assert "readWrite" in refusal(locked.url("store"))

    def test_right_one_that_another_database_knows_is_refused_with_advice(self, locked: MongodbServer) -> None:
        assert "authSource" in refusal(self.url(locked, f"ann:{QUOTED}"))

    @pytest.mark.parametrize("more", ["/store?timeout=200ms", "/a.b", "/store?tls=maybe", "/store?tls=true&tlsCAFile=/none"])
    def test_no_fault_shows_it(self, more: str) -> None:
        with pytest.raises(HeadwaterError) as caught:
            open_backend(parse_url(f"mongodb://ann:{QUOTED}@127.0.0.1:1{more}"))
        shown = "".join(traceback.format_exception(caught.value))

        assert SECRET not in shown
        assert QUOTED not in shown
        assert "ann" in str(caught.value)


def test_connection_that_nobody_uses_is_closed(
    server: MongodbServer, database: str, open_at: Callable[[str], MongodbBackend]
) -> None:
    def connections() -> int:
        return sum(each.raddr[1:] == (server.port,) for each in psutil.Process().net_connections("tcp") if each.raddr)

    backend = open_at(server.url(database, idle="50ms"))
    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda number: backend.write_objects([row(number)]), range(1, 6)))
    before = connections()

    until = time.monotonic() + 60
    while connections() >= before:
        assert time.monotonic() < until, "they stay open"
        time.sleep(0.05)
    assert read_object(backend, 1) == row(1)
