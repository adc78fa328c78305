"""The partition tree as it is stored: in the reference ``files/<id>/tree`` of the realm.

Its index ``partitions`` has the splits: key the path of a partition that has children, value 8 bytes of the number of the change that
split it, big-endian, and the split point. Its index ``tree`` has under ``number`` the number of the newest change in 8 bytes. Splits
are never changed and never removed: the tree only grows. So a tree is right for references of any earlier number, and its
reference is never moved to an older commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.clock import Micros
from headwater.commits import (
    AbsentReference,
    Head,
    Transaction,
    commit_change,
    descends,
    read_commit,
    read_head,
    state_as_of,
)
from headwater.errors import ConflictError, CorruptionError, NotFoundError, RefusedError
from headwater.files.file_references import PartitionId
from headwater.files.file_table_definition import FileTableDefinition
from headwater.files.partition_tree import PartitionTree
from headwater.index import Index, IndexValue
from headwater.store import ObjectId, RealmReader, RealmStore, id_text

PARTITIONS = "partitions"
LONGEST_POINT = 4096
"""The longest split point in bytes: points lie in pages of indexes. A shorter prefix of a key splits as well."""
_TREE = "tree"
_NUMBER = b"number"
_FIRST = 1
Fence = Callable[[], None]


def initialize_tree(
    rows: RealmStore, definition: FileTableDefinition, splits: Mapping[PartitionId, bytes], *, fence: Fence | None = None
) -> PartitionTree:
    """Make the first tree in one commit: one root, or as many levels as ``splits`` has. A repeated call changes nothing.

    The table must be listed.

    raises        RefusedError for splits that form no tree · ConflictError when the table began with another tree
    """
    first = PartitionTree(_FIRST - 1, {}).split_leaves(splits)
    _check_points(splits)

    def change(tx: Transaction) -> PartitionTree:
        if tx.head is None:
            _put_splits(tx, splits, first.number)
            return first
        if initial_splits(tx.index(PARTITIONS)) != dict(splits):
            raise ConflictError(f"{_label(rows, definition)} began with another partition tree: leave the split points out")
        return _tree_at(tx)

    rows.ensure_reference(definition.tree_reference)
    return commit_change(rows, definition.tree_reference, change, message=f"plant {definition.name}", fence=fence).result


def commit_splits(
    rows: RealmStore, definition: FileTableDefinition, splits: Mapping[PartitionId, bytes], *, fence: Fence | None = None
) -> PartitionTree:
    """Split leaves in one commit. A split that is in the tree already, at the same point, is left out.

    raises        RefusedError when one is in the tree at another point, and as ``PartitionTree.split_leaves`` does · NotFoundError
    """
    _check_points(splits)

    def change(tx: Transaction) -> PartitionTree:
        tree = _tree_at(tx)
        fresh = {partition: point for partition, point in splits.items() if tree.splits.get(partition) != point}
        if not fresh:
            return tree
        grown = tree.split_leaves(fresh)
        _put_splits(tx, fresh, grown.number)
        return grown

    message = f"split {len(splits)} leaves" if len(splits) != 1 else f"split leaf {next(iter(splits))[:80]}"
    try:
        return commit_change(rows, definition.tree_reference, change, message=message, fence=fence).result
    except NotFoundError as fault:
        if rows.find_reference(definition.tree_reference, fresh=True) is None:
            raise _lost(rows, definition) from fault
        raise


def read_tree(rows: RealmReader, definition: FileTableDefinition) -> PartitionTree:
    """The newest tree, asked of the database.

    raises        CorruptionError when there is none: it was lost, or the table is not complete
    """
    return _tree_of(_fresh_head(rows, definition))


def read_tree_at(rows: RealmReader, definition: FileTableDefinition, commit: ObjectId) -> PartitionTree:
    """The tree at a commit of its history.

    raises        ExpiredError: no such commit (any more) · NotFoundError: it is no commit of this tree
    """
    head, wanted = _fresh_head(rows, definition), read_commit(rows, commit)
    if not descends(rows, head.id, commit, wanted.commit.seq):
        raise NotFoundError(f"commit {id_text(commit)} does not belong to the partition tree of {_label(rows, definition)}")
    return _tree_of(wanted)


def read_tree_as_of(rows: RealmReader, definition: FileTableDefinition, time: Micros) -> PartitionTree:
    """The tree that was the newest at a time.

    raises        NotFoundError: there was none yet · ExpiredError: that is not remembered any more
    """
    row = rows.find_row(definition.tree_reference)
    head = state_as_of(rows, row, time, what=lambda: f"the partition tree of file table {definition.name!r}")
    if head is None or isinstance(head, AbsentReference):
        raise NotFoundError(f"{_label(rows, definition)} had no partition tree at that time")
    return _tree_of(head)


def initial_splits(partitions: Index) -> dict[PartitionId, bytes]:
    """The splits of the first tree."""
    entries = ((key, value.data) for key, value in partitions.range())
    return {_path(key): bytes(data[8:]) for key, data in entries if _number(data[:8]) == _FIRST}


def _fresh_head(rows: RealmReader, definition: FileTableDefinition) -> Head:
    try:
        head = read_head(rows, definition.tree_reference, fresh=True)
    except NotFoundError as fault:
        raise _lost(rows, definition) from fault
    if head is None:
        raise _lost(rows, definition)
    return head


def _tree_at(tx: Transaction) -> PartitionTree:
    if tx.head is None:
        raise CorruptionError(f"reference {tx.reference!r} has no partition tree: create the file table again to complete it")
    return _built(tx.index(_TREE), tx.index(PARTITIONS), tx.reference)


def _tree_of(head: Head) -> PartitionTree:
    return _built(head.index(_TREE), head.index(PARTITIONS), f"commit {id_text(head.id)}")


def _built(tree: Index, partitions: Index, where: str) -> PartitionTree:
    number = tree.get(_NUMBER)
    if number is None:
        raise CorruptionError(f"{where} has no number of a partition tree")
    splits = {_path(key): bytes(value.data[8:]) for key, value in partitions.range()}
    return PartitionTree(_number(number.data), splits)


def _put_splits(tx: Transaction, splits: Mapping[PartitionId, bytes], number: int) -> None:
    raw = number.to_bytes(8, "big")
    tx.index(_TREE).put(_NUMBER, IndexValue(None, raw))
    partitions = tx.index(PARTITIONS)
    for partition, point in splits.items():
        partitions.put(partition.encode(), IndexValue(None, raw + point))


def _path(key: bytes) -> PartitionId:
    return PartitionId(bytes(key).decode())


def _number(data: bytes) -> int:
    if len(data) != 8:
        raise CorruptionError(f"{bytes(data)!r} is no number of a partition tree: it has {len(data)} bytes, not 8")
    return int.from_bytes(data, "big")


def _check_points(splits: Mapping[PartitionId, bytes]) -> None:
    for partition, point in splits.items():
        if len(point) > LONGEST_POINT:
            raise RefusedError(
                f"the split point of partition {partition[:80]!r} has {len(point)} bytes: the limit is {LONGEST_POINT}; a prefix of the"
                " key splits as well"
            )


def _lost(rows: RealmReader, definition: FileTableDefinition) -> CorruptionError:
    return CorruptionError(
        f"{_label(rows, definition)} has no partition tree in reference {definition.tree_reference!r}: if its creation was interrupted,"
        " create it again with the same fields; otherwise restore the reference from a backup of the database"
    )


def _label(rows: RealmReader, definition: FileTableDefinition) -> str:
    return f"file table {definition.name!r} of realm {rows.realm!r}"
