"""Errors of the API server as errors of Headwater, in words that name the request and never what was sent."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.errors import HeadwaterError, NotFoundError, RefusedError, SwapConflictError, UnavailableError

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TIMEOUT, CONFLICT, GONE, INVALID, TOO_MANY = 401, 403, 404, 408, 409, 410, 422, 429
HIDDEN = "(hidden)"
TEXT_LIMIT = 500


class ApiUnavailableError(UnavailableError):
    """The API server failed or did not answer. A write without an answer may have happened: read before repeating it.

    code          the HTTP status, 0 when there was no answer
    retry_after   seconds after which to retry, where the server said so
    """

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class KubeAnswer:
    """An answer with its request, as far as error messages need it."""

    method: str
    path: str
    code: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    sent: Any = None

    def json(self) -> dict[str, Any]:
        """The JSON object of the body, or an empty mapping if it is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def retry_after(self) -> float | None:
        details = self.json().get("details")
        said = self.headers.get("Retry-After") or (details.get("retryAfterSeconds") if isinstance(details, dict) else None)
        try:
            return None if said is None else max(float(said), 0.0)
        except (TypeError, ValueError):
            return None  # a date: allowed by HTTP, never sent by an API server


def kube_failure(answer: KubeAnswer, *, patch: str | None = None) -> HeadwaterError:
    """The error for an answer with a status of 400 or above.

    patch         kind of the patch that was sent, where it was one: a JSON patch whose ``test`` failed has lost a race
    """
    message = f"{answer.method} {answer.path}: {_said(answer)}"
    if answer.code == INVALID and patch == "json" and not _names_causes(answer):
        return SwapConflictError(message)
    return kube_error(answer.code, message, retry_after=answer.retry_after)


def kube_error(code: int, message: str, *, retry_after: float | None = None) -> HeadwaterError:
    """The error for an HTTP status of 400 or above, whatever was requested."""
    if code in (NOT_FOUND, GONE):
        return NotFoundError(message)
    if code == CONFLICT:
        return SwapConflictError(message)
    if code in (UNAUTHORIZED, TIMEOUT, TOO_MANY) or code >= 500:
        return ApiUnavailableError(message, code=code, retry_after=retry_after)
    return RefusedError(message)


def _names_causes(answer: KubeAnswer) -> bool:
    """Whether the answer names causes: a breach of the schema does, and a JSON patch whose test failed has empty details."""
    return bool(answer.json().get("details"))


def _said(answer: KubeAnswer) -> str:
    status = answer.json()
    message = status.get("message") if status.get("kind") == "Status" else None
    text = message if isinstance(message, str) else answer.reason  # a proxy's page tells a person nothing
    for secret in _secrets(answer.sent):
        text = text.replace(secret, HIDDEN)
    return f"{text[:TEXT_LIMIT]} ({answer.code})"


def _secrets(sent: Any) -> Iterator[str]:
    """Every value of a Secret that was sent, encoded and decoded: the server may quote either."""
    bodies = [sent] if isinstance(sent, dict) else [entry.get("value") for entry in sent or () if isinstance(entry, dict)]
    for body in bodies:
        if not isinstance(body, dict):
            continue
        for name in ("data", "stringData"):
            values = body.get(name)
            for value in values.values() if isinstance(values, dict) else ():
                yield from _spellings(value)


def _spellings(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            yield base64.b64decode(value, validate=True).decode() or value
        yield value
