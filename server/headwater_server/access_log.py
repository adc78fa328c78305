"""One line in the log for each request, with what names it and without what it must not tell: no header, no body, no secret in a query."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import structlog
from structlog.typing import FilteringBoundLogger

from headwater.redaction import MASK
from headwater_server.audit_trail import AuditTrail

log: FilteringBoundLogger = structlog.get_logger(__name__)

PATH_CHARACTERS: Final = 500
AGENT_CHARACTERS: Final = 200
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_SECRET_NAME = re.compile(r"token|secret|passw|credential|signature|sig$|key|auth|code|assertion", re.IGNORECASE)


@dataclass(slots=True)
class RequestRecord:
    """What the log and the metrics say of one request.

    route         the name of its route; empty where none was found
    trail         who called, and what was asked for on what
    error         the type of the error that was answered
    """

    method: str
    path: str
    query: str
    client: str
    request_id: str
    agent: str = ""
    route: str = ""
    is_change: bool = False
    status: int = 0
    error: str = ""
    is_probe: bool = False
    received_bytes: int = 0
    sent_bytes: int = 0
    started: float = field(default=0.0)
    seconds: float = 0.0
    trail: AuditTrail = field(default_factory=AuditTrail)


def request_id_of(header: str | None) -> str:
    """The id that a client or a proxy gave a request, if it is one that can stand in a log; else a new one."""
    if header is not None and _REQUEST_ID.fullmatch(header):
        return header
    return uuid.uuid4().hex


def without_secrets(raw_query: str) -> str:
    """A query as it came, with stars for the values of names that look like secrets; in doubt it removes too much."""
    return "&".join(map(_masked, raw_query.split("&"))) if raw_query else ""


def write_access_line(record: RequestRecord) -> None:
    """Log a request at its end. A status of 0 says that the client was gone before it could be answered.

    Probes come every few seconds, and tell something only when they fail.
    """
    write = log.warning if record.status >= 500 else log.debug if record.is_probe else log.info
    write(
        "request",
        method=record.method,
        path=record.path[:PATH_CHARACTERS],
        query=without_secrets(record.query)[:PATH_CHARACTERS],
        route=record.route,
        status=record.status,
        error=record.error,
        milliseconds=round(record.seconds * 1000, 1),
        received_bytes=record.received_bytes,
        sent_bytes=record.sent_bytes,
        client=record.client,
        realm=record.trail.realm,
        caller=record.trail.caller,
        agent=record.agent[:AGENT_CHARACTERS],
        request_id=record.request_id,
    )


def _masked(part: str) -> str:
    name, equals, _ = part.partition("=")
    return f"{name}={MASK}" if equals and _SECRET_NAME.search(unquote(name)) else part
