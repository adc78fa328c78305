"""What an error becomes for a client: status, type and text. One table for all protocols, in which each may say what it means by its own.

A client acts on the status (seen with pyiceberg and with Iceberg's Java client):

409           it lost a race: it reads the table again, and tries again
503           certainly nothing happened; with ``Retry-After`` even a POST is sent again
500           nobody knows whether it happened: the client keeps its files and gives up. So nothing that certainly did not happen is a 500
401           nobody has proved who calls: the client logs in again, and sends the request once more
429           the server has done nothing yet: the request is sent again, also a POST
other 4xx     final. Iceberg's Java client deletes the manifests that it wrote, so nothing that may have happened is ever one of these
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from headwater.access import ForbiddenError
from headwater.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.redaction import without_logins
from headwater_server.caller import MissingTokenError, NotProvenError
from headwater_server.route_table import ErrorMeaning

CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="headwater"'}
"""For a request without a token."""
TOKEN_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="headwater", error="invalid_token"'}
"""For a token that proves nothing (RFC 6750, section 3.1): clients that refresh tokens look for it."""
RETRY_AFTER: Final = {"Retry-After": "1"}


class ProtocolError(RefusedError):
    """A request that HTTP itself settles, such as one for a path that is not there.

    is_closing    the connection cannot be used any more: part of the request was not read, or its end is not known
    """

    def __init__(
        self, message: str, *, status: int = 400, type_: str = "BadRequestException", is_closing: bool = False, **headers: str
    ) -> None:
        super().__init__(message)
        self.meaning = ErrorMeaning(status, type_)
        self.is_closing = is_closing
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class OverloadedError(UnavailableError):
    """The server has more to do than it takes on. Nothing was done for this request yet."""


class DrainingError(UnavailableError):
    """The server is about to stop, and begins no change any more."""


_MEANINGS: Final[Mapping[type[BaseException], ErrorMeaning]] = MappingProxyType(
    {
        OverloadedError: ErrorMeaning(429, "TooManyRequestsException"),
        UnknownOutcomeError: ErrorMeaning(500, "CommitStateUnknownException"),
        UnavailableError: ErrorMeaning(503, "ServiceUnavailableException"),
        NotProvenError: ErrorMeaning(401, "NotAuthorizedException"),
        ForbiddenError: ErrorMeaning(403, "ForbiddenException"),
        NotFoundError: ErrorMeaning(404, "NotFoundException"),
        ConflictError: ErrorMeaning(409, "CommitFailedException"),
        SwapConflictError: ErrorMeaning(409, "CommitFailedException"),
        CorruptionError: ErrorMeaning(500, "UnreadableDataException"),
        RefusedError: ErrorMeaning(400, "BadRequestException"),
        BaseException: ErrorMeaning(500, "InternalServerError"),
    }
)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An answer to a request that did not succeed."""

    meaning: ErrorMeaning
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    is_closing: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """An object ``error`` as the Iceberg REST specification has it, never with a stack."""
        return {"error": {"message": self.message, "type": self.meaning.type, "code": self.meaning.status}}

    @property
    def content(self) -> bytes:
        return json.dumps(self.body).encode()


def error_answer(
    error: BaseException, *, meanings: Mapping[type[HeadwaterError], ErrorMeaning] | None = None, request_id: str = ""
) -> ErrorAnswer:
    """The answer to an error.

    meanings      what a protocol means by its own kinds of errors; the nearest class of the error counts
    request_id    what the log names the request by: the text of a bug says no more than this
    """
    if isinstance(error, ProtocolError):
        return ErrorAnswer(error.meaning, str(error), error.headers, error.is_closing)
    meaning = _meaning_of(type(error), meanings or {})
    headers = _headers_of(meaning, error)
    if not isinstance(error, HeadwaterError):
        text = f"an error in the server itself, which its log has under the request id {request_id}"
        return ErrorAnswer(meaning, text, headers)
    return ErrorAnswer(meaning, without_logins(str(error)), headers)


def _headers_of(meaning: ErrorMeaning, error: BaseException) -> Mapping[str, str]:
    if meaning.status in (429, 503):
        return RETRY_AFTER
    if meaning.status != 401:
        return {}
    return CHALLENGE if isinstance(error, MissingTokenError) else TOKEN_CHALLENGE


def _meaning_of(kind: type[BaseException], meanings: Mapping[type[HeadwaterError], ErrorMeaning]) -> ErrorMeaning:
    for ancestor in kind.__mro__:
        if meaning := meanings.get(ancestor) or _MEANINGS.get(ancestor):
            return meaning
    raise AssertionError(f"{kind.__name__} is no exception")
