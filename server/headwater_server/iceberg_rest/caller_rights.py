"""What the caller of a request may do, asked before anything is done for it. Where nobody has to prove who calls, everything is allowed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headwater.access import ForbiddenError, Privilege, SecurableKind
from headwater.catalogs import ContentKey, RequestKey, token_behind
from headwater.errors import HeadwaterError, NotFoundError
from headwater.iceberg_catalog import KeyPage, TableCommit, VersionMark
from headwater_server.audit_trail import current_trail
from headwater_server.iceberg_rest.listings import PageSource
from headwater_server.lake_sessions import LakeSession

_OF_DATA = frozenset(
    {
        "add-snapshot",
        "set-snapshot-ref",
        "remove-snapshots",
        "remove-snapshot-ref",
        "set-statistics",
        "remove-statistics",
        "set-partition-statistics",
        "remove-partition-statistics",
        "set-location",
    }
)
"""Updates of a table that change which files it has, or where they lie."""


def check_content(session: LakeSession, privilege: Privilege, *keys: ContentKey, request: RequestKey | None = None) -> None:
    """Check a privilege on what stands at some keys; raises as ``LakeAccess.check_content`` does.

    request       if the caller's own earlier request has taken away what its right was on, it passes, and is only answered again
    """
    if session.access is None:
        return
    state = session.lake.session.state()
    for key in keys:
        try:
            _note(session, privilege, key, partial(session.access.check_content, state, privilege, key))
        except HeadwaterError:
            if request is None or not session.lake.session.was_applied(request):
                raise


def check_marked(session: LakeSession, privilege: Privilege, mark: VersionMark) -> None:
    """Check a privilege on a version that was marked, without another look at the reference."""
    if session.access is not None:
        check = partial(session.access.check_content, mark.state, privilege, mark.key, content_id=mark.content_id)
        _note(session, privilege, mark.key, check)


def holds_marked(session: LakeSession, privilege: Privilege, mark: VersionMark) -> bool:
    """Whether a privilege is held, where an answer has more for whoever holds it; noted if so, for nothing is refused."""
    if session.access is None:
        return True
    try:
        session.access.check_content(mark.state, privilege, mark.key, content_id=mark.content_id)
    except (ForbiddenError, NotFoundError):
        return False
    current_trail().note_check(privilege, f"{session.address} {mark.key}", is_held=True)
    return True


def check_creation(session: LakeSession, privilege: Privilege, *keys: ContentKey) -> None:
    """Check that things may be created at some keys; raises as ``LakeAccess.check_creation`` does."""
    if session.access is None:
        return
    state = session.lake.session.state()
    for key in keys:
        _note(session, privilege, key, partial(session.access.check_creation, state, privilege, key))


def _note(session: LakeSession, privilege: Privilege, key: ContentKey, check: Callable[[], None]) -> None:
    """Check, and note it for the audit log, also where it is told as something that is missing."""
    trail, on = current_trail(), f"{session.address} {key}"
    try:
        check()
    except HeadwaterError:
        trail.note_check(privilege, on, is_held=False)
        raise
    trail.note_check(privilege, on, is_held=True)


def check_table_updates(session: LakeSession, commit: TableCommit) -> None:
    """Check what the updates of a commit to a table need: to create it, to change its data, or to change nothing but metadata."""
    if any(each.get("type") == "assert-create" for each in commit.requirements):
        return check_creation(session, Privilege.TABLE_CREATE, commit.key)
    is_data = any(each.get("action") in _OF_DATA for each in commit.updates)
    return check_content(session, Privilege.TABLE_WRITE_DATA if is_data else Privilege.TABLE_WRITE_PROPERTIES, commit.key)


def listed_source(session: LakeSession, kind: SecurableKind, source: PageSource) -> PageSource:
    """A listing of what the caller may see. Its pages may be shorter than was asked for, and only the last one may be empty."""
    if session.access is None:
        return source
    assert session.seal is not None, "a caller without a seal"  # what is missing must never show everything
    access, seal, state = session.access, session.seal, session.lake.session.state()

    def read(*, token: str | None, limit: int | None) -> KeyPage:
        token = seal.open(token) if token else None
        while True:
            page = source(token=token, limit=limit)
            found = access.filter_listed(state, kind, page.keys, content_ids=page.content_ids)
            if page.next_token is None:
                return KeyPage(found)
            if found:  # the token names the last key, which the caller may not see
                return KeyPage(found, seal.close(token_behind(page.next_token, found[-1])))
            token = page.next_token

    return read
