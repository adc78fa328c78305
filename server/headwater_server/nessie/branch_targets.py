"""The branch that a commit, a merge or a transplant goes to, as a caller names it together with the commit that it has seen of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headwater.catalogs import CommitMeta, RefKind
from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg_catalog import IcebergCatalog
from headwater.store import ObjectId
from headwater_server.call import Call
from headwater_server.lake_sessions import LakeSessions
from headwater_server.nessie.nessie_session import NessieSession, SeenReference
from headwater_server.nessie.reference_paths import ReferencePath, hash_text
from headwater_server.nessie.reference_shapes import ReferenceBody
from headwater_server.warehouse_address import WarehouseAddress


@dataclass(frozen=True, slots=True)
class BranchTarget:
    """A branch to be changed.

    seen          it as it is now
    expected      the commit of it that the change was made from; None: none is named, or that before its first commit
    is_before_all the caller has seen it before its first commit, and it has commits by now
    """

    session: NessieSession
    name: str
    seen: SeenReference
    expected: ObjectId | None
    is_before_all: bool

    def open_lake(self) -> IcebergCatalog:
        """The branch, open to the caller."""
        call = self.session.call
        name = None if self.name == self.session.definition.default_branch else self.name
        address = WarehouseAddress(call.path["realm"], call.path["catalog"], name)
        return call.served.part(LakeSessions).open_session(address, call.caller).lake

    @property
    def expected_hash(self) -> str | None:
        """The expected commit as an answer has it."""
        return hash_text(None) if self.is_before_all else None if self.expected is None else hash_text(self.expected)

    def body_at(self, head: ObjectId | None) -> ReferenceBody:
        """The branch at a commit."""
        return ReferenceBody("BRANCH", self.name, hash_text(head))


def open_branch(session: NessieSession, path: ReferencePath, *, is_hash_needed: bool) -> BranchTarget:
    """The branch that a path names. Its rights are sought by its name: of the expected commit nothing is shown.

    is_hash_needed  version 2 demands the expected commit, version 1 takes the head for it
    raises        RefusedError for a tag or a commit, and without a hash; NotFoundError also for an expected commit that is not on it
    """
    if path.name is None:
        raise RefusedError(f"{path} is a commit that stands alone: name the branch to be changed")
    if is_hash_needed and path.hash is None:
        raise RefusedError(f"{path} does not say by its hash from which commit the change was made: write NAME@HASH")
    if path.is_ambiguous:
        raise RefusedError(f"{path} counts back from a head that may have moved: count from a hash, NAME@HASH{path.steps}")
    seen = session.see_reference(replace(path, hash=None, steps=""))
    if seen.kind is not RefKind.BRANCH or seen.name is None:
        raise RefusedError(f"{path.name!r} is a tag: only branches can be changed")
    if path.is_no_ancestor:
        return BranchTarget(session, seen.name, seen, None, is_before_all=seen.head is not None)
    expected = None if path.hash is None else session.catalog.resolve(path.to_revspec(), exact=True)
    if path.hash is not None and expected is None:
        raise NotFoundError(f"branch {seen.name!r} has no commit yet, and so not {path.hash}")
    return BranchTarget(session, seen.name, seen, None if expected is None else expected.id, is_before_all=False)


def authored(meta: CommitMeta, call: Call[Any, Any]) -> CommitMeta:
    """The metadata of a commit; whoever calls is its author where it names none."""
    return meta if meta.authors or call.caller is None else replace(meta, authors=(call.caller.name,))
