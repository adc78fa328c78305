"""How a change becomes the truth, and what it reaches: commits, their log, moved references, reachability.

Knows nothing of realms' states, catalogs or tasks; they are all changes here.
"""

from headwater.commits.ancestry import descends, load_head
from headwater.commits.as_of import Absent, Describe, check_row, commit_as_of, no_state, pointer_as_of, state_as_of
from headwater.commits.collection import (
    COLLECTION_ID,
    Collection,
    Cut,
    CutLines,
    Cuts,
    MarkChunk,
    Sweep,
    Swept,
    read_collection,
    read_cuts,
)
from headwater.commits.completion import complete
from headwater.commits.cuts import UNCUT, CutPoint, cut_point, is_let_go, left_line, newest_move
from headwater.commits.history import changes, ensure_reference, ensure_references, head, log, read_commit
from headwater.commits.making import Committed, Part, Transaction, commit, commit_series
from headwater.commits.moving import assign, create_at
from headwater.commits.objects import Commit, Head, Operation
from headwater.commits.pages import IndexPage, Listing, PageToken, read_next_page, read_page, read_pinned, token_of, token_text
from headwater.commits.pinning import PINS, Pin, pin, pins, unpin
from headwater.commits.reachability import Seen, Walk, reach
from headwater.commits.time_repair import find_ahead, mend_time
from headwater.commits.times import credible_until, sound_times
from headwater.commits.walking import End, Log, Stretch, Touching

__all__ = [
    "COLLECTION_ID",
    "PINS",
    "UNCUT",
    "Absent",
    "Collection",
    "Commit",
    "Committed",
    "Cut",
    "CutLines",
    "CutPoint",
    "Cuts",
    "Describe",
    "End",
    "Head",
    "IndexPage",
    "Listing",
    "Log",
    "MarkChunk",
    "Operation",
    "PageToken",
    "Part",
    "Pin",
    "Seen",
    "Stretch",
    "Sweep",
    "Swept",
    "Touching",
    "Transaction",
    "Walk",
    "assign",
    "changes",
    "check_row",
    "commit",
    "commit_as_of",
    "commit_series",
    "complete",
    "create_at",
    "credible_until",
    "cut_point",
    "descends",
    "ensure_reference",
    "ensure_references",
    "find_ahead",
    "head",
    "is_let_go",
    "left_line",
    "load_head",
    "log",
    "mend_time",
    "newest_move",
    "no_state",
    "pin",
    "pins",
    "pointer_as_of",
    "reach",
    "read_collection",
    "read_commit",
    "read_cuts",
    "read_next_page",
    "read_page",
    "read_pinned",
    "sound_times",
    "state_as_of",
    "token_of",
    "token_text",
    "unpin",
]
