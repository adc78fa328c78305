"""What a failure means to whoever called the command."""

from __future__ import annotations

from headwater.errors import ConflictError, HeadwaterError
from headwater.exits import FINDINGS, exit_code

__all__ = ["EXIT_CODES", "FINDINGS", "exit_code", "lines_of"]

EXIT_CODES = {
    0: "done",
    1: "a bug in Headwater: please report it",
    2: "usage: the command line or a setting cannot be understood",
    3: "not found: the store, realm, catalog, branch, task, commit or file is not there",
    4: "unavailable: nothing happened, try again later",
    5: "refused: a rule forbids it, the state is wrong, or a confirmation is missing",
    6: "conflict: it exists already, or somebody else was faster; look again, then decide again",
    7: "the outcome is unknown: look before you do it again",
    8: "findings: something stored is damaged, or tables were quarantined",
    130: "interrupted",
    143: "ended by SIGTERM before it was done",
}


def lines_of(error: HeadwaterError) -> list[str]:
    """What to print of an error: its message, and those details of a conflict that are not in it."""
    told = str(error)
    details = map(str, error.details) if isinstance(error, ConflictError) else ()
    return [*told.splitlines(), *(f"- {detail}" for detail in details if (detail.partition(": ")[2] or detail) not in told)]
