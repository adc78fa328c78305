"""Who makes a request: somebody who has proved it, judged by the realm that the request names."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.access import RoleHolder
from headwater.errors import HeadwaterError


class NotProvenError(HeadwaterError):
    """Nobody has proved who calls: log in, and call again. The message tells no more than the caller's own token does.

    reason        what was wrong in fact, for the server's own log; empty: what the message says
    """

    def __init__(self, message: str, *, reason: str = "") -> None:  # default: it is pickled
        super().__init__(message)
        self.reason = reason


class MissingTokenError(NotProvenError):
    """The request has no bearer token."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who has proved who it is, in one realm.

    name          of a principal of the realm; of somebody whom an identity provider vouches for, the provider's name for it. Commits
                  and the audit log note it
    holder        whose grants count
    has_credentials   its token was given for the present credentials of a principal of the realm; otherwise for former ones, which are
                      about to end, or an identity provider vouches for it
    """

    realm: str
    name: str
    holder: RoleHolder
    has_credentials: bool = False
