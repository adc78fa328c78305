"""Groups of commits: written by hand as they lie in the database, or made by threads that commit together."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from headwater.clock import Micros
from headwater.commits import Commit, Head, Operation, Transaction, commit_change, read_head
from headwater.commits.commit import TAIL
from headwater.index import Index, IndexEditor, IndexLimits, IndexValue
from headwater.store import ObjectId, RealmStore

__all__ = ["Edits", "commit_together", "write_group", "write_group_on"]

Edits = Mapping[bytes, IndexValue | None]
"""What a member puts, by key; None: removes."""
LIMITS = IndexLimits(embedded_bytes=1024, stripe_bytes=1024)


def write_group(rows: RealmStore, edits: Sequence[Edits], *, reference: str = "main", index: str = "things") -> list[ObjectId]:
    """Put a group with one member for each of ``edits`` on top of a reference. Returns their ids, the oldest first.

    Its properties are those of the commit beneath.
    """
    ids = write_group_on(read_head(rows, reference, fresh=True), rows, edits, index=index)
    rows.advance_reference(rows.read_reference(reference, fresh=True), ids[-1])
    return ids


def write_group_on(base: Head | None, rows: RealmStore, edits: Sequence[Edits], *, index: str = "things") -> list[ObjectId]:
    """The same on top of a commit, or on nothing, with no reference to it."""
    held = {} if base is None else {name: IndexEditor(base.index(name)) for name in base.names}
    editor = held.setdefault(index, IndexEditor(Index()))
    tail = () if base is None else (base.id, *base.commit.tail)[:TAIL]
    seq, time = (0, rows.clock.now()) if base is None else (base.commit.seq, max(base.commit.time, rows.clock.now()))
    ids = rows.new_ids(len(edits))
    written = []
    for depth, (commit_id, changes) in enumerate(zip(ids, edits, strict=True), 1):
        for key, value in changes.items():
            editor.remove(key) if value is None else editor.put(key, value)
        is_last = depth == len(edits)
        stored = {name: one.stored(rows.new_ids, LIMITS) for name, one in held.items()} if is_last else {}
        for made in stored.values():
            written += made.objects
        commit = Commit(
            seq=seq + depth,
            tail=tail,
            time=Micros(time + depth),
            properties={} if base is None else base.commit.properties,
            operations=tuple(_operation(index, key, value) for key, value in sorted(changes.items())),
            indexes={name: made.container for name, made in stored.items()},
            base=None if is_last or base is None else base.id,
            depth=0 if is_last else depth,
        )
        written.append((commit_id, commit))
        tail = (commit_id, *tail)[:TAIL]
    rows.write_objects(written)
    return ids


def commit_together(
    rows: RealmStore, reference: str, changes: Sequence[Callable[[Transaction], object]], *, properties: dict[str, object]
) -> list[ObjectId]:
    """Commit these changes by a thread each, as one group in this order. Returns the commits."""
    made: list[ObjectId] = []

    def work(change: Callable[[Transaction], object]) -> None:
        done = commit_change(rows, reference, change, properties=dict(properties))
        assert done.commit_id is not None
        made.append(done.commit_id)

    threads = [threading.Thread(target=work, args=(change,)) for change in changes[1:]]

    def lead(tx: Transaction) -> None:
        changes[0](tx)
        for thread in threads:
            if not thread.ident:
                thread.start()
            _wait_until_in_line(thread)

    work(lead)
    for thread in threads:
        thread.join(60)
    return sorted(made)  # ids are drawn in the order of the group


def _wait_until_in_line(thread: threading.Thread) -> None:
    for _ in range(1_000_000):
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and (frame.f_code.co_name, frame.f_globals["__name__"]) == (
            "wait_for_signal",
            "headwater.commits.commit_queue",
        ):
            return
        threading.Event().wait(0.0001)
    raise AssertionError(f"{thread} does not wait for its turn")


def _operation(index: str, key: bytes, value: IndexValue | None) -> Operation:
    if value is None:
        return Operation(index, key, removed=True)
    return Operation(index, key, object_id=value.object_id, data=value.data)
