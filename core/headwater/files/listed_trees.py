"""What the collector of garbage does for file tables: it knows the names of their trees, buries those of deleted tables, releases names.

A tree's name is listed as long as its table stands in the index ``by-id``. It is released only after its row is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, delete_moving_reference
from headwater.errors import NotFoundError
from headwater.files.file_table_definition import FileTableDefinition, FileTableState, parse_tree_reference, tree_reference
from headwater.files.file_table_registry import BY_ID, FILE_TABLES, find_file_table, list_file_tables
from headwater.store import RealmStore


class ListedTree(NamedTuple):
    """The reference of a tree, with or without a row.

    listed        when it was listed, or its table changed last
    """

    name: str
    listed: Micros


def tree_names(rows: RealmStore) -> list[ListedTree]:
    """List the trees of all file tables, freshly read, also of those that are being deleted.

    raises        CorruptionError when a definition cannot be read
    """
    tables = list_file_tables(rows, with_deleted=True).complete()
    return [ListedTree(table.tree_reference, table.updated) for table in tables]


def tree_text(rows: RealmStore, reference: str) -> str | None:
    """Describe a tree's reference for users; None if it is no tree's. It may end in ``@`` and a commit: a pointer that it left."""
    name, _, left = reference.partition("@")
    table_id = parse_tree_reference(name)
    if table_id is None:
        return None
    definition = find_file_table(rows, table_id=table_id)
    table = table_id if definition is None else definition.name
    return f"the partition tree of file table {table}" + (f" before it left commit {left}" if left else "")


def bury_trees(rows: RealmStore, *, fence: Callable[[], None] | None = None) -> int:
    """Delete the tree's reference of every table that is DELETED. Returns the number of tombstones made."""
    tables = list_file_tables(rows, with_deleted=True)
    return sum(
        delete_moving_reference(rows, table.tree_reference, fence) for table in tables if table.state is FileTableState.DELETED
    )


def release_tree(rows: RealmStore, reference: str, *, older_than: Micros) -> bool:
    """Forget a DELETED table whose tree's row was removed. Returns False when it stays, or the reference is no tree's."""
    table_id = parse_tree_reference(reference)
    if table_id is None:
        return False

    def change(tx: Transaction) -> bool:
        value = tx.index(BY_ID).get(table_id.encode())
        if value is None or value.object_id is None:
            return False
        definition = tx.reader.read_object(value.object_id, FileTableDefinition)
        if definition.state is not FileTableState.DELETED or definition.updated >= older_than:
            return False
        if tx.reader.find_row(tree_reference(table_id)) is not None:
            return False
        return tx.index(BY_ID).remove(table_id.encode())

    try:
        return commit_change(rows, FILE_TABLES, change, message=f"release the tree of file table {table_id}").result
    except NotFoundError:
        return False
