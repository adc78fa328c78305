"""What one client can make the server remember: nothing that grows with what the client thinks up."""

from __future__ import annotations

from guarded_server import GuardedServer, held
from headwater.access import AccessReader, Privilege, RoleHolder
from headwater.realms import list_principal_roles, read_principal
from headwater_server.lake_sessions import LakeSessions
from headwater_server.realm_directory import RealmDirectory
from headwater_server.warehouse_address import WarehouseAddress

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def test_invented_roles_of_a_scope_are_remembered_once(server: GuardedServer) -> None:
    server.make_principal("alice", *(held(Privilege.TABLE_READ_DATA, f"n{number}") for number in range(50)))
    first = server.token_of("alice")

    for number in range(5):
        scope = f"PRINCIPAL_ROLE:alice PRINCIPAL_ROLE:invented{number}"
        answer = server.ask_token({"grant_type": EXCHANGE, "subject_token": first, "scope": scope})
        assert server.with_token(answer.data["access_token"]).get("namespaces").status == 200

    access = server.application.served.part(RealmDirectory).open_realm("acme").access
    assert access.kept_count == 50
    assert len(server.application.served.part(LakeSessions)._sessions) == 1


def test_rules_of_many_callers_are_kept_within_a_bound(server: GuardedServer) -> None:
    names = [f"person{number}" for number in range(4)]
    for name in names:
        server.make_principal(name, *(held(Privilege.TABLE_READ_DATA, f"n{number}") for number in range(10)))
    reader = AccessReader(server.realms.open_realm("acme"), max_age_seconds=60, rules_limit=25)
    lake = server.catalog().definition

    for name in names:
        holder = RoleHolder(read_principal(server.realms, "acme", name).entity)
        assert len(reader.read_rules(holder, lake).rules) == 10

    assert len(list_principal_roles(server.realms, "acme")) == 5
    assert reader.kept_count == 20


def test_endless_prefixes_are_not_remembered(server: GuardedServer) -> None:
    WarehouseAddress.from_prefix.cache_clear()
    nobody = server.with_token("garbage")

    assert nobody.at("acme~lake~" + "r" * 60_000).get("namespaces").status in (401, 404)
    assert WarehouseAddress.from_prefix.cache_info().currsize == 0
