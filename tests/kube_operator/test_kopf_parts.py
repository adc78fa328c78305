"""What `feeding.py` uses of kopf that kopf does not promise. Who raises its version reads here what has changed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import auth, errors, watching
from kopf._cogs.structs import credentials, references

from headwater_operator import feeding

SIGNATURES: list[tuple[Callable[..., Any], list[str]]] = [
    (credentials.Vault.extended, ["self", "factory", "purpose"]),
    (credentials.Vault.invalidate, ["self", "key", "info", "exc"]),
    (credentials.Vault.close, ["self"]),
    (feeding.kopf_watch, ["settings", "resource", "namespace", "operator_pause_waiter"]),
    (auth.APIContext.__init__, ["self", "info"]),
]


def complaint(what: str) -> str:
    return f"kopf {version('kopf')} has changed {what}: look through operator/headwater_operator/feeding.py before its version is raised"


@pytest.mark.parametrize(("function", "wanted"), SIGNATURES, ids=lambda one: getattr(one, "__qualname__", ""))
def test_kopf_takes_the_arguments_that_the_feed_gives(function: Callable[..., Any], wanted: list[str]) -> None:
    assert list(inspect.signature(function).parameters) == wanted, complaint(f"the arguments of {function.__qualname__}")


def test_kopf_calls_its_watch_by_the_name_that_is_replaced() -> None:
    assert watching.continuous_watch is feeding._heard_watch, complaint("what is called when a watch begins")
    assert "continuous_watch" in watching.infinite_watch.__code__.co_names, complaint("how it begins a watch")


def test_kopf_keeps_the_names_that_the_feed_reads() -> None:
    names = [
        (watching, "Bookmark"),
        (watching.Bookmark, "LISTED"),
        (watching, "WatchingError"),
        (errors.APIError, "status"),
        (errors.APIError, "message"),
        (references.Insights(), "ready_resources"),
        (references.Insights(), "watched_resources"),
        (references.Resource("g", "v", "things", namespaced=True), "plural"),
    ]

    missing = [f"{owner!r}.{name}" for owner, name in names if not hasattr(owner, name)]

    assert not missing, complaint(", ".join(missing))


def test_kopf_keeps_the_open_answers_where_the_check_looks_for_them() -> None:
    used, found = asyncio.run(_contexts())

    assert used is found, complaint("the purpose 'contexts' of Vault.extended")
    assert found.responses == [], complaint("APIContext.responses")


async def _contexts() -> tuple[auth.APIContext, auth.APIContext]:
    """That of a request, and that of `_answered`."""

    @auth.authenticated
    async def request(*, context: auth.APIContext) -> auth.APIContext:
        return context

    vault = credentials.Vault({"login": kopf.ConnectionInfo(server="http://127.0.0.1:1")})
    auth.vault_var.set(vault)
    try:
        used = await request()
        found = [context async for _, _, context in vault.extended(auth.APIContext, "contexts")]
    finally:
        await vault.close()
    return used, found[0]
