"""The audit log: who did what on what, from where, and what came of it, as one JSON line for each request but probes.

It tells no header, no body and no secret. Where no file is named, the access log's lines have who called, and the audit log is off.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog

from headwater.clock import Clock
from headwater.errors import RefusedError
from headwater_server.access_log import PATH_CHARACTERS, RequestRecord
from headwater_server.audit_file import AuditFile

log = structlog.get_logger(__name__)

STANDARD_OUTPUT = "-"
_OUTCOMES = {401: "not-proven", 403: "denied", 404: "not-found", 409: "conflict", 429: "overloaded", 503: "not-done"}


class AuditLog:
    """Where lines of the audit log go.

    append        writes a line; None: nowhere
    """

    def __init__(
        self, append: Callable[[bytes], None] | None = None, *, close: Callable[[], None] = lambda: None, name: str = ""
    ) -> None:
        self._append = append
        self._name = name
        self.close = close

    def write(self, record: RequestRecord) -> None:
        if self._append is None or record.is_probe:
            return
        try:
            self._append(json.dumps(audit_entry(record)).encode() + b"\n")  # ASCII: what a terminal obeys is escaped
        except (OSError, ValueError):  # ValueError: standard output was closed
            log.error("a line of the audit log was not written", file=self._name, exc_info=True)


def open_audit_log(file: str, *, clock: Clock) -> AuditLog:
    """Open the audit log.

    file          that lines are appended to, also after it was moved away; ``-``: standard output; empty: none
    raises        RefusedError for a file that cannot be written
    """
    if not file:
        return AuditLog()
    if file == STANDARD_OUTPUT:
        return AuditLog(_print_line, name=file)
    try:
        opened = AuditFile(file, clock=clock)
    except OSError as fault:
        raise RefusedError(f"HEADWATER_SERVER_AUDIT_FILE: {file}: {fault.strerror or fault}") from fault
    return AuditLog(opened.append, close=opened.close, name=file)


def _print_line(line: bytes) -> None:
    sys.stdout.write(line.decode())
    sys.stdout.flush()


def audit_entry(record: RequestRecord) -> dict[str, Any]:
    """What the audit log tells of a request."""
    trail = record.trail
    entry: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "realm": trail.realm,
        "principal": trail.caller,
        "from": record.client,
        "action": record.route,
        "method": record.method,
        "path": record.path[:PATH_CHARACTERS],
        "on": [{"privilege": privilege, "securable": on, "held": is_held} for privilege, on, is_held in trail.checks],
        "outcome": outcome_of(record.status),
        "status": record.status,
        "requestId": record.request_id,
    }
    if trail.count > len(trail.checks):
        entry["checks"] = trail.count
    if trail.client:
        entry["client"] = trail.client
    if record.error:
        entry["error"] = record.error
    return entry


def outcome_of(status: int) -> str:
    """What came of a request, in a word. A status of 0 says that the client was gone before it was answered."""
    if status in _OUTCOMES:
        return _OUTCOMES[status]
    if status == 0 or status >= 500:
        return "unknown" if status in (0, 500) else "failed"
    return "done" if status < 400 else "refused"
