"""What a merge brought to a branch, and a restoration of the branch took back: a later merge of the same source has to ask about it.

Judged by commits, all of the source was merged, and nothing would be merged again; judged by contents, the branch does not have it.
Only the caller knows which one is right, so such a key is a conflict until its mode is FORCE or DROP. A change that the branch itself made
and took back is not a conflict: a source that has it because it forked later did not make that change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwater.catalogs.content import ContentKey, ContentValue
from headwater.catalogs.content_operations import CONTENT, Conflict, ConflictKind, content_view, value_conflict
from headwater.catalogs.history.commit_meta import merged_heads, restored_state
from headwater.catalogs.history.content_diff import ContentChange, is_same_content
from headwater.commits import Head, LogRange, read_commit, read_log
from headwater.index import Index
from headwater.store import ObjectId, RealmReader, id_text

_MOST_LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class UndoneChange:
    """A change of the source that was merged, and then taken back.

    restoration   the commit that took it back
    """

    change: ContentChange
    restoration: ObjectId

    def conflict(self, now: ContentValue | None) -> Conflict | None:
        """The conflict of merging it again onto what the target has now."""
        key, after = self.change.key, self.change.after
        text = f"was merged before, and commit {id_text(self.restoration)} restored what the branch had until then:"
        text += " FORCE takes the source's again, DROP leaves the branch's"
        if now is None:
            return None if after is None else Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, text)
        if after is None:
            return Conflict(ConflictKind.KEY_EXISTS, key, text)
        return value_conflict(key, now, after, text)


UndoneChanges = Mapping[ContentKey, UndoneChange]


def find_undone(
    rows: RealmReader, restorations: Sequence[ObjectId], changes: Sequence[ContentChange], content: Index
) -> dict[ContentKey, UndoneChange]:
    """Find the changes that merges brought, and that restorations took back.

    rows            the rows that have the target's commits, written or not
    restorations    of the target, newest first
    changes         those that would be merged if the restored states were the target's history
    content         of the target now
    """
    head = content_view(content, (change.key for change in changes))
    left = {change.key.to_index(): change for change in changes if not is_same_content(head.get(change.key), change.after)}
    found: dict[ContentKey, UndoneChange] = {}
    for restoration in restorations:
        if not left:
            break
        for key in _brought_by_merges(read_commit(rows, restoration), left):
            change = left.pop(key)
            found[change.key] = UndoneChange(change, restoration)
    return found


def _brought_by_merges(restoration: Head, keys: Collection[bytes]) -> set[bytes]:
    """Those of some index keys that a restoration changed, and a merge since the restored state, too."""
    wanted = _touched(restoration, keys)
    restored, tail, found = restored_state(restoration.commit), restoration.commit.tail, set[bytes]()
    if not wanted or not tail or restored is None:
        return found
    for commit in read_log(restoration.rows, tail[0], stretch=LogRange(within=_MOST_LOOKED_AT)):
        if commit.id == restored.commit or found == wanted:
            break
        if merged_heads(commit.commit):
            found |= _touched(commit, wanted)
    return found


def _touched(commit: Head, keys: Collection[bytes]) -> set[bytes]:
    return {operation.key for operation in commit.commit.operations if operation.index == CONTENT and operation.key in keys}
