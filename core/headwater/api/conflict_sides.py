"""What both sides of a conflict had done: what a person needs to decide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from headwater.catalogs import ContentKey, KeyComparison
from headwater.catalogs.history.key_comparison import KeySide, SideCommit
from headwater.clock import as_datetime
from headwater.iceberg.metadata_changes import SnapshotFacts
from headwater.store import id_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedSnapshotInfo:
    """A snapshot that a commit brought. Counts are None where its writer said nothing of them.

    operation     append, replace, overwrite or delete; None: not said
    """

    snapshot_id: int
    operation: str | None
    added_rows: int | None
    removed_rows: int | None
    added_files: int | None
    removed_files: int | None

    @classmethod
    def of(cls, facts: SnapshotFacts) -> AddedSnapshotInfo:
        """The values of a snapshot."""
        return cls(
            snapshot_id=facts.snapshot_id,
            operation=facts.operation,
            added_rows=facts.added_rows,
            removed_rows=facts.removed_rows,
            added_files=facts.added_files,
            removed_files=facts.removed_files,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCommitInfo:
    """One commit of a side that changed the table, view, namespace or function.

    committer     the principal whose request made it; empty: not known
    authors       as the request named them, not verified
    snapshots     of an Iceberg table, oldest first; none where its metadata is not stored in the catalog
    """

    hash: str
    time: datetime
    committer: str
    authors: tuple[str, ...]
    message: str
    action: str
    snapshots: tuple[AddedSnapshotInfo, ...]

    @classmethod
    def of(cls, commit: SideCommit) -> SideCommitInfo:
        """The values of a commit."""
        return cls(
            hash=id_text(commit.id),
            time=as_datetime(commit.time),
            committer=commit.meta.committer,
            authors=commit.meta.authors,
            message=commit.meta.message,
            action=str(commit.action),
            snapshots=tuple(map(AddedSnapshotInfo.of, commit.snapshots)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSideInfo:
    """What one side did since the common ancestor.

    key           where it stands on this side; None: it is gone, or never was there
    commits       those that changed it, newest first, the first ten; ``commit_count`` is how many there are
    changes       what differs from the ancestor, such as ``column``, ``property`` or ``rows``: each with its text before and after
    """

    key: str | None
    commits: tuple[SideCommitInfo, ...]
    commit_count: int
    snapshots: tuple[AddedSnapshotInfo, ...]
    changes: tuple[tuple[str, str | None, str | None], ...]

    @classmethod
    def of(cls, side: KeySide) -> ConflictSideInfo:
        """The values of a side."""
        return cls(
            key=None if side.key is None else str(side.key),
            commits=tuple(map(SideCommitInfo.of, side.commits)),
            commit_count=side.commit_count,
            snapshots=tuple(map(AddedSnapshotInfo.of, side.changes.snapshots)),
            changes=tuple((facet.kind, facet.before, facet.after) for facet in side.changes.facets),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSidesInfo:
    """Both sides of a conflict: the branch that is merged into, and the source."""

    into: ConflictSideInfo
    source: ConflictSideInfo


def sides_of(comparisons: list[KeyComparison]) -> Mapping[ContentKey, ConflictSidesInfo]:
    """Both sides of each key."""
    return {
        each.key: ConflictSidesInfo(into=ConflictSideInfo.of(each.into), source=ConflictSideInfo.of(each.source))
        for each in comparisons
    }
