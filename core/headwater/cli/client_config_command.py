"""``headwater client-config``: what the user of an engine pastes to reach a catalog that is served."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import CATALOG_REF, WAREHOUSE, Address, address_argument
from headwater.cli.command_options import FILE
from headwater.cli.engine_configs import (
    ANY_WAREHOUSE,
    COMMENTS,
    ENGINE_CONFIGS,
    ConfigForm,
    EngineAddress,
    EngineConfig,
    parse_engine,
    parse_server_url,
    warehouse_of,
)
from headwater.cli.engine_logins import EngineLogin, login_config, login_notes, read_login
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
@address_argument(WAREHOUSE, required=False)
@click.option(
    "--url",
    metavar="URL",
    type=ParsedType("url", parse_server_url),
    help="Where engines reach the server; default is the address of the setting HEADWATER_SERVER_LISTEN.",
)
@click.option("--form", metavar="FORM", help="Only this form of the configuration, such as yaml.")
@click.option("--check", is_flag=True, help="Ask the server first whether it has the catalog and the reference.")
@click.option(
    "--credentials",
    "credentials_file",
    metavar="FILE",
    type=FILE,
    help="The credentials of a principal, for a server that asks who calls. What is printed names where the secret is.",
)
@click.option("--show-secret", is_flag=True, help="Print the secret of --credentials itself.")
@prints(ENGINE)
def client_config_command(
    session: CliSession,
    /,
    engine: EngineConfig | None,
    address: Address | None,
    credentials_file: Path | None,
    *,
    url: str | None,
    form: str | None,
    check: bool,
    show_secret: bool,
) -> None:
    """Print what the user of an engine pastes to reach a catalog that `headwater serve` serves; without ENGINE, list the engines.

    The catalog may be left out where a context names one; where none does, the text has a placeholder for it.

    Opens no store and asks no server: it can be run where there is neither. With --check it asks the server, as the engine will.
    """
    if form is not None and engine is None:
        raise click.UsageError("--form goes with an engine")
    address = address or CATALOG_REF.complete_address(session.defaults)
    warehouse = None if address is None else _warehouse(address)
    if check and warehouse is None:
        raise click.UsageError("--check goes with an engine and REALM/CATALOG")
    if show_secret and credentials_file is None:
        raise click.UsageError("--show-secret goes with --credentials FILE")
    served = EngineAddress(url or _set_url(session.settings), warehouse or ANY_WAREHOUSE)
    if engine is None:
        session.show_all(ENGINE, [config.filled(served) for config in ENGINE_CONFIGS])
        return
    notes: Mapping[str, str] = {}
    login = None if credentials_file is None else _login_for(credentials_file, warehouse)
    if check:
        check_warehouse(served, login)
    if login is None:
        config = engine.filled(served)
    else:
        config = login_config(engine, served, login, is_shown=show_secret)
        notes = notes if show_secret else login_notes(engine, served, login)
    config = _in_form(config, form)
    session.print_result(ENGINE.data(config), lambda: "\n\n".join(config_texts(config, notes)).splitlines())


def _warehouse(address: Address) -> str:
    try:
        return warehouse_of(address)
    except RefusedError as wrong:
        raise click.UsageError(str(wrong), click.get_current_context()) from wrong


def _login_for(file: Path, warehouse: str | None) -> EngineLogin:
    """The credentials in a file; raises RefusedError where they are of another realm than the warehouse."""
    login = read_login(file)
    realm = warehouse and warehouse.partition("/")[0]
    if realm and realm != login.realm:
        raise RefusedError(f"{file} has credentials of realm {login.realm!r}, and {warehouse} is in realm {realm!r}")
    return login


def config_texts(config: EngineConfig, notes: Mapping[str, str]) -> Iterator[str]:
    """Each form with comments in its own language, so that it can be pasted or redirected whole.

    notes         what to do before a form is used, by the names of forms
    """
    for number, form in enumerate(config.forms):
        told = _notes(config) if number == 0 else []
        if form.file or number > 0:
            told = [*told, f"{form.name}: {form.file or 'instead of the above'}"]
        told += [notes[form.name]] if form.name in notes else []
        yield "\n".join([*(f"{COMMENTS[form.language]} {line}" for line in told), form.text.rstrip("\n")])


def check_warehouse(address: EngineAddress, login: EngineLogin | None = None) -> None:
    """Ask the server for a warehouse as engines do, with a token for credentials if there are some.

    raises        UnavailableError where no server answers, or one that cannot now; NotFoundError for a warehouse that it has not;
                  RefusedError where something else answers, or credentials are wrong or missing
    """
    headers = {} if login is None else {"Authorization": f"Bearer {_token(address, login)}"}
    document = _answer(address, urllib.request.Request(address.config_url, headers=headers))
    if "overrides" not in document:
        raise _not_rest(address)


def _token(address: EngineAddress, login: EngineLogin) -> str:
    secret = login.credentials.client_secret
    fields = {"grant_type": "client_credentials", "client_id": login.client_id, "client_secret": secret, "scope": "catalog"}
    document = _answer(address, urllib.request.Request(address.token_uri, urllib.parse.urlencode(fields).encode()))
    try:
        return str(document["access_token"])
    except KeyError:
        raise _not_rest(address) from None


def _answer(address: EngineAddress, request: urllib.request.Request) -> dict[str, Any]:
    """The object that the server answers a request with."""
    try:
        with urllib.request.urlopen(request, timeout=_CHECK_SECONDS) as answer:
            document = json.loads(answer.read(_ANSWER_BYTES))
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise _refused(address, refusal.code, refusal.read(_ANSWER_BYTES)) from refusal
    except (OSError, ValueError) as fault:
        if isinstance(fault, ValueError):
            raise _not_rest(address) from fault
        reason = getattr(fault, "reason", fault)
        raise UnavailableError(
            f"no server answers at {address.url}: {reason}; start one with `headwater serve`, or name another with --url"
        ) from fault
    if not isinstance(document, dict):
        raise _not_rest(address)
    return document


def _not_rest(address: EngineAddress) -> RefusedError:
    return RefusedError(f"{address.uri} answers, and not as a server of Iceberg REST does")


def _refused(address: EngineAddress, status: int, body: bytes) -> HeadwaterError:
    """The error for an answer that is none: the server's own sentence where it sent one, in the words of Iceberg or of OAuth."""
    try:
        document = json.loads(body)
        error = document["error"]
        told = str(document["error_description"] if isinstance(error, str) else error["message"])
    except (ValueError, LookupError, TypeError):
        return RefusedError(f"{address.uri} answers {status}, and not as a server of Iceberg REST does")
    if status == 404:
        return NotFoundError(f"the server at {address.url} has no {address.warehouse}: {told}")
    if status == 401:
        told += "; name a file with credentials of a principal with --credentials"
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
