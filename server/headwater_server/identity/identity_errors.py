"""What goes wrong where a caller says who it is."""

from __future__ import annotations

from headwater.errors import HeadwaterError


class NotProvenError(HeadwaterError):
    """Nobody proved who calls: show a token that the realm accepts.

    The message goes to whoever called, and tells nothing beyond what its own token says.

    reason        what was wrong in fact, for the server's own log
    """

    def __init__(self, message: str, *, reason: str = "") -> None:  # default: it is pickled
        super().__init__(message)
        self.reason = reason
