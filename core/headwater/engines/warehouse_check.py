"""Whether a server has a warehouse: asked as engines ask."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from headwater.engines.engine_configs import EngineAddress
from headwater.engines.engine_logins import CLIENT_SECRET_VARIABLE, EngineLogin
from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError

_CHECK_SECONDS = 10
_ANSWER_BYTES = 1 << 20
_SHOWN = 300


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
    if not login.secret:
        raise RefusedError(
            f"a check as {login.client_id!r} needs its secret: set the variable {CLIENT_SECRET_VARIABLE}, or leave the check out"
        )
    fields = {"grant_type": "client_credentials", "client_id": login.client_id, "client_secret": login.secret}
    if login.token_url:
        return _provider_token(login.token_url, fields | ({"scope": login.scope} if login.scope else {}))
    fields["scope"] = login.scope or "catalog"
    document = _answer(address, urllib.request.Request(address.token_uri, urllib.parse.urlencode(fields).encode()))
    try:
        return str(document["access_token"])
    except KeyError:
        raise _not_rest(address) from None


def _provider_token(url: str, fields: Mapping[str, str]) -> str:
    """The token that an identity provider gives a client."""
    request = urllib.request.Request(url, urllib.parse.urlencode(fields).encode())
    try:
        with urllib.request.urlopen(request, timeout=_CHECK_SECONDS) as answer:
            return str(json.loads(answer.read(_ANSWER_BYTES))["access_token"])
    except urllib.error.HTTPError as refusal:
        with refusal:
            reason = refusal.read(_ANSWER_BYTES).decode(errors="replace")[:_SHOWN]
        raise RefusedError(
            f"{url} responds {refusal.code} to client {fields['client_id']!r}: {reason}; check its secret and --scope"
        ) from refusal
    except OSError as fault:
        raise UnavailableError(f"{url} cannot be reached: {getattr(fault, 'reason', fault)}") from fault
    except (ValueError, LookupError, TypeError) as fault:
        raise RefusedError(f"{url} is not a token endpoint of OAuth2: check --token-url") from fault


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
