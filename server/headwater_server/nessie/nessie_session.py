"""One catalog as a client of Nessie's API finds it: its references as the client names them, and what its caller may do on each.

Rights are sought on the branch or tag that is named. A commit that its hash names is on none, so it is read by whoever may read history
everywhere. But Nessie's clients name the branch together with the hash that they have just read of it: where that is its head, or was
a moment ago, they mean the branch.

    client                     another client
    reads main: at hash A
                               commits to main: A is its head no more
    reads main@A               allowed, as on main: it is what the client was shown
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from headwater.access import AccessDecisions, AccessRules, ForbiddenError, Privilege, SecurableKind, reference_of
from headwater.catalogs import Catalog, CatalogDefinition, Content, ContentKey, Namespace, RefKind, RefTarget, content_type_of
from headwater.commits import Commit, Head
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError
from headwater.iceberg_catalog import LakeAccess, ReferenceAccess
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.iceberg_catalog.lake_errors import NoSuchNamespaceError, NoSuchTableError, NoSuchViewError
from headwater.iceberg_catalog.lake_privileges import SHOW_PRIVILEGES, securable_kind
from headwater.store import ObjectId, RealmStore, id_text
from headwater_server.audit_trail import current_trail
from headwater_server.call import Call
from headwater_server.identity import PageSeal, PageSeals
from headwater_server.lake_sessions import LakeSession, LakeSessions
from headwater_server.nessie.reference_paths import DEFAULT_BRANCH, ReferencePath, hash_text
from headwater_server.warehouse_address import WarehouseAddress

_MOMENT_MICROS: Final = 60_000_000
"""How long a former head of a branch is still what clients mean by the branch."""
_MISSING = (NoSuchNamespaceError, NoSuchTableError, NoSuchViewError)


@dataclass(frozen=True, slots=True)
class SeenReference:
    """A reference as a caller reads it, fixed at one commit.

    kind, name    None: a commit that its hash alone names
    rights        the text of the reference that rights are sought on
    access        what the caller may do there; None: everything
    """

    kind: RefKind | None
    name: str | None
    state: BranchState
    rights: str
    access: LakeAccess | None
    references: ReferenceAccess | None

    @property
    def head(self) -> Head | None:
        return self.state.head

    @property
    def hash(self) -> str:
        return hash_text(None if self.head is None else self.head.id)

    @property
    def commit_text(self) -> str | None:
        """The commit itself, as catalogs resolve it; None: nothing was committed yet."""
        return None if self.head is None else id_text(self.head.id)

    @property
    def label(self) -> str:
        return f"commit {self.hash}" if self.name is None else f"{self.kind} {self.name!r} at {self.hash}"

    def readable_contents(self, keys: Collection[ContentKey], *, is_asked: bool) -> dict[ContentKey, Content]:
        """The contents of those keys that are there, and that the caller may read.

        is_asked      the client has named the keys: one that it may list and not read is refused, and not left out
        """
        contents = self.state.find_many(list(keys))
        if self.access is None:
            return contents
        seen = {key: self._readable(key, content, is_asked=is_asked) for key, content in contents.items()}
        return {key: content for key, content in seen.items() if content is not None}

    def filter_readable(self, contents: Mapping[ContentKey, Content]) -> Mapping[ContentKey, Content]:
        """Those of some contents of this commit that the caller may read; what is left out is noted nowhere, for nobody is told of it."""
        if self.references is None:
            return contents
        values = {key: self.state.find_value(key) for key in contents}
        known = [(key, value) for key, value in values.items() if value is not None]
        answers = self.references.shows_each(known, self.rights)
        return {key: contents[key] for (key, _), answer in zip(known, answers, strict=True) if answer}

    def _readable(self, key: ContentKey, content: Content, *, is_asked: bool) -> Content | None:
        """A content as the caller may read it; None where it may not."""
        kind = securable_kind(content_type_of(content))
        try:
            self.check_content(SHOW_PRIVILEGES[kind], key, content.id)
        except _MISSING:
            return None
        except ForbiddenError:
            if kind is SecurableKind.NAMESPACE and isinstance(content, Namespace):
                return Namespace(id=content.id)  # listed, for something below it may be seen; its properties may not
            if is_asked:
                raise
            return None
        return content

    def check_content(self, privilege: Privilege, key: ContentKey, content_id: UUID | None) -> None:
        """Check a privilege on what stands at a key, and note it for the audit log; raises as ``LakeAccess.check_content`` does."""
        if self.access is None:
            return
        trail, on = current_trail(), f"{self.label} {key}"
        try:
            self.access.check_content(self.state, privilege, key, content_id=content_id)
        except HeadwaterError:
            trail.note_check(privilege, on, is_held=False)
            raise
        trail.note_check(privilege, on, is_held=True)


@dataclass(frozen=True)
class NessieSession:
    """A catalog, opened for one caller."""

    lake: LakeSession
    call: Call[Any, Any]

    @property
    def catalog(self) -> Catalog:
        return self.lake.lake.session.catalog

    @property
    def definition(self) -> CatalogDefinition:
        return self.catalog.definition

    @property
    def rows(self) -> RealmStore:
        return self.lake.lake.session.rows

    @cached_property
    def decisions(self) -> AccessDecisions | None:
        """What decides about the caller; None: everything is allowed."""
        return None if self.lake.read_rules is None else self.lake.read_rules(self.definition)

    @cached_property
    def references(self) -> ReferenceAccess | None:
        """What the caller may do with branches and tags themselves; None: everything."""
        return None if self.decisions is None else ReferenceAccess(self.definition, self.decisions)

    def seal_for(self, listing: str) -> PageSeal | None:
        """The seal of the caller's tokens of one listing; None where there is no caller."""
        if self.call.caller is None:
            return None
        scope = f"nessie {self.rows.key} {self.definition.id} {listing} {self.call.caller.name}"
        return self.call.served.part(PageSeals).of_scope(scope)

    def is_seen(self) -> bool:
        """Whether the caller may know of the catalog: by any right in it."""
        decisions = self.decisions
        if decisions is None or decisions.reaches(reference_of(None, self.definition)):
            return True
        return isinstance(decisions, AccessRules) and any(rule.on.kind is not SecurableKind.REALM for rule in decisions.rules)

    def check_history(self, text: str | None) -> None:
        """Check that the log and the differences of a reference may be read, and note it for the audit log.

        text          as a caller names it, perhaps with a commit or steps back
        raises        NotFoundError for one that may not be seen; ForbiddenError
        """
        if self.references is None:
            return
        trail, privilege = current_trail(), Privilege.REFERENCE_READ_HISTORY
        try:
            self.references.check_read(text)
        except HeadwaterError:
            trail.note_check(privilege, text, is_held=False)
            raise
        trail.note_check(privilege, text, is_held=True)

    def see_reference(self, path: ReferencePath) -> SeenReference:
        """Resolve a reference that is to be read.

        raises        NotFoundError, also for what the caller may not see; ForbiddenError where it lacks the right to read history
        """
        self._check_seen(path)
        if path.is_no_ancestor:
            return self._before_first_commit(path)
        try:
            target = self.catalog.read_target(path.to_revspec())
        except ExpiredError:
            raise
        except NotFoundError:
            if not self._leads_before_all(path):
                raise
            return self._before_first_commit(path)
        rights = self._rights_text(path, target)
        access = None if self.lake.read_rules is None else LakeAccess(rights, self.lake.read_rules)
        if access is not None:
            access.check_reference(self.definition)
        state = BranchState(self.catalog, self.rows, target.head)
        return SeenReference(target.kind, target.name, state, rights, access, self.references)

    def _check_seen(self, path: ReferencePath) -> None:
        """Check, before anything is read, what the text alone says: that the caller may see the branch or tag, and step back from it.

        Otherwise an error that tells where the steps end would tell of a branch that is hidden.
        """
        if self.lake.read_rules is None:
            return
        is_hash_alone = path.name is None and not path.is_no_ancestor
        text = path.to_revspec() if path.steps or is_hash_alone else path.name or DEFAULT_BRANCH
        LakeAccess(text, self.lake.read_rules).check_reference(self.definition)

    def _leads_before_all(self, path: ReferencePath) -> bool:
        """Whether the last step of a path, such as ``~2``, leads from the first commit of all to the state before it, and no further."""
        before, sign, count = path.steps.rpartition("~")
        if not sign or not count.isdecimal():
            return False
        steps = before if count == "1" else f"{before}~{int(count) - 1}"
        try:
            first = self.catalog.resolve(replace(path, steps=steps).to_revspec())
        except NotFoundError:
            return False
        return first is not None and not first.commit.tail

    def _before_first_commit(self, path: ReferencePath) -> SeenReference:
        """What a reference was before its first commit: nothing, and so nothing that rights could be on."""
        target = None if path.name is None else self.catalog.read_target(path.name)
        rights = DEFAULT_BRANCH if target is None or target.name is None else target.name
        access = None if self.lake.read_rules is None else LakeAccess(rights, self.lake.read_rules)
        if access is not None:
            access.check_reference(self.definition)
        state = BranchState(self.catalog, self.rows, None)
        kind, name = (None, None) if target is None else (target.kind, target.name)
        return SeenReference(kind, name, state, rights, access, self.references)

    def _rights_text(self, path: ReferencePath, target: RefTarget) -> str:
        """The reference that rights are sought on: the branch, also where the client adds the hash that it has just read of it."""
        if path.hash is None or path.steps or target.name is None or target.head is None:
            return path.to_revspec()
        is_meant = target.pointer == target.head.id or self._was_just_left(target.head, target.pointer)
        return target.name if is_meant else path.to_revspec()

    def _was_just_left(self, before: Head, now: ObjectId | None) -> bool:
        """Whether other commits came on top of a branch's commit only a moment ago."""
        since = self.rows.clock.now() - _MOMENT_MICROS
        while now is not None:
            commit = self.rows.find_object(now, Commit)
            if commit is None or commit.time < since or commit.seq <= before.commit.seq:
                return False
            distance = commit.seq - before.commit.seq
            if distance <= len(commit.tail):
                if commit.tail[distance - 1] != before.id:
                    return False
                above = commit if distance == 1 else self.rows.find_object(commit.tail[distance - 2], Commit)
                return above is not None and above.time >= since
            now = commit.tail[-1] if commit.tail else None  # a commit names twenty before it: one in twenty is read
        return False


def open_nessie(call: Call[Any, Any]) -> NessieSession:
    """The catalog that a call's path names.

    raises        NotFoundError, also for one that its caller may see nothing of
    """
    realm, catalog = call.path["realm"], call.path["catalog"]
    hidden = NotFoundError(f"there is no catalog {catalog[:200]!r}")
    try:
        session = NessieSession(
            call.served.part(LakeSessions).open_session(WarehouseAddress(realm, catalog), call.caller), call
        )
    except NotFoundError:
        if call.caller is None:
            raise
        raise hidden from None
    if not session.is_seen():
        current_trail().note_check(Privilege.CATALOG_LIST, f"{realm}/{catalog[:200]}", is_held=False)
        raise hidden
    return session


def realm_of_nessie(path: Mapping[str, str], query: object) -> str:
    """The realm that a path names."""
    return path["realm"]
