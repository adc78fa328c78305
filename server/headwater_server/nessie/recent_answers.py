"""Where a branch or tag was lately, and whether these commits are whole, as Nessie's API tells it.

It asks for the reference's row and for what that names, and not for its commit alone: this is what one looks at after a part of a
database was lost.
"""

from __future__ import annotations

import msgspec

from headwater.catalogs.history.recent_pointers import SCANNED, PointerState, RecentPointer
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, TREE
from headwater_server.nessie.commit_meta_bodies import commit_meta_body
from headwater_server.nessie.nessie_session import NessieSession, open_nessie
from headwater_server.nessie.reference_answers import parse_bare_path, reference_body
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH, hash_text
from headwater_server.nessie.reference_shapes import RecentChangesAnswer, RecentChangesQuery, RecentCommit
from headwater_server.route_table import Route


def recent_routes() -> list[Route]:
    """Make the route of recent changes."""
    return [
        Route(
            method="GET",
            template=f"{TREE}/recent-changes",
            handler=answer_recent_changes,
            name="nessieRecentChanges",
            needs="REFERENCE_READ_HISTORY on the reference",
            summary="Say where a branch or tag was lately, and whether these commits are whole.",
            query=RecentChangesQuery,
            answers={200: RecentChangesAnswer},
            errors=READ_ERRORS,
        )
    ]


def answer_recent_changes(call: Call[RecentChangesQuery, None]) -> Answer:
    """Say where a branch or tag was lately."""
    path, session = parse_bare_path(call.path["ref"]), open_nessie(call)
    if session.references is not None:
        session.references.check_read(path.name)
    recent = session.catalog.recent_pointers(path.name, scan=min(call.query.scan_commits or 0, SCANNED))
    name = recent.ref.name
    return Answer(
        body=RecentChangesAnswer(
            reference=reference_body(recent.ref),
            current=_NOTHING if recent.current is None else _commit(session, name, recent.current),
            previous=[_commit(session, name, pointer) for pointer in recent.previous],
            commit_log_consistency=recent.log.value,
        )
    )


_NOTHING = RecentCommit(NO_ANCESTOR_HASH, PointerState.COMMIT_CONSISTENT.value, None)
"""Where a reference without a commit is."""


def _commit(session: NessieSession, name: str, pointer: RecentPointer) -> RecentCommit:
    entry = pointer.entry
    if entry is not None and session.references is not None:
        entry = session.references.filter_entry(entry, name)
    meta = None if entry is None else msgspec.to_builtins(commit_meta_body(entry))
    return RecentCommit(hash_text(pointer.commit_id), pointer.state.value, meta)
