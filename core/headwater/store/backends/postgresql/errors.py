"""Translates faults of PostgreSQL and its driver into Headwater errors.

Source of the codes: PostgreSQL documentation, appendix "PostgreSQL Error Codes"; of the texts: libpq.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import psycopg

from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    RefusedError,
    StoreFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store.backend import collision

__all__ = ["connecting_error", "is_lost", "is_to_be_replaced", "statement_error"]

_REFUSED_CLASSES = frozenset({"0A", "22", "23", "26", "28", "3D", "3F", "42", "54"})
"""Not supported, data, constraint, statement name, authorisation, catalog, schema, syntax or right, program limit."""
_UNREADABLE = frozenset({"XX001", "XX002"})
_DISK_FULL = "53100"
_DIVISION_BY_ZERO = "22012"
"""The SQLSTATE by which a statement that writes new objects reports one that exists with other bytes; see ``statements``."""
_NEVER_BEGUN = frozenset({"57P03", "57P05", "53300", "28000", "28P01", "3D000"})
"""Errors that end a connection before it runs a statement: starting up, idle for too long, too many connections, login refused."""
_STRANGE = "another program's tables are there: name another schema in the URL's option schema"
_HINTS = {
    "22P02": _STRANGE,
    "25006": "the server or this role takes no writes now",
    "3F000": "the schema is gone: open the store again to set it up",
    "42703": _STRANGE,
    "42710": _STRANGE,
    "42P07": _STRANGE,
    "42501": "grant the right to this role",
    "42P01": "tables are gone: restore the schema, or drop what is left of it and open the store again to begin anew",
    "42P05": "is there a pooler between? it has to be in session mode",
    "53100": "nothing was written; make room on the server's disk",
    "26000": "is there a pooler between? it has to be in session mode",
}
_NOT_LET_IN = (
    "password authentication failed",
    "no password supplied",
    "authentication failed for user",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    "permission denied for database",
    "requires a valid client certificate",
    "certificate verify failed",
    "root certificate file",
    "certificate file",
    "private key file",
    "does not match host name",
    "server does not support SSL",
    "server does not support SCRAM",
    "channel binding required",
    "invalid connection option",
    "invalid port number",
    "definition of service",
    "service file",
    "is not currently accepting connections",
    "unsupported frontend protocol",
)
"""Parts of libpq's messages for errors that a retry does not solve. libpq does not pass on the SQLSTATE of a failed connection."""
_NOT_THERE = ("database", "role", "user")


def is_lost(fault: psycopg.Error) -> bool:
    """Whether the connection, and not the statement, failed."""
    return fault.sqlstate is None or fault.diag.severity_nonlocalized != "ERROR"


def is_to_be_replaced(fault: psycopg.Error) -> bool:
    """Whether a connection that is still good should not be used again: its server takes no writes, or lost its plans."""
    return is_lost(fault) or fault.sqlstate in ("25006", "0A000", "26000", "42P05")


def statement_error(
    fault: psycopg.Error, *, place: str, what: str, writes: bool, hints: Mapping[str, str] = MappingProxyType({})
) -> HeadwaterError:
    """The error to raise for a statement that failed. ``hints``, by SQLSTATE, replace the general hints.

    A statement that commits by itself and was answered with an ERROR had no effect. A write without an answer may have happened,
    even if an administrator ended its connection: that can come right after the commit.
    """
    state = fault.sqlstate or ""
    text = f"{place}: {what}: {_sentence(fault)}"
    if hint := hints.get(state) or _HINTS.get(state):
        text += f" ({hint})"
    # First of all: whatever the SQLSTATE suggests, a write whose commit may have happened must never be reported as undone.
    if writes and _is_open(fault):
        return UnknownOutcomeError(f"{text}; whether it happened is not known")
    if state == _DIVISION_BY_ZERO:
        return collision(None, place=f"{place}: {what}: ")
    if state == _DISK_FULL:
        return StoreFullError(text)
    if state in _UNREADABLE:
        return CorruptionError(text)
    if state[:2] in _REFUSED_CLASSES:
        return RefusedError(text)
    return UnavailableError(text)


def connecting_error(fault: psycopg.Error, *, place: str) -> HeadwaterError:
    """The error to raise when no connection can be made.

    Messages are matched in English. A server with another language is reported as unavailable, whatever the cause.
    """
    text = _on_one_line(str(fault))
    is_missing = "does not exist" in text and any(f'{word} "' in text for word in _NOT_THERE)
    if is_missing or any(words in text for words in _NOT_LET_IN):
        return RefusedError(f"{place}: {text}")
    return UnavailableError(f"{place}: {text}")


def _is_open(fault: psycopg.Error) -> bool:
    state = fault.sqlstate or ""
    if state in _NEVER_BEGUN:
        return False
    # 40003 is "statement completion unknown", class 08 is a connection exception.
    return is_lost(fault) or state == "40003" or state.startswith("08")


def _sentence(fault: psycopg.Error) -> str:
    """The first thing that the server or the driver said, on one line."""
    return _on_one_line(fault.diag.message_primary or str(fault) or type(fault).__name__)


def _on_one_line(text: str) -> str:
    """libpq writes what it makes of a failure on lines of its own, without a full stop before, and breaks long ones."""
    return " ".join(re.sub(r"\s*\n\s*(?=[A-Z])", "; ", text).split()).rstrip(".")
