"""Who made a commit, noted by whoever answers for a caller."""

from __future__ import annotations

from typing import Any

from headwater.commits import commit_change, committing_as, read_head
from headwater.index import IndexValue
from headwater.store import RealmStore


def put(rows: RealmStore, key: bytes, **properties: Any) -> dict[str, Any]:
    """Commit a key; returns the properties of the commit."""
    rows.ensure_reference("r")
    commit_change(rows, "r", lambda tx: tx.index("i").put(key, IndexValue(None, b"")), properties=properties)
    head = read_head(rows, "r", fresh=True)
    assert head is not None
    return head.commit.properties


def test_commit_notes_who_made_it(rows: RealmStore) -> None:
    with committing_as("alice"):
        assert put(rows, b"a", other=1) == {"committer": "alice", "other": 1}
        assert put(rows, b"b", committer="bob") == {"committer": "bob"}


def test_commit_of_nobody_notes_none(rows: RealmStore) -> None:
    with committing_as("alice"):
        pass

    assert put(rows, b"a") == {}
