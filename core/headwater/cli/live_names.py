"""Names that a shell offers while a command is typed: realms, catalogs, branches and tags, tasks; those that the store has now.

A shell waits for them, so they are there soon or not at all, and whatever goes wrong is silent.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, suppress
from typing import Protocol

import click
from click.shell_completion import CompletionItem

from headwater.catalogs import Catalog, Catalogs
from headwater.cli.command_address import SCOPE_REF, Address, AddressForm
from headwater.cli.named_contexts import CallDefaults
from headwater.errors import HeadwaterError
from headwater.realms import RealmRegistry
from headwater.store import Store, id_text
from headwater.tasks import TaskQueue

WAIT_SECONDS = 1.0
_MOST_REALMS = 20
"""Realms whose catalogs are offered before a realm is typed."""
_MOST_TASKS = 50


class NamingSession(Protocol):
    """What completion needs to know about a call of the command line."""

    @property
    def defaults(self) -> CallDefaults: ...

    def open_store(self) -> Store: ...


def read_names(session: NamingSession, read: Callable[[Store], Iterable[str]]) -> list[str]:
    """What ``read`` finds in the store; nothing where that fails or takes longer than ``WAIT_SECONDS``. Creates no store."""
    names: list[str] = []

    def look() -> None:
        with suppress(Exception), session.open_store() as store:
            names.extend(read(store))

    with redirect_stderr(io.StringIO()):
        thread = threading.Thread(target=look, name="names", daemon=True)
        thread.start()
        thread.join(WAIT_SECONDS)
    return [] if thread.is_alive() else names


def complete_realms(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The realms that an id begins."""
    return _items(read_names(ctx.obj, _realms), incomplete)


def complete_tasks(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest tasks, each with its kind, realm and state for shells that show it."""

    def read(store: Store) -> Iterable[str]:
        rows = sorted(TaskQueue(store).list_tasks(), key=lambda row: row.id, reverse=True)
        return [f"{id_text(row.id)} {row.value} {row.value.state}" for row in rows[:_MOST_TASKS]]

    words = (name.partition(" ") for name in read_names(ctx.obj, read))
    return [CompletionItem(word, help=told) for word, _, told in words if word.startswith(incomplete)]


def complete_refs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The branches and tags of the catalog that the command names before, or leaves out."""
    where = _address(ctx)
    return _items(read_names(ctx.obj, lambda store: _refs(store, where.realm, where.name)), incomplete)


def _address(ctx: click.Context) -> Address:
    address = ctx.params.get("address")
    if isinstance(address, Address):
        return address
    with suppress(HeadwaterError):
        # where the value of an option is being typed, click leaves all arguments unparsed
        return SCOPE_REF.parse_address(ctx.args[0] if ctx.args and "/" in ctx.args[0] else "@", ctx.obj.defaults)
    return Address("")


def address_items(session: NamingSession, form: AddressForm, incomplete: str) -> list[CompletionItem]:
    """The addresses of a form that a text begins."""
    place, at, _ = incomplete.partition("@")
    realm, slash, name = place.partition("/")
    said = session.defaults.context

    def read(store: Store) -> Iterable[str]:
        if at and form.takes_ref:
            refs = _refs(store, realm or said.realm, name or ("" if place else said.catalog))
            return [f"{place}@{ref}" for ref in refs]
        if slash and form.noun:
            return [f"{realm}/{each}" for each in _catalogs(store, realm or said.realm)]
        realms = [each for each in _realms(store) if each.startswith(realm)]
        if not form.noun:
            return realms
        catalogs = [f"{each}/{catalog}" for each in realms[:_MOST_REALMS] for catalog in _catalogs(store, each)]
        return catalogs if form.needs_name else [*realms, *catalogs]

    return _items(read_names(session, read), incomplete)


def _items(names: Sequence[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _realms(store: Store) -> list[str]:
    return [realm.id for realm in RealmRegistry(store).list_realms()]


def _catalogs(store: Store, realm: str) -> list[str]:
    with suppress(Exception):  # one of several realms may be closed, or going away
        return [definition.name for definition in Catalogs(RealmRegistry(store).open_realm(realm)).list_catalogs()]
    return []


def _refs(store: Store, realm: str, catalog: str) -> list[str]:
    opened = Catalog.open(RealmRegistry(store).open_realm(realm), catalog)
    return [named.name for named in (*opened.branches(), *opened.tags())]
