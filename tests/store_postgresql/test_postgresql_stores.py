"""How a store in PostgreSQL is named, let in and set up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forked_children import run_forked
from free_ports import free_port
from headwater.errors import RefusedError, UnavailableError
from headwater.store import open_backend
from headwater.store.backends.postgresql import PostgresqlBackend
from headwater.store.backends.postgresql.pool import PoolLimits
from headwater.store.urls import parse_url
from servers.postgresql import PostgresqlServer
from specimens import find_reference, read_object, reference, row

pytestmark = pytest.mark.long

Open = Callable[[str], PostgresqlBackend]


@pytest.fixture
def make_role(server: PostgresqlServer, schema: str) -> Iterator[Callable[..., str]]:
    """Makes a role with the rights given, as ``GRANT ... ON ... TO``; returns its name. Its password is ``secret``."""
    names: list[str] = []

    def make(*grants: str) -> str:
        names.append(f"role_{schema}_{len(names)}")
        server.execute(f"CREATE ROLE {names[-1]} LOGIN PASSWORD 'secret'")
        for grant in grants:
            server.execute(f"GRANT {grant} TO {names[-1]}")
        return names[-1]

    yield make
    server.drop(schema)
    for name in names:
        server.execute(f"DROP OWNED BY {name}")
        server.execute(f"DROP ROLE {name}")


def test_new_store_is_empty_in_the_schema_named(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    backend = open_at(server.url(schema))
    tables = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", (schema,))

    assert read_object(backend, 1) is None
    assert tables == [("objs",), ("refs",), ("version",)]


def test_what_libpq_takes_may_stand_in_the_url(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    url = server.url(
        schema,
        host=f"{server.host}:{free_port()},{server.host}",
        target_session_attrs="any",
        keepalives=1,
        keepalives_idle=30,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=20_000,
        options="-c lock_timeout=7s -c client_min_messages=error",
    )
    connection = open_at(url).open_pool(PoolLimits()).borrow()

    parameters = connection.info.get_parameters()
    assert [parameters[name] for name in ("keepalives_idle", "keepalives_count", "tcp_user_timeout")] == ["30", "3", "20000"]
    assert connection.only_row("SHOW lock_timeout") == ("7s",)
    assert connection.only_row("SHOW client_min_messages") == ("warning",)
    connection.close()


@pytest.mark.parametrize("attributes", ["standby", "read-only", "prefer-standby"])
def test_standby_cannot_be_asked_for(server: PostgresqlServer, attributes: str) -> None:
    with pytest.raises(RefusedError, match="none of primary, read-write, any"):
        open_backend(parse_url(server.url(target_session_attrs=attributes)))


def test_standby_is_no_store_whatever_is_asked_for(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    open_at(server.url(schema)).close()
    server.demote()
    try:
        for attributes in ("any", "primary"):
            with pytest.raises(UnavailableError, match="standby"):
                open_backend(parse_url(server.url(schema, target_session_attrs=attributes)))
    finally:
        server.promote()


def test_open_store_that_nobody_uses_keeps_no_connection(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    backend = open_at(server.url(schema, idle="50ms", application_name=schema))
    backend.write_objects([row(1)])
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"

    until = time.monotonic() + 60
    while server.execute(sessions, (schema,)) != [(0,)]:
        assert time.monotonic() < until, "it stays open"
        time.sleep(0.02)
    assert read_object(backend, 1) == row(1)


def test_schema_is_headwater_without_one_in_the_url(server: PostgresqlServer, open_at: Open) -> None:
    server.drop("headwater")
    open_at(server.url())

    assert server.execute("SELECT number FROM headwater.version") == [(1,)]


def test_schema_may_have_the_name_of_a_word_of_sql(server: PostgresqlServer, open_at: Open) -> None:
    backend = open_at(server.url("order"))
    backend.write_objects([row(1)])

    assert read_object(backend, 1) == row(1)
    server.drop("order")


@pytest.mark.parametrize("name", ["", "Big", "1st", "a-b", "pg_own", 'a"b', "x" * 64])
def test_schema_that_is_no_plain_name_is_refused(server: PostgresqlServer, name: str) -> None:
    with pytest.raises(RefusedError, match="is not a name of a schema"):
        open_backend(parse_url(server.url(name)))


def test_stores_in_two_schemas_know_nothing_of_each_other(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    one, other = open_at(server.url(schema)), open_at(server.url(f"{schema}_b"))
    one.write_objects([row(1)])

    assert (read_object(one, 1), read_object(other, 1)) == (row(1), None)


def test_ten_processes_set_the_same_schema_up_at_once(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    def work(number: int) -> None:
        backend = open_backend(parse_url(server.url(schema)))
        backend.write_objects([row(number + 1)])
        backend.close()

    run_forked(10, work)
    backend = open_at(server.url(schema))

    assert [read_object(backend, number + 1) for number in range(10)] == [row(number + 1) for number in range(10)]
    assert server.execute(f"SELECT number FROM {schema}.version") == [(1,)]


@pytest.mark.parametrize(("number", "said"), [(99, "newer Headwater"), (0, "no Headwater ever wrote")])
def test_schema_of_another_version_is_refused_and_left_alone(
    server: PostgresqlServer, schema: str, open_at: Open, number: int, said: str
) -> None:
    open_at(server.url(schema))
    server.execute(f"UPDATE {schema}.version SET number = {number}")
    with pytest.raises(RefusedError, match=said):
        open_at(server.url(schema))

    assert server.execute(f"SELECT number FROM {schema}.version") == [(number,)]


@pytest.mark.parametrize("table", ["version (number text)", "version (major int)", "objs (a int)", "refs (a int)"])
def test_schema_of_another_program_is_refused_and_left_alone(server: PostgresqlServer, schema: str, table: str) -> None:
    server.execute(f'CREATE SCHEMA "{schema}"')
    server.execute(f'CREATE TABLE "{schema}".{table}')
    if "text" in table:
        server.execute(f"INSERT INTO \"{schema}\".version VALUES ('one')")

    with pytest.raises(RefusedError, match="another program's tables are there: name another schema"):
        open_backend(parse_url(server.url(schema)))
    assert len(server.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))) == 1


def test_role_that_may_only_use_tables_works_once_they_exist(
    server: PostgresqlServer, schema: str, open_at: Open, make_role: Callable[..., str]
) -> None:
    open_at(server.url(schema))
    role = make_role(
        f"USAGE ON SCHEMA {schema}",
        f"SELECT ON {schema}.version",
        f"SELECT, INSERT, UPDATE, DELETE ON {schema}.refs, {schema}.objs",
    )
    backend = open_at(server.url(schema, user=role, password="secret"))
    backend.write_objects([row(1)])
    backend.create_reference(reference())

    assert (read_object(backend, 1), find_reference(backend)) == (row(1), reference())


def test_role_that_may_not_create_is_refused_without_tables(
    server: PostgresqlServer, schema: str, make_role: Callable[..., str]
) -> None:
    with pytest.raises(
        RefusedError, match=rf"permission denied for database.*owner of the schema {schema} open this store once"
    ):
        open_backend(parse_url(server.url(schema, user=make_role(), password="secret")))


def test_role_without_rights_is_told_whose_store_it_is(
    server: PostgresqlServer, schema: str, open_at: Open, make_role: Callable[..., str]
) -> None:
    open_at(server.url(schema))
    role = make_role()
    with pytest.raises(RefusedError, match=rf"schema={schema}: .*denied for schema.*then grant its rights to this role"):
        open_backend(parse_url(server.url(schema, user=role, password="secret")))


def test_role_that_may_not_write_reads_and_is_refused_writes(
    server: PostgresqlServer, schema: str, open_at: Open, make_role: Callable[..., str]
) -> None:
    open_at(server.url(schema)).write_objects([row(1)])
    role = make_role(f"USAGE ON SCHEMA {schema}", f"SELECT ON ALL TABLES IN SCHEMA {schema}")
    backend = open_at(server.url(schema, user=role, password="secret"))
    with pytest.raises(RefusedError, match="permission denied for table objs"):
        backend.write_objects([row(2)])

    assert read_object(backend, 1) == row(1)


def test_role_makes_its_schema_where_it_may(
    server: PostgresqlServer, schema: str, open_at: Open, make_role: Callable[..., str]
) -> None:
    backend = open_at(server.url(schema, user=make_role(f"CREATE ON DATABASE {server.database}"), password="secret"))
    backend.write_objects([row(1)])

    assert read_object(backend, 1) == row(1)


def test_role_sets_up_a_schema_that_was_made_for_it(
    server: PostgresqlServer, schema: str, open_at: Open, make_role: Callable[..., str]
) -> None:
    role = make_role()
    server.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
    backend = open_at(server.url(schema, user=role, password="secret"))
    backend.write_objects([row(1)])

    assert read_object(backend, 1) == row(1)


def test_wrong_password_is_refused_and_not_shown(server: PostgresqlServer) -> None:
    with pytest.raises(RefusedError, match="password authentication failed") as caught:
        open_backend(parse_url(server.url(password="wrong/guess")))

    assert "guess" not in str(caught.value)
    assert "guess" not in repr(caught.value.__cause__)


def test_missing_password_is_refused(server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    with pytest.raises(RefusedError, match="no password supplied"):
        open_backend(parse_url(server.url(password=None)))


def test_database_or_role_that_does_not_exist_is_refused(server: PostgresqlServer) -> None:
    with pytest.raises(RefusedError, match='database "absent" does not exist'):
        open_backend(parse_url(server.url(database="absent")))


def test_server_that_is_not_there_is_unavailable(server: PostgresqlServer) -> None:
    with pytest.raises(UnavailableError, match="Connection refused; Is the server running") as caught:
        open_backend(parse_url(server.url(port=1)))

    assert "\n" not in str(caught.value)


def test_port_that_no_host_can_have_is_refused(server: PostgresqlServer) -> None:
    with pytest.raises(RefusedError, match='invalid port number: "99999"'):
        open_backend(parse_url(server.url(port=99999)))


def test_fault_in_an_open_store_says_in_which_schema(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    backend = open_at(server.url(schema))
    server.execute(f"DROP TABLE {schema}.objs")
    with pytest.raises(RefusedError, match=rf"schema={schema}: .*restore the schema, or drop what is left") as caught:
        read_object(backend, 1)

    assert server.password not in str(caught.value)


def test_server_that_stands_still_is_given_up_when_opening(server: PostgresqlServer) -> None:
    server.pause()
    with pytest.raises(UnavailableError, match="timeout"):
        open_backend(parse_url(server.url(connect_timeout="2s")))


def test_server_without_tls_is_refused_where_tls_is_asked_for(server: PostgresqlServer) -> None:
    with pytest.raises(RefusedError, match="does not support SSL"):
        open_backend(parse_url(server.url(sslmode="require")))


def test_option_that_does_not_exist_is_refused_unshown(server: PostgresqlServer) -> None:
    with pytest.raises(RefusedError, match=r"no option 'shema'.*schema, timeout, connect_timeout, pool") as caught:
        open_backend(parse_url(server.url(shema="mine")))

    assert server.password not in str(caught.value)
    assert "mine" not in str(caught.value)


def test_password_may_come_from_the_environment_or_a_file(
    server: PostgresqlServer, schema: str, open_at: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text(f"*:*:*:*:{server.password.replace(':', chr(92) + ':')}\n")
    passwords.chmod(0o600)
    open_at(server.url(schema, password=None, passfile=passwords))
    monkeypatch.setenv("PGPASSWORD", server.password)

    assert read_object(open_at(server.url(schema, password=None)), 1) is None


def test_service_may_say_everything(
    server: PostgresqlServer, schema: str, open_at: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = tmp_path / "services"
    services.write_text(
        f"[lake]\nhost={server.host}\nport={server.port}\nuser={server.user}\ndbname={server.database}\npassword={server.password}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))

    assert read_object(open_at(f"postgresql://?service=lake&schema={schema}"), 1) is None


def test_environment_says_what_the_url_does_not(
    server: PostgresqlServer, schema: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", server.host)
    monkeypatch.setenv("PGPORT", str(server.port))
    monkeypatch.setenv("PGUSER", server.user)
    monkeypatch.setenv("PGPASSWORD", server.password)

    assert read_object(open_at(f"postgresql:///{server.database}?schema={schema}"), 1) is None


@pytest.mark.parametrize(
    "place", ["postgresql://{user}@{escaped}:{port}/{database}", "postgresql://{user}@:{port}/{database}?host={folder}"]
)
def test_unix_socket_is_named_by_its_folder(server: PostgresqlServer, schema: str, open_at: Open, place: str) -> None:
    folder = str(server.folder)
    url = place.format(
        user=server.user, escaped=folder.replace("/", "%2F"), folder=folder, port=server.port, database=server.database
    )

    assert read_object(open_at(f"{url}{'&' if '?' in url else '?'}schema={schema}"), 1) is None


def test_host_that_answers_is_taken_of_several(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    url = server.url(schema).replace(f"{server.host}:{server.port}", f"127.0.0.1:1,{server.host}:{server.port}")

    assert read_object(open_at(url), 1) is None


def test_standby_is_neither_read_nor_written(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    backend = open_at(server.url(schema))
    backend.write_objects([row(1)])
    server.demote()
    try:
        for call in (lambda: read_object(backend, 1), lambda: backend.write_objects([row(2)])):
            with pytest.raises(UnavailableError, match="standby"):
                call()
    finally:
        server.promote()

    assert (read_object(backend, 1), read_object(backend, 2)) == (row(1), None)


def test_sessions_wait_for_the_disk_against_their_role(
    server: PostgresqlServer, schema: str, open_at: Open, make_role: Callable[..., str]
) -> None:
    role = make_role(f"CREATE ON DATABASE {server.database}")
    server.execute(f"ALTER ROLE {role} SET synchronous_commit = off")
    backend = open_at(server.url(schema, user=role, password="secret"))
    connection = backend._pool.borrow()
    found = connection.only_row("SHOW synchronous_commit")
    backend._pool.give_back(connection)

    assert found == ("on",)


def test_database_in_another_encoding_is_refused(server: PostgresqlServer, schema: str) -> None:
    server.execute(
        f"CREATE DATABASE latin_{schema} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' LOCALE_PROVIDER libc"
    )
    try:
        with pytest.raises(RefusedError, match=r"encoding is LATIN1.*UTF8"):
            open_backend(parse_url(server.url(database=f"latin_{schema}")))
    finally:
        server.execute(f"DROP DATABASE latin_{schema}")
