"""What the audit log will tell of the request that is worked on: handlers and checks note it as they go."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

_SECURABLES_LIMIT = 100
"""A request that touches more is told with the first ones, and their number."""


@dataclass(slots=True)
class AuditTrail:
    """Who, and what on what.

    realm         that the request names; empty: none, or nobody has proved to call
    caller        who has proved to call
    client        the client id of a request for a token, as it was told: nothing proves it where the outcome is no success
    checks        the privileges that were asked for, each with what it was asked on and whether it was held
    count         of all checks
    """

    realm: str = ""
    caller: str = ""
    client: str = ""
    checks: list[tuple[str, str, bool]] = field(default_factory=list)
    count: int = 0

    def note_check(self, privilege: str, on: object, *, is_held: bool) -> None:
        self.count += 1
        if len(self.checks) < _SECURABLES_LIMIT:
            self.checks.append((privilege, str(on), is_held))


_current: ContextVar[AuditTrail | None] = ContextVar("audit_trail", default=None)


def begin_trail(trail: AuditTrail) -> None:
    """Make a trail that of the work of this context."""
    _current.set(trail)


def current_trail() -> AuditTrail:
    """The trail of the request that is worked on; one that nobody reads where there is none."""
    return _current.get() or AuditTrail()
