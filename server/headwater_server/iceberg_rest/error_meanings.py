"""What errors mean to clients of Iceberg REST, by what they do with the answer.

A 409 is tried again after a refresh. After 400, 404 and 409 the files of a commit are deleted by the client, so none of them may stand
for what might have happened: that is 500 alone, after which files stay. After 503 with ``Retry-After`` even a POST is sent again, so
it says that certainly nothing happened.
"""

from __future__ import annotations

from headwater.catalogs import RequestKeyReusedError
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
from headwater.iceberg.changes.change_errors import IllegalChangeError
from headwater.iceberg_catalog import (
    AlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    PropertyClashError,
)
from headwater.realms import RealmClosedError
from headwater_server.route_table import ErrorMeaning

ERROR_MEANINGS: dict[type[HeadwaterError], ErrorMeaning] = {
    RefusedError: ErrorMeaning(400, "BadRequestException"),
    IllegalChangeError: ErrorMeaning(400, "IllegalArgumentException"),
    NotFoundError: ErrorMeaning(404, "NoSuchWarehouseException"),  # of a realm, a catalog or a reference
    NoSuchNamespaceError: ErrorMeaning(404, "NoSuchNamespaceException"),
    NoSuchTableError: ErrorMeaning(404, "NoSuchTableException"),
    NoSuchViewError: ErrorMeaning(404, "NoSuchViewException"),
    ConflictError: ErrorMeaning(409, "CommitFailedException"),
    SwapConflictError: ErrorMeaning(409, "CommitFailedException"),
    AlreadyExistsError: ErrorMeaning(409, "AlreadyExistsException"),
    NamespaceNotEmptyError: ErrorMeaning(409, "NamespaceNotEmptyException"),
    PropertyClashError: ErrorMeaning(422, "UnprocessableEntityException"),
    RequestKeyReusedError: ErrorMeaning(422, "UnprocessableEntityException"),
    UnknownOutcomeError: ErrorMeaning(500, "CommitStateUnknownException"),
    CorruptionError: ErrorMeaning(500, "InternalServerError"),
    UnavailableError: ErrorMeaning(503, "ServiceUnavailableException"),
    RealmClosedError: ErrorMeaning(
        503, "ServiceUnavailableException"
    ),  # what is repeated to it may have happened before it was closed
}
