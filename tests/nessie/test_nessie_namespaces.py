"""Namespaces at the addresses that version 1 of Nessie's API has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nessie_caller import NessieCaller
from nessie_lakes import fill, put

from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog, Namespace

P = Privilege


def names_in(answer: dict[str, Any]) -> list[str]:
    return [".".join(namespace["elements"]) for namespace in answer["namespaces"]]


def test_namespaces_are_listed_with_their_properties(nessie: NessieCaller, lake: Catalog) -> None:
    filled = fill(lake)
    put(lake, {"later": Namespace()})
    answer = nessie.v1.get("namespaces/main").data

    assert names_in(answer) == ["later", "sales", "sales.eu", "stock"]
    assert answer["namespaces"][1]["properties"] == {"owner": "ann"} and answer["namespaces"][1]["type"] == "NAMESPACE"
    assert names_in(nessie.v1.get("namespaces/main", name="sales").data) == ["sales", "sales.eu"]
    assert names_in(nessie.v1.get("namespaces/main", name="sal").data) == []
    assert names_in(nessie.v1.get("namespaces/main", hash_on_ref=filled).data) == ["sales", "sales.eu", "stock"]


def test_namespace_is_read_by_its_name(nessie: NessieCaller, lake: Catalog) -> None:
    fill(lake)
    namespace = nessie.v1.get("namespaces/namespace/main/sales").data

    assert (namespace["type"], namespace["elements"], namespace["properties"]) == ("NAMESPACE", ["sales"], {"owner": "ann"})
    for name in ("nothing", "sales.orders"):
        assert nessie.v1.get(f"namespaces/namespace/main/{name}").error == (404, "NAMESPACE_NOT_FOUND")


def test_namespaces_of_an_empty_branch(nessie: NessieCaller) -> None:
    assert nessie.v1.get("namespaces/main").data == {"namespaces": []}
    assert nessie.v1.get("namespaces/nothing").error == (404, "REFERENCE_NOT_FOUND")


def test_namespaces_are_shown_as_far_as_they_may_be_read(
    guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]
) -> None:
    fill(guarded.catalog())
    guarded.make_principal("guest", held(P.TABLE_LIST, "sales", "eu"))
    guest = caller_of("guest").v1
    answer = guest.get("namespaces/main").data

    assert names_in(answer) == ["sales", "sales.eu"] and "properties" not in answer["namespaces"][0]
    assert guest.get("namespaces/namespace/main/stock").error == (404, "NAMESPACE_NOT_FOUND")
