"""What the user of an engine writes down to reach a catalog that a server serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from headwater.api.store_session import StoreSession
from headwater.engines.engine_configs import (
    ANY_WAREHOUSE,
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
from headwater.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFormInfo:
    """One way to write the configuration of an engine down.

    language      of the text, as Markdown names it
    file          where the text goes; None: it is run
    before        what to do before it is used, such as setting a variable; None: nothing
    """

    name: str
    language: str
    text: str
    file: str | None
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """An engine, and how it is configured for a catalog that a server serves.

    needs         what has to be installed
    tried         the versions that used a server of Headwater; None: none ever did
    storage       by what it reaches the tables' files
    forms         ways to write its configuration down, the shortest first
    """

    name: str
    title: str
    needs: str
    tried: str | None
    storage: str
    forms: tuple[ConfigFormInfo, ...]

    @classmethod
    def of(cls, config: EngineConfig, notes: Mapping[str, str] = MappingProxyType({})) -> EngineInfo:
        """The values of an engine, with what goes before each form, by its name."""
        return cls(
            name=config.name,
            title=config.title,
            needs=config.needs,
            tried=config.tried or None,
            storage=config.storage,
            forms=tuple(
                ConfigFormInfo(
                    name=form.name,
                    language=form.language,
                    text=form.text,
                    file=form.file or None,
                    before=notes.get(form.name),
                )
                for form in config.forms
            ),
        )


class ClientConfigs:
    """What a catalog's object tells the users of engines."""

    _session: StoreSession
    realm: str
    name: str

    def client_config(
        self,
        engine: str,
        *,
        ref: str | None = None,
        url: str | None = None,
        form: str | None = None,
        credentials: str | Path | None = None,
        show_secret: bool = False,
        check: bool = False,
        token_url: str = "",
        client_id: str = "",
        scope: str = "",
        s3_endpoint: str = "",
        s3_region: str = USUAL_REGION,
    ) -> EngineInfo:
        """What the user of an engine writes down to reach the catalog through `headwater serve`. Reads nothing from the store.

        engine        such as ``spark``, see ``Connection.engines``
        ref           the branch or tag that the engine is to see; None: the default branch
        url           where engines reach the server; None: the address of the setting HEADWATER_SERVER_LISTEN
        form          only this form, such as ``yaml``; None: all
        credentials   the file with the credentials of a principal, for a server that asks who calls: forms name where the secret is
        show_secret   put the secret itself into the forms
        token_url     the token endpoint of an identity provider of your own, with ``client_id``; ``check`` and ``show_secret`` find the
                      client's secret in the variable ICEBERG_CLIENT_SECRET
        scope         what engines ask for, such as ``openid``; empty: what each asks for by itself
        s3_endpoint   the address of buckets, for engines that do not take it from the server; empty: AWS's own
        s3_region     the region of those buckets
        check         ask the server first whether it has the catalog and the branch or tag
        raises        RefusedError for an engine or form that is not known; of a check, NotFoundError and UnavailableError, too
        """
        if show_secret and credentials is None and not client_id:
            raise RefusedError("show_secret goes with credentials: name their file, or a token endpoint and a client id")
        config, warehouse = parse_engine(engine), warehouse_of(self.realm, self.name, ref)
        server = _server(self._session.store.settings, url)
        address = EngineAddress(server, warehouse, parse_s3_endpoint(s3_endpoint), s3_region)
        file = None if credentials is None else Path(credentials)
        login = engine_login(file, warehouse, token_url=token_url, client_id=client_id, scope=scope)
        if show_secret and login is not None and not login.secret:
            raise RefusedError(f"show_secret needs the secret of {client_id}: set the variable {CLIENT_SECRET_VARIABLE}")
        if check:
            check_warehouse(address, login)
        if login is None:
            return EngineInfo.of(config.filled(address).in_form(form))
        notes = {} if show_secret else login_notes(config, address, login)
        return EngineInfo.of(login_config(config, address, login, is_shown=show_secret).in_form(form), notes)


def list_engines(settings: Settings, url: str | None) -> list[EngineInfo]:
    """All engines that are known, with a placeholder for the catalog."""
    address = EngineAddress(_server(settings, url), ANY_WAREHOUSE)
    return [EngineInfo.of(config.filled(address)) for config in ENGINE_CONFIGS]


def _server(settings: Settings, url: str | None) -> str:
    return server_url(settings) if url is None else parse_server_url(url)
