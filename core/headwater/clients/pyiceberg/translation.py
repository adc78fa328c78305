"""Translates between pyiceberg and Headwater: identifiers to content keys and back, and Headwater's errors to pyiceberg's.

pyiceberg's users catch its errors, and its transactions act on them.

    errors of ``iceberg_catalog``      pyiceberg's of the same name; what is there already, while committing: CommitFailedException
    UnknownOutcomeError                CommitStateUnknownException: pyiceberg leaves all files where they are
    ConflictError, SwapConflictError   CommitFailedException: it did not happen; pyiceberg tries again, or removes its files
    UnavailableError                   while committing the same; otherwise ServiceUnavailableError
    RefusedError                       while committing ValidationException, so that pyiceberg removes its files and does not
                                       try again; otherwise ValueError
    NotFoundError                      NoSuchIdentifierError: no such realm, catalog or reference

CorruptionError, for data that exists and cannot be read, has no counterpart and is raised as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    ValidationException,
    ViewAlreadyExistsError,
)
from pyiceberg.typedef import Identifier

from headwater import iceberg_catalog
from headwater.catalogs import ContentKey
from headwater.errors import (
    ConflictError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)


def identifier_key(identifier: str | Identifier, fault: type[Exception]) -> ContentKey:
    """The key of a table or view.

    fault         raised for an identifier that no key can have: no content has it either
    """
    try:
        return ContentKey(Catalog.identifier_to_tuple(identifier))
    except RefusedError as refused:
        raise fault(str(refused)) from refused


def namespace_key(namespace: str | Identifier) -> ContentKey:
    """The key of a namespace; NoSuchNamespaceError for an empty one, and for what no key can be."""
    Catalog.namespace_to_string(namespace, NoSuchNamespaceError)
    return identifier_key(namespace, NoSuchNamespaceError)


def find_key(identifier: str | Identifier) -> ContentKey | None:
    """The key of an identifier; None for one that no key can have."""
    try:
        return identifier_key(identifier, NoSuchIdentifierError)
    except NoSuchIdentifierError:
        return None


def shown_identifier(key: ContentKey) -> str:
    """Format an identifier as pyiceberg does."""
    return ".".join(key.elements)


@contextmanager
def pyiceberg_errors(*, is_commit: bool = False) -> Iterator[None]:
    """Translate the errors of a block that serves a caller of pyiceberg.

    is_commit     pyiceberg has written files for it, and keeps or removes them by the kind of error
    """
    try:
        yield
    except HeadwaterError as fault:
        if isinstance(fault, iceberg_catalog.AlreadyExistsError):
            raise _taken(fault, is_commit) from fault
        kind = _counterpart(fault, is_commit)
        if kind is None:
            raise
        raise kind(str(fault)) from fault


def _taken(fault: iceberg_catalog.AlreadyExistsError, is_commit: bool) -> Exception:
    """pyiceberg's error for a key that is taken, in pyiceberg's words."""
    if is_commit:
        kind: type[Exception] = CommitFailedException
    elif fault.wanted == "Namespace":
        kind = NamespaceAlreadyExistsError
    elif fault.held == "IcebergTable" or fault.wanted == "Table":
        kind = TableAlreadyExistsError
    else:
        kind = ViewAlreadyExistsError
    noun = {"IcebergTable": "Table"}.get(fault.held, fault.held)
    return kind(f"{noun} {fault.name} already exists")


def _counterpart(fault: HeadwaterError, is_commit: bool) -> type[Exception] | None:
    match fault:
        case iceberg_catalog.NoSuchNamespaceError():
            return NoSuchNamespaceError
        case iceberg_catalog.NoSuchTableError():
            return NoSuchTableError
        case iceberg_catalog.NoSuchViewError():
            return NoSuchViewError
        case iceberg_catalog.NamespaceNotEmptyError():
            return NamespaceNotEmptyError
        case UnknownOutcomeError():
            return CommitStateUnknownException
        case ConflictError() | SwapConflictError():
            return CommitFailedException
        case UnavailableError():
            return CommitFailedException if is_commit else ServiceUnavailableError
        case RefusedError():
            return ValidationException if is_commit else ValueError
        case NotFoundError():
            return NoSuchIdentifierError
    return None
