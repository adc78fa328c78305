"""Why an object of a realm is kept, or when it goes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headwater.api.api_values import told_time
from headwater.fsck.explanation import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptObjectInfo:
    """Why an object of a realm is kept, or when it goes.

    kept          whether a collection that starts now would keep it
    why           head, grace, retention, record, young, fixed or unknown type; None: it is garbage
    reason        why, or when it goes, in one sentence
    goes          the first time at which a collection deletes it; None: not known
    chain         type and id, from the commit that keeps it down to the object
    path          the same in words, from the reference on: commits, indexes, keys
    """

    realm: str
    id: str
    type: str
    kept: bool
    why: str | None
    reason: str
    goes: datetime | None
    chain: tuple[str, ...]
    path: tuple[str, ...]

    @classmethod
    def of(cls, told: Explanation) -> KeptObjectInfo:
        """The values of a verdict."""
        return cls(
            realm=told.realm,
            id=told.object_id,
            type=told.type,
            kept=told.is_kept,
            why=told.why or None,
            reason=told.sentence,
            goes=told_time(told.goes),
            chain=told.chain,
            path=told.path,
        )
