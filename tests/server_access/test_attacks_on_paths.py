"""Paths by which somebody of one realm and one catalog reaches for another: encoded, doubled, dotted, in other letters."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from guarded_operations import fill_sales

from guarded_server import SCHEMA, GuardedServer, Guest, held
from headwater.access import Privilege

MARK = "a-secret-of-another"
NAMES = ["other~lake", "acme~second"]


def spellings(prefix: str) -> list[str]:
    """A prefix in every way that a careless reader might take for it, some of which mean it."""
    realm, _, catalog = prefix.partition("~")
    twice = quote(quote(prefix, safe=""), safe="")
    return [
        prefix,
        prefix.replace("~", "%7E"),
        prefix.replace("~", "%7e"),
        prefix.replace("~", "%257E"),
        twice,
        prefix.upper(),
        prefix.title(),
        f"{realm}%2F{catalog}",
        f"{realm}/{catalog}",
        f"{realm}%1F{catalog}",
        f"{realm}%00~{catalog}",
        f"{realm}~{catalog}%00",
        f"{realm}.~{catalog}",
        f"{realm}~{catalog}.",
        f"{realm}~{catalog}%20",
        f"%20{realm}~{catalog}",
        f"+{realm}~{catalog}",
        f"{realm}~~{catalog}",
        f"{realm}~{catalog}~",
        f"{realm}~{catalog}~-",
        f"{realm}~{catalog}~main",
        f"~{realm}~{catalog}",
        f"acme~lake/../{prefix}",
        f"acme~lake/%2e%2e/{prefix}",
        f"acme~lake%2F..%2F{prefix}",
        f"./{prefix}",
        f"/{prefix}",
        f"acme~lake~{prefix}",
        f"acme~lake~..%2F..%2F{prefix}",
        f"acme~lake~main%1F..%1F{prefix}",
        f"acme~..%2F{realm}%2F{catalog}",
        f"acme~lake;{prefix}",
        f"acme~lake,{prefix}",
        f"acme~lake@{prefix}",
        f"acme~lake%0d%0aX-Prefix:%20{prefix}",
        f"{realm}~{catalog}\u0000",
        f"{realm}～{catalog}",
        prefix.replace("a", "а"),
        prefix.replace("e", "é"),
    ]


@pytest.fixture
def guest(server: GuardedServer) -> Guest:
    """Somebody with every right in ``acme/lake``; the other catalogs have a table that nobody else may know of."""
    fill_sales(server)
    for prefix, realm in (("other~lake", "other"), ("acme~second", "acme")):
        root = server.guest("root", realm).at(prefix)
        assert root.post("namespaces", {"namespace": ["sales"], "properties": {"comment": MARK}}).status == 200
        made = root.post("namespaces/sales/tables", {"name": MARK, "schema": SCHEMA})
        assert made.status == 200, made.content
    server.make_principal("guest", held(Privilege.CATALOG_MANAGE_CONTENT), held(Privilege.CATALOG_MANAGE_ACCESS))
    return server.guest("guest")


def raw(text: str) -> str:
    """A path with what is no ASCII percent-encoded, as every client sends it, and nothing else changed."""
    return "".join(each if each.isascii() and each > " " else quote(each) for each in text)


@pytest.mark.parametrize("prefix", NAMES)
def test_prefix_in_any_spelling_opens_no_other_catalog(guest: Guest, prefix: str) -> None:
    for spelling in spellings(prefix):
        for below in ("namespaces", "namespaces/sales", "namespaces/sales/tables", f"namespaces/sales/tables/{MARK}"):
            answer = guest.call("GET", f"/iceberg/v1/{raw(spelling)}/{below}")

            assert answer.status in (400, 401, 404), (spelling, answer.content)
            assert b"metadata-location" not in answer.content and b'"identifiers"' not in answer.content
            assert below.endswith(MARK) or MARK not in answer.content.decode()


@pytest.mark.parametrize("prefix", NAMES)
def test_change_below_any_spelling_changes_no_other_catalog(server: GuardedServer, guest: Guest, prefix: str) -> None:
    for spelling in spellings(prefix):
        answers = [
            guest.call("DELETE", f"/iceberg/v1/{raw(spelling)}/namespaces/sales/tables/{MARK}"),
            guest.call("POST", f"/iceberg/v1/{raw(spelling)}/namespaces", b'{"namespace": ["made"]}'),
        ]
        assert {answer.status for answer in answers} <= {400, 401, 404, 405}, (spelling, [each.content for each in answers])
    root = server.guest("root", prefix.partition("~")[0]).at(prefix)
    assert root.names("namespaces") == ["sales"] and root.names("namespaces/sales/tables") == [MARK]


@pytest.mark.parametrize("warehouse", ["other/lake", "acme/second"])
def test_warehouse_in_any_spelling_opens_no_other_catalog(guest: Guest, warehouse: str) -> None:
    realm, _, catalog = warehouse.partition("/")
    spelled = [
        warehouse,
        warehouse.upper(),
        f"{realm}~{catalog}",
        f"acme/lake/../../{warehouse}",
        f"acme/../{warehouse}",
        f"./{warehouse}",
        f"/{warehouse}",
        f"{warehouse}/",
        f"{realm}//{catalog}",
        f"{realm}\x1f{catalog}",
        f"{warehouse}@main",
        f"{warehouse}\x00",
        f"acme/lake@{warehouse}",
        f"acme/lake@../../{warehouse}",
        f"{warehouse} ",
        f"acme/lake\n{warehouse}",
    ]
    for text in spelled:
        assert guest.config(text).status in (400, 401, 404), text
    assert guest.call("GET", f"/v1/config?warehouse=acme/lake&warehouse={warehouse}").status == 400


@pytest.mark.parametrize("prefix", ["acme%7Elake", "acme%7elake", "acme~lake~-", "acme~lake~main", "acme~%6Cake"])
def test_spelling_that_means_the_own_catalog_opens_it(guest: Guest, prefix: str) -> None:
    assert guest.at(prefix).names("namespaces") == ["sales"]


def test_element_of_a_path_is_one_name_however_it_is_encoded(server: GuardedServer) -> None:
    fill_sales(server)
    root = server.guest("root")
    for name in (["sales/x"], ["sales.x"], ["sales%1Fx"], ["..", "x"], ["SALES"]):
        assert root.post("namespaces", {"namespace": name}).status == 200
    server.make_principal("guest", held(Privilege.NAMESPACE_READ_PROPERTIES, "sales"), held(Privilege.NAMESPACE_LIST, "sales"))
    guest = server.guest("guest")
    others = [
        "sales%2Fx",
        "sales.x",
        "sales%251Fx",
        "..%1Fx",
        "SALES",
        "sales%2e",
        "sales/../SALES",
        "sales%00",
        "Sales",
        "sales%20",
    ]

    assert guest.get("namespaces/sales").status == 200
    assert guest.get("namespaces/sales%1Fvoid").status == 200
    for other in others:
        assert guest.get(f"namespaces/{other}").status in (400, 404), other
