"""``headwater client-config``: what the user of an engine pastes to reach a catalog that is served."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from headwater.cli.cli_session import CliSession
from headwater.cli.engine_configs import (
    ANY_WAREHOUSE,
    COMMENTS,
    ENGINE_CONFIGS,
    ConfigForm,
    EngineAddress,
    EngineConfig,
    parse_engine,
    parse_server_url,
    parse_warehouse,
)
from headwater.console import ParsedType, ResultView, ViewField, prints
from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.settings import Settings

_CHECK_SECONDS = 10
_ANSWER_BYTES = 1 << 20


def _forms(config: EngineConfig) -> list[dict[str, Any]]:
    return [{"name": form.name, "file": form.file or None, "text": form.text} for form in config.forms]


ENGINE: ResultView[EngineConfig] = ResultView(
    "engine",
    "engines",
    (
        ViewField("name", "what the command calls it", header="ENGINE"),
        ViewField("needs", "what has to be installed", header="NEEDS"),
        ViewField(
            "tried",
            "the versions that used a server of Headwater; null: none ever did",
            lambda c: c.tried or None,
            header="TRIED",
        ),
        ViewField("storage", "by what it reaches the tables' files"),
        ViewField(
            "forms",
            "ways to write its configuration down, the shortest first",
            _forms,
            inside={
                "[].name": "what `--form` calls it",
                "[].file": "where the text goes; null: it is run",
                "[].text": "what is pasted",
            },
        ),
    ),
)


@click.command(name="client-config")
@click.argument("engine", metavar="[ENGINE]", type=ParsedType("engine", parse_engine), required=False)
@click.argument(
    "warehouse", metavar="[REALM/CATALOG[@REFERENCE]]", type=ParsedType("warehouse", parse_warehouse), required=False
)
@click.option(
    "--url",
    metavar="URL",
    type=ParsedType("url", parse_server_url),
    help="Where engines reach the server; default is the address of the setting HEADWATER_SERVER_LISTEN.",
)
@click.option("--form", metavar="FORM", help="Only this form of the configuration, such as yaml.")
@click.option("--check", is_flag=True, help="Ask the server first whether it has the catalog and the reference.")
@prints(ENGINE)
def client_config_command(
    session: CliSession, /, engine: EngineConfig | None, warehouse: str | None, url: str | None, form: str | None, check: bool
) -> None:
    """Print what the user of an engine pastes to reach a catalog that `headwater serve` serves; without ENGINE, list the engines.

    Opens no store and asks no server: it can be run where there is neither. With --check it asks the server, as the engine will.
    """
    if form is not None and engine is None:
        raise click.UsageError("--form goes with an engine")
    if check and warehouse is None:
        raise click.UsageError("--check goes with an engine and REALM/CATALOG")
    address = EngineAddress(url or _set_url(session.settings), warehouse or ANY_WAREHOUSE)
    if engine is None:
        session.show_all(ENGINE, [config.filled(address) for config in ENGINE_CONFIGS])
        return
    if check:
        check_warehouse(address)
    config = _in_form(engine.filled(address), form)
    session.print_result(ENGINE.data(config), lambda: "\n\n".join(config_texts(config)).splitlines())


def config_texts(config: EngineConfig) -> Iterator[str]:
    """Each form with comments in its own language, so that it can be pasted or redirected whole."""
    for number, form in enumerate(config.forms):
        told = _notes(config) if number == 0 else []
        if form.file or number > 0:
            told = [*told, f"{form.name}: {form.file or 'instead of the above'}"]
        yield "\n".join([*(f"{COMMENTS[form.language]} {line}" for line in told), form.text.rstrip("\n")])


def check_warehouse(address: EngineAddress) -> None:
    """Ask the server for a warehouse as engines do.

    raises        UnavailableError where no server answers, or one that cannot now; NotFoundError for a warehouse that it has not;
                  RefusedError where something else answers
    """
    try:
        with urllib.request.urlopen(address.config_url, timeout=_CHECK_SECONDS) as answer:
            document = json.loads(answer.read(_ANSWER_BYTES))
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise _refused(address, refusal.code, refusal.read(_ANSWER_BYTES)) from refusal
    except (OSError, ValueError) as fault:
        if isinstance(fault, ValueError):
            raise RefusedError(f"{address.uri} answers, and not as a server of Iceberg REST does") from fault
        reason = getattr(fault, "reason", fault)
        raise UnavailableError(
            f"no server answers at {address.url}: {reason}; start one with `headwater serve`, or name another with --url"
        ) from fault
    if not isinstance(document, dict) or "overrides" not in document:
        raise RefusedError(f"{address.uri} answers, and not as a server of Iceberg REST does")


def _refused(address: EngineAddress, status: int, body: bytes) -> HeadwaterError:
    """The error for an answer that is none: the server's own sentence where it sent one."""
    try:
        told = str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return RefusedError(f"{address.uri} answers {status}, and not as a server of Iceberg REST does")
    if status == 404:
        return NotFoundError(f"the server at {address.url} has no {address.warehouse}: {told}")
    kind = UnavailableError if status in (429, 503) else RefusedError
    return kind(f"the server at {address.url} answers {status} for {address.warehouse}: {told}")


def _set_url(settings: Settings) -> str:
    """The URL of a server with these settings; UsageError where they leave its port open."""
    listen = settings.server_listen
    if listen.endswith(":0"):
        raise click.UsageError(f"HEADWATER_SERVER_LISTEN={listen} takes any free port: name the server's address with --url")
    return f"{'https' if settings.server_certificate else 'http'}://{listen}"


def _in_form(config: EngineConfig, name: str | None) -> EngineConfig:
    forms: tuple[ConfigForm, ...] = tuple(form for form in config.forms if name in (None, form.name))
    if not forms:
        known = ", ".join(form.name for form in config.forms)
        raise click.UsageError(f"{config.name} has no form {name!r}: there are {known}")
    return replace(config, forms=forms)


def _notes(config: EngineConfig) -> list[str]:
    tried = f"tried with {config.tried}" if config.tried else "never run with Headwater: taken from the engine's documentation"
    return [f"{config.title}: {tried}", f"needs: {config.needs}", f"files: {config.storage}"]
