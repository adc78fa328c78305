"""Settles outcomes that only a read has shown, by durable writes: a primary shows commits that no synchronous standby has."""

from __future__ import annotations

from headwater.errors import RefusedError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import RealmStore

_TRIES = 50


def confirm_outcome(rows: RealmStore, *references: str) -> None:
    """Make durable what a read of references has shown, before its caller reports it as the outcome of an earlier request.

    raises        UnknownOutcomeError: a failover may take it back
    """
    for reference in references:
        for _ in range(_TRIES):
            try:
                if (row := rows.find_row(reference)) is not None:
                    rows.confirm_reference(row)
                break
            except SwapConflictError:
                continue
            except (UnavailableError, UnknownOutcomeError, RefusedError) as fault:
                raise UnknownOutcomeError(
                    f"what was asked for is in reference {reference!r} of realm {rows.realm!r}, by an earlier request, and the"
                    f" database does not confirm that it stays there: {fault}. Ask again"
                ) from fault
        else:
            raise UnknownOutcomeError(
                f"reference {reference!r} of realm {rows.realm!r} changes too fast to be confirmed: ask again"
            )
