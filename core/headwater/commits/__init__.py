"""How a change is committed, and what commits lead to: their log, moved references, reachability.

This package knows nothing of realms' states, catalogs or tasks: they are all changes here. Begin with ``committer``:

committer     one call: run the change, publish it, answer; and the waits between attempts
commit_queue  group commit: the queue of one reference, in which the threads of a process take turns
commit_group  the commits that are published together; their write and swap, and its outcome
staged_objects  objects of a large change, written ahead of its commit
commit        a commit as it is stored and read, and the transaction in which a change makes one
ref_updates   pointing a reference at an existing commit beside a collector that deletes
declared_references  references that extensions keep in realms, and the list of them
pins          commits that are kept whole while a task works with them
"""

from headwater.commits.as_of import (
    AbsentReference,
    DescribeReference,
    check_reference_times,
    commit_as_of,
    no_state_error,
    pointer_as_of,
    state_as_of,
)
from headwater.commits.commit import Commit, Head, Operation, Transaction, descends, load_head, read_commit, read_head
from headwater.commits.commit_group import PUBLISHED
from headwater.commits.commit_log import (
    CommitLog,
    KeyFilter,
    LogEnd,
    LogRange,
    find_ahead,
    mend_time,
    read_changes,
    read_log,
    sound_times,
)
from headwater.commits.committer import (
    CommitResult,
    SeriesPart,
    commit_change,
    commit_series,
    committing_as,
    complete_operation,
)
from headwater.commits.declared_references import (
    REFERENCES_GROUP,
    DeclaredReference,
    ListedExtension,
    add_reference,
    catalog_extensions,
    declared_reference,
    extensions_at,
    listed_extensions,
    release_listed,
    remove_reference,
)
from headwater.commits.durable_outcomes import confirm_outcome
from headwater.commits.gc_record import (
    COLLECTION_ID,
    CollectionRecord,
    CutLines,
    HistoryCut,
    HistoryCuts,
    MarkChunk,
    SweepState,
    SweptSplit,
    read_collection,
    read_cuts,
)
from headwater.commits.pagination import (
    IndexListing,
    IndexPage,
    PageToken,
    decode_token,
    encode_token,
    read_next_page,
    read_page,
    read_pinned,
    take_page,
)
from headwater.commits.pins import PINS, CommitPin, hold_pins, pin_commits, read_pins, unpin_commits
from headwater.commits.reachability import ReachabilityWalk, VisitedObjects, mark_reachable
from headwater.commits.ref_updates import (
    UNCUT,
    CutPoint,
    assign_reference,
    create_reference_at,
    delete_moving_reference,
    find_cut_point,
    is_note_collected,
    left_line_name,
    newest_move,
)
from headwater.commits.staged_objects import StagedObjects

__all__ = [
    "COLLECTION_ID",
    "PINS",
    "PUBLISHED",
    "REFERENCES_GROUP",
    "UNCUT",
    "AbsentReference",
    "CollectionRecord",
    "Commit",
    "CommitLog",
    "CommitPin",
    "CommitResult",
    "CutLines",
    "CutPoint",
    "DeclaredReference",
    "DescribeReference",
    "Head",
    "HistoryCut",
    "HistoryCuts",
    "IndexListing",
    "IndexPage",
    "KeyFilter",
    "ListedExtension",
    "LogEnd",
    "LogRange",
    "MarkChunk",
    "Operation",
    "PageToken",
    "ReachabilityWalk",
    "SeriesPart",
    "StagedObjects",
    "SweepState",
    "SweptSplit",
    "Transaction",
    "VisitedObjects",
    "add_reference",
    "assign_reference",
    "catalog_extensions",
    "check_reference_times",
    "commit_as_of",
    "commit_change",
    "commit_series",
    "committing_as",
    "complete_operation",
    "confirm_outcome",
    "create_reference_at",
    "declared_reference",
    "decode_token",
    "delete_moving_reference",
    "descends",
    "encode_token",
    "extensions_at",
    "find_ahead",
    "find_cut_point",
    "hold_pins",
    "is_note_collected",
    "left_line_name",
    "listed_extensions",
    "load_head",
    "mark_reachable",
    "mend_time",
    "newest_move",
    "no_state_error",
    "pin_commits",
    "pointer_as_of",
    "read_changes",
    "read_collection",
    "read_commit",
    "read_cuts",
    "read_head",
    "read_log",
    "read_next_page",
    "read_page",
    "read_pinned",
    "read_pins",
    "release_listed",
    "remove_reference",
    "sound_times",
    "state_as_of",
    "take_page",
    "unpin_commits",
]
