"""What a principal with few grants may do by each operation, what it is told of the rest, and what listings show."""

from __future__ import annotations

from base64 import urlsafe_b64decode

import pytest
from guarded_operations import OPEN, VERSION, GuardedOperation, fill_sales, guarded_operations

from asgi_client import AsgiAnswer
from guarded_server import SCHEMA, GuardedServer, Guest, held, updates
from headwater.access import Privilege
from headwater.catalogs import CatalogGrant, Catalogs
from headwater_server.iceberg_rest import iceberg_table

P = Privilege
ROUTES = sorted(route.name for route in iceberg_table().routes if route.name not in OPEN)
ELSEWHERE = held(P.TABLE_LIST, "elsewhere")
"""A right that opens the catalog, and shows nothing in it."""
LISTS = (P.NAMESPACE_LIST, P.TABLE_LIST, P.VIEW_LIST)


def operation_of(server: GuardedServer, route: str) -> GuardedOperation:
    operations = guarded_operations(*fill_sales(server))
    assert sorted(operations) == ROUTES, "an operation has no entry in the table of needs"
    return operations[route]


def guest_with(server: GuardedServer, *grants: CatalogGrant) -> Guest:
    server.make_principal("guest", *grants)
    return server.guest("guest")


def told(answer: AsgiAnswer, name: str) -> tuple[int, bytes]:
    """Status and body of an answer, without a name."""
    return answer.status, answer.content.replace(name.encode(), b"?")


@pytest.mark.parametrize("route", ROUTES)
def test_operation_passes_with_what_it_needs(server: GuardedServer, route: str) -> None:
    operation = operation_of(server, route)
    answer = operation.ask(guest_with(server, *(need.grant for need in operation.needs)))

    assert answer.status == operation.status, answer.content


@pytest.mark.parametrize("route", ROUTES)
def test_operation_names_the_right_that_is_missing(server: GuardedServer, route: str) -> None:
    operation = operation_of(server, route)
    lists = [held(privilege) for privilege in LISTS]
    guest = guest_with(server, *lists)
    for missing in operation.needs:
        if missing.grant.privilege in LISTS:
            continue  # whoever lacks it sees nothing
        others = [need.grant for need in operation.needs if need is not missing]
        server.grant("guest", *others)
        answer = operation.ask(guest)
        server.revoke("guest", *others)

        assert answer.error == (403, "ForbiddenException"), (missing, answer.content)
        assert f"{missing.grant.privilege} on {missing.on}, which was not granted" in answer.message


@pytest.mark.parametrize("route", ROUTES)
def test_hidden_thing_is_answered_as_a_missing_one(server: GuardedServer, route: str) -> None:
    operation = operation_of(server, route)
    guest = guest_with(server, ELSEWHERE)
    for name, other in operation.hidden:
        hidden, missing = operation.ask(guest), operation.ask(guest, **{name: other})

        assert hidden.status == 404, hidden.content
        assert told(hidden, name) == told(missing, other)
        assert {**hidden.headers, "x-request-id": "", "content-length": ""} == {
            **missing.headers,
            "x-request-id": "",
            "content-length": "",
        }


def test_report_of_a_scan_tells_nothing(server: GuardedServer) -> None:
    fill_sales(server)
    guest = guest_with(server, ELSEWHERE)
    answers = [guest.call("POST", f"namespaces/{path}/metrics", b"{}") for path in ("sales/tables/orders", "no/tables/no")]

    assert {(answer.status, answer.content) for answer in answers} == {(204, b"")}
    assert Guest(server.client).call("POST", "namespaces/sales/tables/orders/metrics", b"{}").status == 401


@pytest.mark.parametrize("address", ["second", "lake@dev", "lake@main~1"])
def test_catalog_without_any_right_is_told_as_a_missing_one(server: GuardedServer, address: str) -> None:
    fill_sales(server)
    rows = server.realms.open_realm("acme")
    Catalogs(rows).open_catalog("lake").create_branch("dev")
    guest = guest_with(server, held(P.TABLE_LIST, "sales", references="main") if "dev" in address else ELSEWHERE)
    if address == "lake@main~1":
        server.revoke("guest", ELSEWHERE)
    name, _, reference = address.partition("@")
    absent = f"{name}@nil" if reference else "absent"
    hidden, missing = guest.config(f"acme/{address}"), guest.config(f"acme/{absent}")

    assert hidden.status == 404
    assert told(hidden, reference or name) == told(missing, absent.removeprefix("lake@"))


