"""What errors mean to Nessie's clients: the code that they dispatch on, and the details that newer ones can read.

Iceberg's catalog over Nessie deletes the metadata file that it named after a 400, 404 or 409, also one that it did not write but was to
register, and keeps it after anything else. So none of these may stand for what might have happened, nor for a refusal of a file that may
be another table's.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from headwater.access import ForbiddenError
from headwater.catalogs import ContentKey
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
from headwater.iceberg_catalog import NoSuchNamespaceError, NoSuchTableError, NoSuchViewError
from headwater.realms import RealmClosedError
from headwater_server.nessie.conflict_bodies import ErrorDetailsBody, conflicts_body, content_key_details
from headwater_server.route_table import ErrorFacts, ErrorMeaning

CLIENT_SPEC_HEADER: Final = "nessie-client-spec"
"""The level of the specification that a client knows; from 2 on it can read the details of an error."""
_DETAILED_SPEC: Final = 2


class NoSuchContentError(NotFoundError):
    """There is no content at a key, or none that the caller may see."""

    def __init__(self, message: str, *, key: ContentKey | None = None) -> None:  # default: it is pickled
        super().__init__(message)
        self.key = key

    @classmethod
    def at(cls, key: ContentKey, where: str) -> NoSuchContentError:
        return cls(f"there is no content {key} on {where}", key=key)


class UnknownNamespaceError(NotFoundError):
    """There is no namespace of a name, or none that the caller may see; for the addresses that version 1 has for namespaces."""


class FileAtRiskError(RefusedError):
    """A commit failed, and its client might delete the metadata file of another table if it were told so in any other way."""


class NameTakenError(ConflictError):
    """A branch or tag of this name is there."""


_CONTENT_MISSING = ErrorMeaning(404, "CONTENT_NOT_FOUND")
_CONFLICT = ErrorMeaning(409, "REFERENCE_CONFLICT")
_UNAVAILABLE = ErrorMeaning(503, "SERVICE_UNAVAILABLE")
_UNKNOWN = ErrorMeaning(500, "UNKNOWN")
NESSIE_MEANINGS: Final[dict[type[HeadwaterError], ErrorMeaning]] = {
    RefusedError: ErrorMeaning(400, "BAD_REQUEST"),
    ForbiddenError: ErrorMeaning(403, "FORBIDDEN"),
    FileAtRiskError: ErrorMeaning(403, "FORBIDDEN"),
    NotFoundError: ErrorMeaning(404, "REFERENCE_NOT_FOUND"),
    NoSuchContentError: _CONTENT_MISSING,
    UnknownNamespaceError: ErrorMeaning(404, "NAMESPACE_NOT_FOUND"),
    NoSuchNamespaceError: _CONTENT_MISSING,
    NoSuchTableError: _CONTENT_MISSING,
    NoSuchViewError: _CONTENT_MISSING,
    ConflictError: _CONFLICT,
    SwapConflictError: _CONFLICT,
    NameTakenError: ErrorMeaning(409, "REFERENCE_ALREADY_EXISTS"),
    UnknownOutcomeError: _UNKNOWN,
    CorruptionError: _UNKNOWN,
    UnavailableError: _UNAVAILABLE,
    RealmClosedError: _UNAVAILABLE,
}
_CODES: Final = {
    400: "BAD_REQUEST",
    403: "FORBIDDEN",
    404: "UNKNOWN",
    409: "REFERENCE_CONFLICT",
    415: "UNSUPPORTED_MEDIA_TYPE",
    429: "TOO_MANY_REQUESTS",
    503: "SERVICE_UNAVAILABLE",
}
"""By status, for what HTTP itself settles, whose types are those of Iceberg's REST specification."""
_NESSIE_CODES: Final = {meaning.type for meaning in NESSIE_MEANINGS.values()}


class NessieError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The body of an answer to an error, as Nessie's API has it.

    error_details  for clients that name level 2 of the specification or a later one
    """

    status: int
    reason: str
    message: str
    error_code: str
    error_details: ErrorDetailsBody | None = None


def nessie_error_body(facts: ErrorFacts) -> NessieError:
    """The body of an answer to an error, never with a stack."""
    status = facts.meaning.status
    code = facts.meaning.type if facts.meaning.type in _NESSIE_CODES else _CODES.get(status, "UNKNOWN")
    details = _details_of(facts.error) if reads_details(facts.headers.get(CLIENT_SPEC_HEADER, "")) else None
    reason = HTTPStatus(status).phrase
    return NessieError(status=status, reason=reason, message=facts.message, error_code=code, error_details=details)


def reads_details(header: str) -> bool:
    """Whether a client of this level of the specification can read the details of errors."""
    return header.isascii() and header.isdigit() and int(header[:9]) >= _DETAILED_SPEC


def _details_of(error: BaseException) -> ErrorDetailsBody | None:
    if isinstance(error, NoSuchContentError) and error.key is not None:
        return content_key_details(error.key)
    return conflicts_body(error.details) if isinstance(error, ConflictError) else None
