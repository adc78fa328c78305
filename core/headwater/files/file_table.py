"""A file table: its definition, its references and its tree, and the order in which both are read and written.

References and tree lie in two databases, so their order is fixed::

    split     commits the tree of number n            moves references of the split leaves, and writes n with them
    reader                                 reads references, of number m          reads the tree, fresh: n >= m

An old tree with new references would lose rows: it does not know the partitions that refer to them. A new tree with old references is
right: references of a partition that was split meanwhile stay valid, and each leaf reads its own range of their files. So a reader
whose tree is older than its references reads again, and then raises TreeBehindError: one database was restored without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.files.file_errors import TreeBehindError
from headwater.files.file_references import FileReference, FileSnapshot, PartitionId, RequestState, SplitReference
from headwater.files.file_table_definition import FileTableDefinition
from headwater.files.file_table_registry import find_file_table, read_file_table
from headwater.files.partition_tree import PartitionTree, RowKeyRange, ancestors_of
from headwater.files.reference_store import FileReferenceStore, FileScope
from headwater.files.stored_tree import Fence, commit_splits, read_tree, read_tree_as_of, read_tree_at
from headwater.store import ObjectId, RealmStore

ALL_KEYS = RowKeyRange()
_LOOKS = 3
_PAUSE_SECONDS = 0.2
_BATCH = 1000
"""References that are moved in one transaction."""


@dataclass(frozen=True, slots=True)
class LeafRead:
    """What has to be read of one leaf: the rows of these files whose key is in ``keys``.

    keys          the range of the leaf, as far as it was asked for
    references    of the leaf and of its ancestors, by filename: a file of an ancestor has rows of other leaves, too
    """

    leaf: PartitionId
    keys: RowKeyRange
    references: tuple[FileReference, ...]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """All rows of a range at one point in time: those of its leaves, in the order of their ranges; leaves without files are left out."""

    tree: PartitionTree
    leaves: tuple[LeafRead, ...]

    @property
    def filenames(self) -> list[str]:
        return sorted({reference.filename for leaf in self.leaves for reference in leaf.references})


class FileTable:
    """A handle on one file table. ``references`` is the store of its references; ``definition`` is as old as the handle."""

    def __init__(self, rows: RealmStore, definition: FileTableDefinition, references: FileReferenceStore) -> None:
        self.rows = rows
        self.definition = definition
        self.references = references

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def label(self) -> str:
        """The table and its realm, for messages."""
        return f"file table {self.definition.name!r} of realm {self.rows.realm!r}"

    @property
    def scope(self) -> FileScope:
        return FileScope(self.rows.key, self.definition.id)

    def check_writable(self) -> FileTableDefinition:
        """Read the definition now, and keep it; raises FileTableClosedError unless the table is ACTIVE."""
        definition = find_file_table(self.rows, table_id=self.definition.id)
        if definition is None:
            raise RefusedError(f"{self.label} was deleted: open it again by its name")
        self.definition = definition
        definition.check_writable(self.rows.realm)
        return definition

    def read_tree(self, *, commit: ObjectId | None = None, time: Micros | None = None) -> PartitionTree:
        """The newest tree, asked of the database; or that at a commit, or as of a time.

        raises        CorruptionError when it was lost · for a commit or time: NotFoundError, ExpiredError
        """
        if commit is not None:
            return read_tree_at(self.rows, self.definition, commit)
        if time is not None:
            return read_tree_as_of(self.rows, self.definition, time)
        return read_tree(self.rows, self.definition)

    def split_leaves(self, points: Mapping[PartitionId, bytes], *, fence: Fence | None = None) -> PartitionTree:
        """Split leaves at points, as many levels as are named, in one commit; then move references down to the leaves.

        Interrupted after the commit, the table reads the same, and the next split or ``push_down_references`` moves them.

        raises        FileTableClosedError; RefusedError when a partition is no leaf, or a point not inside of it; NotFoundError
        """
        self.check_writable()
        tree = commit_splits(self.rows, self.definition, points, fence=fence)
        self.push_down_references(fence=fence)
        return tree

    def push_down_references(self, *, fence: Fence | None = None) -> int:
        """Move the references of partitions that were split down to the leaves. Returns how many were moved.

        References that are assigned to a job stay where they are: the job's output takes their place, and is moved later.
        """
        snapshot, tree = self.read_both()
        waiting = [each for each in snapshot.references if each.job is None and each.partition in tree.splits]
        leaves = {partition: tree.leaves_below(partition) for partition in {each.partition for each in waiting}}
        splits = [_split_among(each, leaves[each.partition], tree.number) for each in waiting]
        return sum(self._apply_splits(splits[at : at + _BATCH], fence) for at in range(0, len(splits), _BATCH))

    def plan_read(self, keys: RowKeyRange = ALL_KEYS) -> ReadPlan:
        """Which files have to be read for which leaf of a range: the references at one point in time, with a tree that is no older.

        raises        TreeBehindError when the tree is older than the references, even after a while
        """
        snapshot, tree = self.read_both()
        by_partition: dict[PartitionId, list[FileReference]] = {}
        for reference in snapshot.references:
            by_partition.setdefault(reference.partition, []).append(reference)
        plans = (_plan_leaf(tree, leaf, keys, by_partition) for leaf in tree.leaves_in(keys))
        return ReadPlan(tree, tuple(plan for plan in plans if plan.references))

    def read_both(self) -> tuple[FileSnapshot, PartitionTree]:
        """All references at one point in time, and a tree that is no older than they are.

        raises        TreeBehindError when the tree is older, even after a while
        """
        for look in range(_LOOKS):
            if look:
                self.rows.clock.sleep(_PAUSE_SECONDS)  # a replica of the realm's database may be a little late
            snapshot = self.references.snapshot()  # first: see the head of this module
            tree = read_tree(self.rows, self.definition)
            strangers = {
                reference.partition for reference in snapshot.references if not tree.has_partition(reference.partition)
            }
            if snapshot.tree_number <= tree.number and not strangers:
                return snapshot, tree
        raise _behind(self.label, snapshot, tree, strangers)

    def _apply_splits(self, splits: Sequence[SplitReference], fence: Fence | None) -> int:
        if fence is not None:
            fence()
        # Each by itself: a job may take one of the references meanwhile, and that one stays where it is.
        outcomes = self.references.apply_requests(splits)
        return sum(outcome.state is RequestState.APPLIED for outcome in outcomes)

    def close(self) -> None:
        self.references.close()

    def __enter__(self) -> FileTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_file_table(rows: RealmStore, name: str, open_references: Callable[[FileScope], FileReferenceStore]) -> FileTable:
    """Open a file table of a realm; raises NotFoundError when there is none of this name."""
    definition = read_file_table(rows, name)
    return FileTable(rows, definition, open_references(FileScope(rows.key, definition.id)))


def _plan_leaf(
    tree: PartitionTree, leaf: PartitionId, keys: RowKeyRange, by_partition: Mapping[PartitionId, Iterable[FileReference]]
) -> LeafRead:
    references = [reference for partition in (leaf, *ancestors_of(leaf)) for reference in by_partition.get(partition, ())]
    return LeafRead(
        leaf, intersect_ranges(tree.range_of(leaf), keys), tuple(sorted(references, key=lambda each: each.filename))
    )


def intersect_ranges(one: RowKeyRange, other: RowKeyRange) -> RowKeyRange:
    """The keys that are in both ranges."""
    lows = [low for low in (one.low, other.low) if low is not None]
    highs = [high for high in (one.high, other.high) if high is not None]
    return RowKeyRange(max(lows, default=None), min(highs, default=None))


def _split_among(source: FileReference, targets: Sequence[PartitionId], tree_number: int) -> SplitReference:
    rows = source.rows // len(targets)
    return SplitReference(
        source=source,
        targets=tuple(
            FileReference(filename=source.filename, partition=target, rows=rows, is_estimate=True, is_whole_file=False)
            for target in targets
        ),
        tree_number=tree_number,
    )


def _behind(label: str, snapshot: FileSnapshot, tree: PartitionTree, strangers: Iterable[PartitionId]) -> TreeBehindError:
    stranger = min(strangers, default=None)
    what = (
        f"the references are of change {snapshot.tree_number} of the partition tree"
        if snapshot.tree_number > tree.number
        else f"partition {stranger!r} refers to files"
    )
    return TreeBehindError(
        f"{label}: {what}, and the newest tree is that of change {tree.number}. The realm's database was restored without that of"
        " the file references: restore both as of one time, the references' database no later than the realm's",
        tree_number=tree.number,
        references_number=snapshot.tree_number,
    )
