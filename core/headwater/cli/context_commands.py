"""``headwater context``: named sets of what commands may leave out, such as the store, the realm and the catalog."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from headwater.cli.cli_session import CliSession, shown_store
from headwater.cli.command_address import CONTEXT_SCOPE, Address, address_argument
from headwater.cli.named_contexts import ContextFile, NamedContext, context_path
from headwater.console import ResultView, ViewField, prints
from headwater.errors import RefusedError
from headwater.store.urls import parse_url

_RELATIVE_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A context, and whether it is in use."""

    context: NamedContext
    is_current: bool


def _store(row: ContextRow) -> str | None:
    return shown_store(row.context.store) if row.context.store else None


def _said(name: str) -> Any:
    return lambda row: getattr(row.context, name) or None


CONTEXT: ResultView[ContextRow] = ResultView(
    "context",
    "contexts",
    (
        ViewField("name", "what `headwater context use` and `--context` call it", "context.name", "CONTEXT"),
        ViewField("inUse", "whether calls that name no context use it", "is_current", "IN USE"),
        ViewField("store", "URL of the store, without its password; null: not said", _store, "STORE"),
        ViewField("realm", "the realm of addresses that leave it out; null: not said", _said("realm"), "REALM"),
        ViewField("catalog", "the catalog of addresses that leave it out; null: not said", _said("catalog"), "CATALOG"),
        ViewField("ref", "the branch, tag or commit of such addresses; null: the default branch", _said("ref"), "REF"),
        ViewField("author", "the author of commits; null: the user", _said("author")),
        ViewField("output", "how results are printed; null: as a table", _said("output")),
    ),
)


@dataclass(frozen=True, slots=True)
class DefaultRow:
    """One thing that calls may leave out: what it is now, and who says so."""

    name: str
    value: str
    origin: str


DEFAULT: ResultView[DefaultRow] = ResultView(
    "default of calls",
    "defaults",
    (
        ViewField("name", "store, realm, catalog, ref, author or output", header="NAME"),
        ViewField("value", "what counts where the command line says nothing", header="VALUE"),
        ViewField("origin", "the variable or the context that says it", header="SAID BY"),
    ),
)

context_group = click.Group(
    "context", help="List, choose and change what commands may leave out: store, realm, catalog and more."
)
_name_argument = click.argument("name", metavar="NAME")


@context_group.command(name="list")
@prints(CONTEXT, many=True)
def list_contexts_command(session: CliSession) -> None:
    """List the contexts."""
    file = _load()
    session.show_all(CONTEXT, [_row(file, name) for name in sorted(file.contexts)])


@context_group.command(name="show")
@click.argument("name", metavar="[NAME]", required=False)
@prints(CONTEXT)
def show_context_command(session: CliSession, name: str | None) -> None:
    """Show a context, or what counts now.

    Without NAME it lists what calls may leave out, with the variable or the context that says it. Passwords are not shown.
    """
    if name is not None:
        file = _load()
        file.read_context(name)
        session.show(CONTEXT, _row(file, name))
        return
    said, origins = session.defaults.context.said(), session.defaults.origins
    session.show_all(DEFAULT, [DefaultRow(each, _shown(each, value), origins[each]) for each, value in said.items()])


@context_group.command(name="set")
@_name_argument
@address_argument(CONTEXT_SCOPE, required=False)
@click.option("--author", metavar="NAME", help="The author of commits.")
@prints(CONTEXT)
def set_context_command(session: CliSession, name: str, address: Address | None, author: str | None) -> None:
    """Create or change a context. What is not given stays as it is.

    The options --store and -o are kept in it. The address replaces realm, catalog and reference together. The first context is in use at
    once.
    """
    if not name.strip() or name != name.strip():
        raise RefusedError(f"{name!r} is no name of a context: it is empty or has spaces around it")
    file = _load()
    before = file.contexts.get(name, NamedContext(name))
    changes: dict[str, str] = {}
    if address is not None:
        changes |= {"realm": address.realm, "catalog": address.name, "ref": address.ref or ""}
    if session.store_url is not None:
        changes["store"] = _absolute(session.store_url)
    if author is not None:
        changes["author"] = author
    if session.is_given("output"):
        changes["output"] = session.output
    after = replace(before, **changes)
    file = replace(file, contexts={**file.contexts, name: after}, current=file.current if file.contexts else name)
    file.save()
    session.show(CONTEXT, _row(file, name))


@context_group.command(name="use")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--none", "is_none", is_flag=True, help="Use no context.")
@click.pass_obj
def use_context_command(session: CliSession, name: str | None, is_none: bool) -> None:
    """Use a context in all calls that name no other one, or none of them."""
    if is_none == (name is not None):
        raise click.UsageError("name a context, or give --none", click.get_current_context())
    file = _load()
    current = "" if name is None else file.read_context(name).name
    replace(file, current=current).save()
    session.say(f"context {current} is in use" if current else "no context is in use")
    if os.environ.get("HEADWATER_CONTEXT"):
        session.warn(f"HEADWATER_CONTEXT={os.environ['HEADWATER_CONTEXT']} is set, and stands before it")


@context_group.command(name="unset")
@_name_argument
@click.argument("what", metavar="[FIELD]...", nargs=-1, type=click.Choice(NamedContext.names()))
@click.pass_obj
def unset_context_command(session: CliSession, name: str, what: tuple[str, ...]) -> None:
    """Remove a context, or only what it says of each FIELD: store, realm, catalog, ref, author or output."""
    file = _load()
    context = file.read_context(name)
    if what:
        contexts: Mapping[str, NamedContext] = {**file.contexts, name: replace(context, **dict.fromkeys(what, ""))}
        replace(file, contexts=contexts).save()
        session.say(f"context {name} says nothing of {', '.join(what)} any more")
        return
    left = {each: kept for each, kept in file.contexts.items() if each != name}
    replace(file, contexts=left, current="" if file.current == name else file.current).save()
    session.say(f"context {name} is removed" + ("; no context is in use" if file.current == name else ""))


def _load() -> ContextFile:
    return ContextFile.read_file(context_path(os.environ))


def _row(file: ContextFile, name: str) -> ContextRow:
    return ContextRow(file.contexts[name], file.current == name)


def _shown(name: str, value: str) -> str:
    return shown_store(value) if name == "store" else value


def _absolute(url: str) -> str:
    """The URL of a store, checked: a file is named from the root of the file system, for calls come from any folder."""
    parse_url(url)
    file = url.removeprefix(_RELATIVE_SQLITE)
    if url == file or file.startswith("/"):
        return url
    path, query, options = file.partition("?")
    return f"{_RELATIVE_SQLITE}{Path(path).absolute()}{query}{options}"
