"""``headwater client-config``: what the user of an engine pastes to reach a catalog that is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import CATALOG_REF, WAREHOUSE, Address, address_argument
from headwater.cli.command_options import FILE
from headwater.console import ParsedType, ResultView, ViewField, prints
from headwater.engines.engine_configs import (
    ANY_WAREHOUSE,
    COMMENTS,
    ENGINE_CONFIGS,
    USUAL_REGION,
    EngineAddress,
    EngineConfig,
    parse_engine,
    parse_s3_endpoint,
    parse_server_url,
    server_url,
    warehouse_of,
)
from headwater.engines.engine_logins import CLIENT_SECRET_VARIABLE, engine_login, login_config, login_notes
from headwater.engines.warehouse_check import check_warehouse
from headwater.errors import RefusedError

T = TypeVar("T")


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
@click.option("--show-secret", is_flag=True, help="Print the secret itself.")
@click.option(
    "--token-url",
    metavar="URL",
    default="",
    help="The token endpoint of an identity provider of your own, for a server that trusts it. Goes with --client-id.",
)
@click.option(
    "--client-id",
    metavar="ID",
    default="",
    help="The client at that provider. --check and --show-secret find its secret in the variable ICEBERG_CLIENT_SECRET.",
)
@click.option(
    "--scope",
    metavar="SCOPE",
    default="",
    help="The scope that engines ask for, such as openid; many providers refuse Iceberg's default, catalog.",
)
@click.option(
    "--s3-endpoint",
    metavar="URL",
    default="",
    type=ParsedType("s3_endpoint", parse_s3_endpoint),
    help="The address of buckets, for engines that do not take it from the server; default is AWS's own.",
)
@click.option("--s3-region", metavar="REGION", default=USUAL_REGION, show_default=True, help="The region of those buckets.")
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
    token_url: str,
    client_id: str,
    scope: str,
    s3_endpoint: str,
    s3_region: str,
) -> None:
    """Print what the user of an engine pastes to reach a catalog that `headwater serve` serves; without ENGINE, list the engines.

    The catalog may be left out where a context names one; where none does, the text has a placeholder for it.

    Opens no store and asks no server: it can be run where there is neither. With --check it asks the server, as the engine will.
    """
    if form is not None and engine is None:
        raise click.UsageError("--form goes with an engine")
    address = address or CATALOG_REF.complete_address(session.defaults)
    warehouse = None if address is None else _or_usage(partial(warehouse_of, address.realm, address.name, address.ref))
    if check and warehouse is None:
        raise click.UsageError("--check goes with an engine and REALM/CATALOG")
    if show_secret and credentials_file is None and not client_id:
        raise click.UsageError("--show-secret goes with --credentials FILE, or with --token-url and --client-id")
    server = url or _or_usage(partial(server_url, session.settings))
    served = EngineAddress(server, warehouse or ANY_WAREHOUSE, s3_endpoint, s3_region)
    if engine is None:
        session.show_all(ENGINE, [config.filled(served) for config in ENGINE_CONFIGS])
        return
    notes: Mapping[str, str] = {}
    make = partial(engine_login, credentials_file, warehouse, token_url=token_url, client_id=client_id, scope=scope)
    login = make() if credentials_file is not None and not client_id + token_url else _or_usage(make)
    if show_secret and login is not None and not login.secret:
        raise click.UsageError(f"--show-secret needs the secret of {client_id}: set the variable {CLIENT_SECRET_VARIABLE}")
    if check:
        check_warehouse(served, login)
    if login is None:
        config = engine.filled(served)
    else:
        config = login_config(engine, served, login, is_shown=show_secret)
        notes = notes if show_secret else login_notes(engine, served, login)
    config = _or_usage(partial(config.in_form, form))
    session.print_result(ENGINE.data(config), lambda: "\n\n".join(config_texts(config, notes)).splitlines())


def _or_usage(make: Callable[[], T]) -> T:
    """What is made; what is refused there was written wrong here."""
    try:
        return make()
    except RefusedError as wrong:
        raise click.UsageError(str(wrong), click.get_current_context()) from wrong


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


def _notes(config: EngineConfig) -> list[str]:
    never = "never run with Headwater: taken from the engine's documentation"
    tried = f"tried with {config.tried} ({config.run})" if config.tried else never
    return [f"{config.title}: {tried}", f"needs: {config.needs}", f"files: {config.storage}"]
