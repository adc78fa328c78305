"""Which tables expiry has looked at, so that it reads none again that is as it was while nothing of it is due.

The index ``expiry`` of the realm's reference ``policy-mappings`` has an entry for each table of a branch:

    key      8 bytes of BLAKE2b over the catalog's id and the branch's name, and the table's key
    value    8 bytes digest of the content, 8 bytes digest of the policies, 8 bytes the first moment at which something may go,
             in milliseconds since 1970 (0: never), and the number of the reason for which the table was left alone (0: none)

Losing entries costs one look at each table, and never a snapshot.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from headwater.commits import Transaction, commit_change, read_head
from headwater.iceberg.snapshot_expiry import ExpiryRefusal
from headwater.index import KEY_BYTES, Index, IndexValue, after_prefix
from headwater.store import RealmStore

POLICY_MAPPINGS = "policy-mappings"
LOOKED = "expiry"
_LAYOUT = struct.Struct(">8s8sQB")
_PREFIX_BYTES = 8
_REASONS = (None, *ExpiryRefusal)


class TableLook(NamedTuple):
    """What expiry found at a table.

    content, policies   the digests of what it saw, the first 8 bytes of each
    due_ms              None: nothing of it ever goes as it is
    """

    content: bytes
    policies: bytes
    due_ms: int | None
    refusal: ExpiryRefusal | None

    def holds(self, content: bytes, policies: bytes, now_ms: int) -> bool:
        """Whether a look now would find what this one found."""
        if (self.content, self.policies) != (content[:8], policies[:8]):
            return False
        return self.due_ms is None or self.due_ms > now_ms

    def to_entry(self) -> IndexValue:
        reason = _REASONS.index(self.refusal)
        return IndexValue(None, _LAYOUT.pack(self.content[:8], self.policies[:8], self.due_ms or 0, reason))

    @classmethod
    def from_value(cls, value: IndexValue) -> TableLook | None:
        """None for what another release wrote: the table is looked at again."""
        data = bytes(value.data)
        if len(data) != _LAYOUT.size:
            return None
        content, policies, due_ms, reason = _LAYOUT.unpack(data)
        return cls(content, policies, due_ms or None, _REASONS[reason]) if reason < len(_REASONS) else None


class LookedTables:
    """The looks at the tables of one branch, by the keys that tables have in indexes."""

    def __init__(self, rows: RealmStore, catalog_id: str, branch: str) -> None:
        self._rows = rows
        self._prefix = branch_prefix(catalog_id, branch)

    def read_looks(self, start: bytes, end: bytes | None) -> dict[bytes, TableLook | None]:
        """The looks at tables from one key on and before another one; None where it is not understood."""
        index = _index(self._rows)
        last = after_prefix(self._prefix) if end is None else self._key(end)
        entries = index.range(self._prefix + start, last)
        return {key[_PREFIX_BYTES:]: TableLook.from_value(value) for key, value in entries}

    def remember_looks(self, looks: Mapping[bytes, TableLook], gone: Collection[bytes], *, fence: Callable[[], None]) -> None:
        """Remember looks, and forget those at keys where no such table is any more. A key that is too long is not remembered."""
        put = {self._prefix + key: look.to_entry() for key, look in looks.items() if len(key) + _PREFIX_BYTES <= KEY_BYTES}

        def change(tx: Transaction) -> None:
            index = tx.index(LOOKED)
            for key in gone:
                index.remove(self._prefix + key)
            for key, value in put.items():
                index.put(key, value)

        if put or gone:
            message = f"note that expiry looked at {len(put)} tables"
            commit_change(self._rows, POLICY_MAPPINGS, change, message=message, fence=fence)

    def _key(self, key: bytes) -> bytes:
        return (self._prefix + key)[:KEY_BYTES]


def forget_branches(rows: RealmStore, living: Collection[bytes], *, fence: Callable[[], None]) -> int:
    """Forget the looks at branches that are not there any more; returns how many tables they had.

    living        ``branch_prefix`` of every branch of the realm's catalogs
    """
    index, gone, key = _index(rows), list[bytes](), b""
    while first := next(index.keys(key, limit=1), None):
        prefix = first[:_PREFIX_BYTES]
        behind = after_prefix(prefix)
        if prefix not in living:
            gone += index.keys(prefix, behind)
        if behind is None:
            break
        key = behind

    def change(tx: Transaction) -> None:
        for key in gone:
            tx.index(LOOKED).remove(key)

    if gone:
        commit_change(rows, POLICY_MAPPINGS, change, message=f"forget {len(gone)} looks of expiry", fence=fence)
    return len(gone)


def branch_prefix(catalog_id: str, branch: str) -> bytes:
    return hashlib.blake2b(f"{catalog_id} {branch}".encode(), digest_size=_PREFIX_BYTES).digest()


def _index(rows: RealmStore) -> Index:
    head = read_head(rows, POLICY_MAPPINGS, fresh=True)
    return Index() if head is None else head.index(LOOKED)
