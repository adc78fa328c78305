"""A reference of a catalog, opened for the caller of a request: what stands in it, and what of that may be shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.access import Privilege, reference_of
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.store import ObjectId, id_of, id_text
from headwater_server.call import Call
from headwater_server.nessie.nessie_session import NessieSession, SeenReference, open_nessie
from headwater_server.nessie.reference_paths import parse_hash, parse_reference_path
from headwater_server.nessie.shown_pages import PageTokens, expired_page_error

_LISTING: Final = (Privilege.NAMESPACE_LIST, Privilege.TABLE_LIST, Privilege.VIEW_LIST)


@dataclass(frozen=True, slots=True)
class ContentsReader:
    """What a caller reads of one reference.

    seen          fixed at one commit
    """

    session: NessieSession
    seen: SeenReference

    @property
    def ref(self) -> str:
        """The reference as answers name it."""
        return self.seen.name or f"@{self.seen.hash}"

    @property
    def commit(self) -> str | None:
        """The commit that is read; None: nothing was committed yet."""
        return self.seen.commit_text

    @property
    def shows_all(self) -> bool:
        """Whether the caller may certainly list whatever stands there, so that nothing need be asked about."""
        decisions = self.session.decisions
        if self.seen.access is None or decisions is None:
            return True
        reference = reference_of(self.seen.rights, self.session.definition)
        return all(decisions.holds_wide(privilege, reference) for privilege in _LISTING)

    def tokens_of(self, listing: str) -> PageTokens:
        """The tokens of a listing, which is named with all that its pages depend on."""
        return PageTokens.of_listing(self.session, f"management {listing}", self.seen)

    def at_commit(self, commit_id: ObjectId) -> ContentsReader:
        """Read the reference at a commit that a page token of it pins; raises RefusedError where that was collected."""
        try:
            head = self.session.catalog.resolve(id_text(commit_id))
        except ExpiredError as fault:
            raise expired_page_error(fault) from fault
        return replace(self, seen=replace(self.seen, state=BranchState(self.session.catalog, self.session.rows, head)))


def open_contents(call: Call[Any, Any]) -> NessieSession:
    """The catalog of a call's path; raises NotFoundError, in the words of management, also where the caller may see nothing of it."""
    try:
        return open_nessie(call)
    except NotFoundError:
        realm, catalog = call.path["realm"], call.path["catalog"]
        if not call.served.serves(realm):
            raise
        raise NotFoundError(f"realm {realm!r} has no catalog {catalog[:200]!r}") from None


def open_reader(call: Call[Any, Any], *, ref: str | None = None) -> ContentsReader:
    """The reference of a call's path, or another one of its catalog; raises as ``NessieSession.see_reference`` does."""
    session = open_contents(call)
    return ContentsReader(session, session.see_reference(parse_reference_path(call.path["ref"] if ref is None else ref)))


def open_history(call: Call[Any, Any]) -> ContentsReader:
    """The reference of a call's path, whose log the caller may read; raises ForbiddenError, too."""
    reader = open_reader(call)
    reader.session.check_history(reader.seen.rights)
    return reader


def bare_name(session: NessieSession, text: str) -> str:
    """The branch or tag that a text names, with the default branch by its name; raises RefusedError for a text that names a commit."""
    path = parse_reference_path(text)
    if not path.is_bare or path.name is None:
        raise RefusedError(f"{text!r} names a commit: give the name of a branch or tag alone")
    return session.definition.default_branch if path.name == "-" else path.name


def parse_commit(name: str, text: str) -> ObjectId:
    """The commit of a hash; raises RefusedError, which names the field, for a text that is none."""
    try:
        commit_id = parse_hash(text)
    except NotFoundError:
        commit_id = None
    except RefusedError as fault:
        raise RefusedError(f"{name}: {fault}") from None
    if commit_id is None:
        raise RefusedError(f"{name}: {text[:80]!r} is no hash of a commit here, which is 16 hex digits")
    return commit_id


def commit_of_token(token: str) -> ObjectId:
    """The commit that a token of a log names; raises RefusedError for a text that is no such token."""
    try:
        return id_of(token)
    except RefusedError:
        raise RefusedError("pageToken: this is no token that a page of this list ended with: begin again, without it") from None
