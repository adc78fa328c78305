"""Translates faults of MongoDB and its driver into Headwater errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson.errors import BSONError, InvalidBSON
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    InvalidName,
    InvalidOperation,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)

from headwater.errors import CorruptionError, HeadwaterError, RefusedError, UnavailableError, UnknownOutcomeError

__all__ = ["DRIVER_FAULTS", "driver_error", "duplicates", "is_surely_undone"]

DRIVER_FAULTS = (PyMongoError, BSONError, OverflowError)
"""Every exception that a driver call raises because of the database or of the values to store."""
DUPLICATE = 11000
_REFUSED = {
    2: "",  # BadValue
    9: "",  # FailedToParse
    11: "",  # UserNotFound
    13: "grant the user of this store the role readWrite on its database",
    14: "",  # TypeMismatch
    18: "are user, password and the option authSource right?",
    20: "",  # IllegalOperation
    26: "",  # NamespaceNotFound
    59: "is the server older than MongoDB 4.4?",
    72: "",  # InvalidOptions
    73: "",  # InvalidNamespace
    115: "",  # CommandNotSupported
    121: "somebody gave the collection a validation rule",
    148: "switch majority read concern on at the server",
    166: "somebody put a view in a collection's place",
    238: "",  # NotImplemented
    303: "is the server older than MongoDB 4.4?",
    8000: "",  # AtlasError: login, rights, and what that service does not offer
    10334: "",  # BSONObjectTooLarge
    17280: "",  # KeyTooLong
    40324: "is the server older than MongoDB 4.4?",
    40415: "",  # an unknown field of a command
}
"""Codes that a repetition does not change, and what to do. Sources: ``src/mongo/base/error_codes.yml`` of MongoDB."""
_UNDONE = frozenset({24, 112, 10058, 10107, 13435, 14031, 16500})
"""Codes of calls without effect: lock not acquired, conflict rolled back, not the primary, no disk space, too many requests.

Not among them: 91, 189, 11600 and 11602 interrupt what is being done, and 50 and 64 may end the wait for a majority that will come.
"""
_NOT_PRIMARY = frozenset({10058, 10107, 13435})
_NEVER_TRUSTED = ("CERTIFICATE_VERIFY_FAILED", "certificate verify failed", "WRONG_VERSION_NUMBER", "wrong version number")


def is_surely_undone(fault: BaseException, *, of_one: bool) -> bool:
    """Whether a node that is no primary refused the call before doing anything: it may be sent again, whatever it does.

    of_one        the call changes one document; one of many may have changed some of them when its server stepped down
    """
    if not isinstance(fault, NotPrimaryError):
        return False
    return fault.has_error_label("NoWritesPerformed") or (of_one and _code(fault) in _NOT_PRIMARY)


def duplicates(fault: BulkWriteError) -> list[int] | None:
    """The positions of a bulk call's operations that failed on a duplicate key; None if anything else failed as well."""
    details: Mapping[str, Any] = fault.details
    failed = details.get("writeErrors") or []
    # A write concern error means that the write is not known to survive a failover, so it is not reported as a mere duplicate.
    if details.get("writeConcernErrors") or any(error.get("code") != DUPLICATE for error in failed):
        return None
    return [int(error["index"]) for error in failed]


def driver_error(
    fault: BaseException, *, place: str, what: str, writes: bool, was_sent: bool, of_one: bool, secret: str | None
) -> HeadwaterError:
    """The error to raise for a call of the driver that failed.

    was_sent      the call had a connection, so the server may have received it
    of_one        the call changes one document at most
    secret        the password, which the driver might repeat
    """
    text = f"{place}: {what}: {_sentence(fault, secret)}"
    # Invariant: a write that may have reached the server ends as UnknownOutcomeError, unless the error proves that it had no effect.
    is_open = writes and was_sent
    if isinstance(fault, InvalidBSON):
        return CorruptionError(text)
    if isinstance(fault, InvalidOperation):
        return RefusedError(f"{place}: {what}: the store is closed")
    if isinstance(fault, BSONError | OverflowError | DocumentTooLarge | ConfigurationError | InvalidName):
        return RefusedError(text)
    if isinstance(fault, BulkWriteError | WriteConcernError):
        return UnknownOutcomeError(f"{text}; whether it happened is not known") if is_open else UnavailableError(text)
    code = _code(fault)
    if isinstance(fault, OperationFailure) and code in _REFUSED:
        return RefusedError(f"{text} ({_REFUSED[code]})" if _REFUSED[code] else text)
    if isinstance(fault, ConnectionFailure) and not was_sent and any(words in str(fault) for words in _NEVER_TRUSTED):
        return RefusedError(text)
    is_undone = isinstance(fault, PyMongoError) and fault.has_error_label("NoWritesPerformed")
    is_undone = is_undone or (of_one and (code in _UNDONE or _is_drivers_own(fault)))
    if is_open and not is_undone:
        return UnknownOutcomeError(f"{text}; whether it happened is not known")
    return UnavailableError(text)


def _is_drivers_own(fault: BaseException) -> bool:
    """Whether the driver had a connection but no time left to send anything. Errors of servers carry a codeName, this one does not."""
    return (
        isinstance(fault, ExecutionTimeout)
        and "codeName" not in (fault.details or {})
        and str(fault).startswith("operation would exceed time limit")
    )


def _code(fault: BaseException) -> int | None:
    if isinstance(fault, OperationFailure):
        return fault.code
    if isinstance(fault, AutoReconnect) and isinstance(fault.details, Mapping):
        code = fault.details.get("code")
        return code if isinstance(code, int) else None
    return None


def _sentence(fault: BaseException, secret: str | None) -> str:
    """The first message of the server or the driver on one line, without the description of the topology."""
    text = str(fault)
    if isinstance(fault, BulkWriteError):
        said = [*(fault.details.get("writeErrors") or []), *(fault.details.get("writeConcernErrors") or [])]
        text = "; ".join(dict.fromkeys(str(one.get("errmsg", one)) for one in said)) or text
    for end in (" (configured timeouts", ", full error:", ", Timeout: ", ", Topology Description:"):
        text = text.partition(end)[0]
    text = " ".join(text.split())[:300] or type(fault).__name__
    return text.replace(secret, "***") if secret else text