def test_table_is_not_told_to_be_unchanged_without_the_right(server: GuardedServer) -> None:
    fill_sales(server)
    tag = server.guest("root").get("namespaces/sales/tables/orders").headers["etag"]
    guest = guest_with(server, held(P.TABLE_READ_PROPERTIES, "sales"))
    path = "namespaces/sales/tables/orders"

    assert guest.call("GET", path, if_none_match=tag).status == 304
    server.revoke("guest", held(P.TABLE_READ_PROPERTIES, "sales"))
    server.grant("guest", held(P.TABLE_LIST, "sales"))
    for known in (tag, "*"):
        answer = guest.call("GET", path, if_none_match=known)
        assert answer.status == 403 and "etag" not in answer.headers


def names_over_pages(guest: Guest, path: str, size: int, **query: str) -> tuple[list[str], list[str]]:
    """The names in a listing, and the tokens of its pages."""
    names: list[str] = []
    tokens: list[str] = []
    token: str | None = ""
    while token is not None:
        answer = guest.get(path, pageSize=str(size), pageToken=token, **query).data
        listed = answer.get("namespaces") or answer.get("identifiers") or []
        assert len(listed) <= size
        names += [each[-1] if isinstance(each, list) else each["name"] for each in listed]
        token = answer["next-page-token"]
        tokens += [] if token is None else [token]
    return names, tokens


def fill_many(server: GuardedServer) -> Guest:
    root = server.guest("root")
    for name in [f"{kind}{number}" for number in range(4) for kind in ("open", "shut")]:
        for namespace in ([name], ["sales", name]):
            root.post("namespaces", {"namespace": namespace})
        root.post("namespaces/sales/tables", {"name": f"{name}-t", "schema": SCHEMA})
        root.post(
            "namespaces/sales/views",
            {"name": f"{name}-v", "schema": SCHEMA, "view-version": VERSION, "properties": {}},
        )
    grants = [
        grant
        for number in range(4)
        for grant in (
            held(P.NAMESPACE_LIST, f"open{number}"),
            held(P.NAMESPACE_LIST, "sales", f"open{number}"),
            held(P.TABLE_LIST, "sales", f"open{number}-t", on="table"),
            held(P.VIEW_LIST, "sales", f"open{number}-v", on="view"),
        )
    ]
    return guest_with(server, *grants)


def shown(ending: str = "") -> list[str]:
    return [f"open{number}{ending}" for number in range(4)]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("namespaces", {}, [*shown(), "sales"]),
        ("namespaces", {"parent": "sales"}, shown()),
        ("namespaces/sales/tables", {}, shown("-t")),
        ("namespaces/sales/views", {}, shown("-v")),
    ],
)
def test_listing_shows_what_may_be_seen_over_pages(
    server: GuardedServer, path: str, query: dict[str, str], expected: list[str], size: int
) -> None:
    guest = fill_many(server)
    names, tokens = names_over_pages(guest, path, size, **query)

    assert names == expected
    opened = b"".join(urlsafe_b64decode(token + "=" * (-len(token) % 4)) for token in tokens)
    assert b"shut" not in opened, "the token of a page names what may not be seen"


def test_namespace_on_the_way_to_something_is_listed(server: GuardedServer) -> None:
    server.make_table("sales", "north", "orders")
    server.make_table("sales", "south", "orders")
    guest = guest_with(server, held(P.TABLE_READ_DATA, "sales", "north", "orders", on="table"))

    assert guest.names("namespaces") == ["sales"]
    assert guest.names("namespaces?parent=sales") == ["north"]
    assert guest.names("namespaces/sales%1Fnorth/tables") == ["orders"]
    assert guest.get("namespaces/sales%1Fsouth/tables").status == 404


def test_namespace_is_not_shown_for_a_right_on_another_branch(server: GuardedServer) -> None:
    table = server.make_table("sales", "orders").data
    lake = Catalogs(server.realms.open_realm("acme")).open_catalog("lake")
    lake.create_branch("dev")
    dev = server.guest("root").at("acme~lake~dev")
    dev.post("namespaces", {"namespace": ["secret"]})
    moved = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": {"namespace": ["secret"], "name": "orders"}}
    assert dev.post("tables/rename", moved).status == 204
    guest = guest_with(
        server,
        content_grant(server, table, P.TABLE_READ_DATA),
        held(P.NAMESPACE_LIST, "elsewhere", references="dev"),
    )

    assert guest.names("namespaces") == ["sales"]
    assert guest.at("acme~lake~dev").names("namespaces") == []


