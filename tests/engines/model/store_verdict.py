"""Whether what clients were told, and what a store holds in the end, can be true together. Everything is read from the database, by a
process that nothing disturbs.

Call it when all clients have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from engines.model.commit_promises import (
    FoundCommit,
    FoundHistory,
    acknowledged_commits_are_there,
    commits_put_one_marker_each,
    commits_take_effect_once,
    commits_were_asked_for,
    history_is_in_order,
    looks_see_what_was_told,
    refused_commits_are_not_there,
)
from engines.model.journal import COMMIT, Event, Outcome, is_marker
from engines.model.outcome_promises import errors_say_what_became_of_it
from engines.model.realm_walk import Chain, references_of
from engines.model.store_promises import rows_of, served_realms
from headwater.commits import Commit, Head, read_log
from headwater.realms import Realm
from headwater.store import RealmStore, ReferenceRow, Store, StoredObject, id_text


def faults_of_histories(
    store: Store, events: Sequence[Event], *, lasting: Mapping[str, int], whole: Collection[tuple[str, str]] = ()
) -> list[str]:
    """Where a reference of any realm breaks a promise about commits. A line each; with none, none.

    events        all operations of all clients on this store
    lasting       names of references, of whatever realm, that no one moves but by commits that the events tell of, each with the
                  commits that it had before
    whole         ids of realms and names of references of whose history nothing is ever cut
    """
    faults = errors_say_what_became_of_it(events)
    commits = [event for event in events if event.action == COMMIT]
    for realm in served_realms(store):
        rows = rows_of(store, realm)
        references = references_of(rows)
        for row in references:
            if row.deleted is None and row.pointer is not None:
                where = f"reference {row.name} of realm {realm.id}"
                faults += history_is_in_order(Chain(rows, row.pointer), where, is_whole=(realm.id, row.name) in whole)
                faults += _faults_of_reference(rows, row, events, where, lasting.get(row.name))
        names = {row.name for row in references}
        faults += [f"reference {name} of realm {realm.id} is gone" for name in lasting if _is_of(name, realm, commits) - names]
    return faults


def markers_at(head: Head) -> set[str]:
    """The markers that hold at a commit, in whichever index."""
    found = (key.decode(errors="replace") for name in head.names for key in head.index(name).keys())  # noqa: SIM118
    return {key for key in found if is_marker(key)}


def _faults_of_reference(
    rows: RealmStore, row: ReferenceRow, events: Sequence[Event], where: str, before: int | None
) -> list[str]:
    """``before`` None: others move it too, so it may have lost what was acknowledged, but nothing else."""
    assert row.pointer is not None
    if rows.find_object(row.pointer, StoredObject) is None:
        return [f"{where}: its head {id_text(row.pointer)} is not there"]
    history = _read_history(rows, row, where, before or 0)
    commits = [event for event in events if event.action == COMMIT]
    faults = commits_were_asked_for(history, commits) + refused_commits_are_not_there(history, commits)
    faults += commits_take_effect_once(history, commits) + _faults_of_realm(history, rows, commits)
    if before is None:
        return faults
    of_this = [event for event in events if event.reference == row.name and event.key in (0, row.realm)]
    faults += acknowledged_commits_are_there(history, of_this) + commits_put_one_marker_each(history)
    return faults + looks_see_what_was_told(history, of_this)


def _read_history(rows: RealmStore, row: ReferenceRow, where: str, before: int) -> FoundHistory:
    assert row.pointer is not None
    commits = [
        FoundCommit(commit_id, commit.seq - before, _markers_put(commit))
        for commit_id, commit in Chain(rows, row.pointer).commits()
    ]
    head = next(iter(read_log(rows, row.pointer)))
    return FoundHistory(where, commits, frozenset(markers_at(head)), before)


def _markers_put(commit: Commit) -> tuple[str, ...]:
    if commit.message.startswith("restore"):
        return ()  # puts again what was there
    keys = (operation.key.decode(errors="replace") for operation in commit.operations)
    return tuple(key for key in keys if is_marker(key))


def _faults_of_realm(history: FoundHistory, rows: RealmStore, commits: Iterable[Event]) -> list[str]:
    """A marker is in the realm that it was committed to, and not in a later one of the same name."""
    return [
        f"{history.where}: {event.marker} is there, and was committed to the realm of key {event.key}: {event}"
        for event in commits
        if event.marker in history.there and event.key not in (0, rows.key)
    ]


def _is_of(name: str, realm: Realm, commits: Iterable[Event]) -> set[str]:
    """The reference, if any commit to it was acknowledged in this very realm."""
    return (
        {name}
        if any(one.reference == name and one.key == realm.key and one.outcome is Outcome.OK for one in commits)
        else set()
    )
