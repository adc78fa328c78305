"""What an answer of the API server means: one of Headwater's errors, in words that name what was asked and never what was sent."""

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
    """The API server did not do it, or did not say. A write without an answer may have happened: look before repeating it.

    code          the HTTP status, 0 when there was no answer
    retry_after   seconds after which the server wants to be asked again, where it said so
    """

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class KubeAnswer:
    """An answer with its request: enough to say what happened."""

    method: str
    path: str
    code: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    sent: Any = None

    def json(self) -> dict[str, Any]:
        """What the server said, or an empty mapping where that is no JSON object."""
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
    """The error that an answer of 400 or above stands for.

    patch         kind of the patch that was sent, where it was one: a JSON patch whose ``test`` failed has lost a race
    """
    message = f"{answer.method} {answer.path}: {_said(answer)}"
    if answer.code == INVALID and patch == "json" and not _names_causes(answer):
        return SwapConflictError(message)
    return kube_error(answer.code, message, retry_after=answer.retry_after)


def kube_error(code: int, message: str, *, retry_after: float | None = None) -> HeadwaterError:
    """The error that an HTTP status of 400 or above stands for, whatever was asked."""
    if code in (NOT_FOUND, GONE):
        return NotFoundError(message)
    if code == CONFLICT:
        return SwapConflictError(message)
    if code in (UNAUTHORIZED, TIMEOUT, TOO_MANY) or code >= 500:
        return ApiUnavailableError(message, code=code, retry_after=retry_after)
    return RefusedError(message)


def _names_causes(answer: KubeAnswer) -> bool:
    """A JSON patch whose test failed is refused with empty details; one that breaks the schema says where."""
    return bool(answer.json().get("details"))


def _said(answer: KubeAnswer) -> str:
    status = answer.json()
    message = status.get("message") if status.get("kind") == "Status" else None
    text = message if isinstance(message, str) else answer.reason  # a proxy's page says nothing that a person could use
    for secret in _secrets(answer.sent):
        text = text.replace(secret, HIDDEN)
    return f"{text[:TEXT_LIMIT]} ({answer.code})"


def _secrets(sent: Any) -> Iterator[str]:
    """Every value of a Secret that was sent, as written and as meant: the server may quote either."""
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