def content_grant(server: GuardedServer, loaded: dict[str, object], privilege: Privilege) -> CatalogGrant:
    """A grant on the content id of a table that was just loaded from ``sales.orders``."""
    catalog = Catalogs(server.realms.open_realm("acme")).open_catalog("lake")
    entry = next(each for each in catalog.entries(None).entries if each.key.elements[-1:] == ("orders",))
    return CatalogGrant(privilege=privilege, on="table", content_id=entry.content_id)


def test_right_by_content_id_follows_a_renamed_table(server: GuardedServer) -> None:
    table = server.make_table("sales", "orders").data
    by_id, by_key = content_grant(server, table, P.TABLE_READ_PROPERTIES), held(P.TABLE_READ_PROPERTIES, "sales")
    server.make_principal("by-key", by_key)
    server.make_principal("by-id", by_id)
    root, key_guest, id_guest = server.guest("root"), server.guest("by-key"), server.guest("by-id")
    root.post("namespaces", {"namespace": ["away"]})
    moved = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": {"namespace": ["away"], "name": "moved"}}
    assert root.post("tables/rename", moved).status == 204

    assert id_guest.get("namespaces/away/tables/moved").status == 200
    assert key_guest.get("namespaces/away/tables/moved").status == 404


def test_table_made_anew_has_the_rights_of_its_key_alone(server: GuardedServer) -> None:
    table = server.make_table("sales", "orders").data
    by_id = content_grant(server, table, P.TABLE_READ_PROPERTIES)
    server.make_principal("by-key", held(P.TABLE_READ_PROPERTIES, "sales", "orders", on="table"))
    server.make_principal("by-id", by_id)
    key_guest, id_guest, path = server.guest("by-key"), server.guest("by-id"), "namespaces/sales/tables/orders"
    assert server.guest("root").delete(path).status == 204
    server.make_table("sales", "orders")

    assert key_guest.get(path).status == 200
    assert id_guest.get(path).status == 404


def test_right_to_drop_by_content_id_drops_under_any_name(server: GuardedServer) -> None:
    table = server.make_table("sales", "orders").data
    guest = guest_with(server, content_grant(server, table, P.TABLE_DROP))
    root = server.guest("root")
    server.make_table("sales", "lines")
    moved = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": {"namespace": ["sales"], "name": "moved"}}
    assert root.post("tables/rename", moved).status == 204

    assert guest.delete("namespaces/sales/tables/lines").status == 404
    assert guest.delete("namespaces/sales/tables/moved").status == 204


def test_view_gives_no_right_on_what_it_reads(server: GuardedServer) -> None:
    fill_sales(server)
    guest = guest_with(server, held(P.VIEW_FULL_METADATA, "sales"))

    assert "sales.orders" in guest.get("namespaces/sales/views/totals").content.decode()
    for path in ("tables/orders", "tables/orders/credentials"):
        assert guest.get(f"namespaces/sales/{path}").status == 404


def test_revoked_grant_holds_no_more_after_five_seconds(server: GuardedServer) -> None:
    server.make_table("sales", "orders")
    granted = held(P.TABLE_READ_PROPERTIES, "sales")
    guest = guest_with(server, granted)
    assert guest.get("namespaces/sales/tables/orders").status == 200
    server.catalog_roles().remove_grants("guest", [granted])
    server.clock.advance(4.9)

    assert guest.get("namespaces/sales/tables/orders").status == 404


def test_commit_is_noted_as_its_principals(server: GuardedServer) -> None:
    table = server.make_table("sales", "orders").data
    guest = guest_with(server, held(P.TABLE_WRITE_PROPERTIES, "sales"))
    assert (
        guest.post("namespaces/sales/tables/orders", updates(table, {"action": "set-properties", "updates": {"a": "1"}})).status
        == 200
    )
    log = Catalogs(server.realms.open_realm("acme")).open_catalog("lake").log(None)

    assert [entry.meta.committer for entry in list(log)[:2]] == ["guest", "root"]
