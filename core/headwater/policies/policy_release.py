"""What the garbage collector does with policies: those of catalogs and of tables that are gone for good go, too."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from uuid import UUID

import msgspec

from headwater.catalogs.registry import BY_ID, all_definitions
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import CorruptionError, NotFoundError
from headwater.index import Index
from headwater.policies.policy_store import MAPPINGS, POLICIES
from headwater.policies.policy_values import StoredPolicy
from headwater.store import ObjectId, RealmReader, RealmStore

_ID_BYTES = 16


def release_policies(
    rows: RealmStore, content: Container[UUID], *, older_than: Micros, fence: Callable[[], None] | None = None
) -> int:
    """Release policies, said before ``older_than``, of catalogs without a definition and of tables that are in no kept commit.

    Returns how many went. One that cannot be read stays, for fsck to find.
    """
    head = read_head(rows, MAPPINGS, fresh=True)
    if head is None or not head.index(POLICIES):
        return 0
    # read after the policies: one can be said only of a catalog that is there already, and no id is given twice
    catalogs = {definition.id.encode() for definition, _ in all_definitions(rows, index=BY_ID)}

    def gone(reader: RealmReader, index: Index) -> Iterator[bytes]:
        for key, value in index.range():
            if _is_free(bytes(key), catalogs, content) and _is_old(reader, value.object_id, older_than):
                yield bytes(key)

    if not any(gone(rows, head.index(POLICIES))):
        return 0

    def change(tx: Transaction) -> int:
        keys = list(gone(tx.reader, tx.index(POLICIES)))
        return sum(tx.index(POLICIES).remove(key) for key in keys)

    return commit_change(rows, MAPPINGS, change, message="release policies", fence=fence).result


def _is_free(key: bytes, catalogs: Container[bytes], content: Container[UUID]) -> bool:
    catalog_id, table = key[:_ID_BYTES], key[_ID_BYTES + 1 :].partition(b"\0")[2]
    return catalog_id not in catalogs or (len(table) == _ID_BYTES and UUID(bytes=table) not in content)


def _is_old(reader: RealmReader, object_id: ObjectId | None, older_than: Micros) -> bool:
    if object_id is None:
        return False
    try:
        return reader.read_object(object_id, StoredPolicy).updated < older_than
    except (CorruptionError, NotFoundError, msgspec.MsgspecError):
        return False
