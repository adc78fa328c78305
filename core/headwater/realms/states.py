"""The states of a realm, and which moves between them are legal."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from headwater.errors import RefusedError

__all__ = ["LEGAL_MOVES", "RealmState", "check_move"]


class RealmState(StrEnum):
    """Where a realm stands in its life. Only ``ACTIVE`` serves users."""

    CREATED = "CREATED"
    INITIALIZING = "INITIALIZING"
    LOADING = "LOADING"
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    PURGING = "PURGING"
    PURGED = "PURGED"


_S = RealmState
LEGAL_MOVES: Mapping[RealmState, tuple[RealmState, ...]] = {
    _S.CREATED: (_S.INITIALIZING, _S.LOADING, _S.PURGING),
    _S.INITIALIZING: (_S.ACTIVE, _S.INACTIVE, _S.PURGING),
    _S.LOADING: (_S.ACTIVE, _S.INACTIVE, _S.PURGING),
    _S.ACTIVE: (_S.INACTIVE,),
    _S.INACTIVE: (_S.ACTIVE, _S.PURGING),
    _S.PURGING: (_S.PURGED,),
    _S.PURGED: (),
}


def check_move(realm_id: str, source: RealmState, *, to: RealmState) -> None:
    """Pass if a realm may go from ``source`` to ``to``.

    raises        RefusedError that names the moves which are legal instead
    """
    if to not in LEGAL_MOVES[source]:
        raise RefusedError(f"realm {realm_id!r} cannot go from {source} to {to}: {_advice(source)}")


def _advice(source: RealmState) -> str:
    legal = LEGAL_MOVES[source]
    if not legal:
        return f"a {source} realm can only be deleted"
    return f"from {source} it can go to " + " or ".join(legal)
