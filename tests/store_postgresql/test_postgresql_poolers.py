"""A pooler keeps a session for each of its clients, or is refused when a store is opened."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.errors import RefusedError
from headwater.store import open_backend
from headwater.store.backends.postgresql import PostgresqlBackend
from headwater.store.urls import parse_url
from servers.pgbouncer import PgBouncer, find_pgbouncer
from servers.postgresql import PostgresqlServer
from specimens import read_object, row

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        find_pgbouncer() is None, reason="PgBouncer is missing: scripts/setup.sh postgresql, or the Debian package pgbouncer"
    ),
]


@pytest.mark.parametrize("settings", [{}, {"default_pool_size": 1}, {"server_round_robin": 1}], ids=["many", "one", "in turn"])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_pooler_that_shares_sessions_is_refused(
    server: PostgresqlServer, schema: str, mode: str, settings: dict[str, int]
) -> None:
    with PgBouncer(server, mode, **settings) as pooler, pytest.raises(RefusedError, match="set pool_mode=session") as refused:
        open_backend(parse_url(server.url(schema, port=pooler.port)))

    assert server.password not in str(refused.value)
    assert server.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (schema,)) == [(0,)]


@pytest.mark.parametrize("settings", [{}, {"default_pool_size": 1}], ids=["many", "one"])
def test_pooler_that_keeps_sessions_apart_works(
    server: PostgresqlServer, schema: str, open_at: Callable[[str], PostgresqlBackend], settings: dict[str, int]
) -> None:
    with PgBouncer(server, "session", **settings) as pooler:
        backend = open_at(server.url(schema, port=pooler.port, connect_timeout="2s"))
        backend.write_objects([row(1)])

        assert read_object(backend, 1) == row(1)
        backend.close()
