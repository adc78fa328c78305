"""Branches and tags, created, moved and deleted, as both versions of Nessie's API ask for it.

Every hash is given whole: one that counts back from a head would mean another commit by the time that it is used.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.catalogs import Conflict, ConflictKind, NamedRef, RefKind
from headwater.errors import ConflictError, NotFoundError, RefusedError
from headwater.store import ObjectId, id_text
from headwater_server.nessie.nessie_errors import NameTakenError
from headwater_server.nessie.nessie_session import NessieSession
from headwater_server.nessie.reference_paths import DEFAULT_BRANCH, ReferencePath, check_new_name


def create_named_ref(session: NessieSession, kind: RefKind, name: str, source: ReferencePath) -> NamedRef:
    """Create a branch or tag at a commit.

    source        with a hash; that before the first commit makes an empty one
    raises        RefusedError for a name that Nessie's clients cannot use, and without a hash; NameTakenError; NotFoundError;
                  ForbiddenError
    """
    check_new_name(kind, name)
    _check_exact(source, f"the commit that {kind} {name!r} starts from")
    seen = session.see_reference(source)
    if session.references is not None:
        session.references.check_creation(name, seen.rights)
    refs = session.catalog.refs
    try:
        if seen.head is None:
            return refs.create_empty_ref(kind, name)
        return refs.create_ref(kind, name, source=seen.name, at=seen.head.id)
    except ConflictError as fault:
        raise NameTakenError(str(fault)) from fault


def move_named_ref(session: NessieSession, path: ReferencePath, kind: RefKind | None, target: ReferencePath) -> NamedRef:
    """Move a branch or tag to another commit, and return it as it is then.

    path          its name, with the hash that it has to be at
    kind          what it has to be; None: either
    target        the commit, by a hash; that before the first commit empties the branch or tag
    raises        RefusedError without either hash; ConflictError where it is elsewhere
    """
    _check_named(path)
    _check_exact(path, f"where {path.name} is")
    _check_exact(target, f"the commit that {path.name} shall be at")
    if session.references is not None:
        session.references.check_assignment(_name_of(session, path))
    before = _read_named_ref(session, path, kind)
    seen = session.see_reference(target)
    expected = _expected_of(session, path, before)
    head = None if seen.head is None else seen.head.id
    return session.catalog.refs.assign_ref(before.kind, before.name, head, expected=expected)


def delete_named_ref(session: NessieSession, path: ReferencePath, kind: RefKind | None) -> NamedRef:
    """Delete a branch or tag, and return it as it was; raises as ``move_named_ref`` does."""
    _check_named(path)
    _check_exact(path, f"where {path.name} is")
    if session.references is not None:
        session.references.check_drop(_name_of(session, path))
    before = _read_named_ref(session, path, kind)
    expected = _expected_of(session, path, before)
    return session.catalog.refs.delete_ref(before.kind, before.name, expected=expected)


def _name_of(session: NessieSession, path: ReferencePath) -> str:
    return session.definition.default_branch if path.name in (None, DEFAULT_BRANCH) else str(path.name)


def _read_named_ref(session: NessieSession, path: ReferencePath, kind: RefKind | None) -> NamedRef:
    """The branch or tag that a path names, as it is now. Its kind is told here: the caller's right is asked before.

    raises        RefusedError where it is not of the kind; NotFoundError
    """
    target = session.catalog.read_target(_name_of(session, path))
    assert target.kind is not None and target.name is not None, "a name is no hash"
    if kind is not None and target.kind is not kind:
        raise RefusedError(f"{target.name!r} is a {target.kind}, and no {kind}")
    return session.catalog.refs.read_ref(target.kind, target.name)


def _check_named(path: ReferencePath) -> None:
    if path.name is None:
        raise RefusedError(f"{path} is a commit that stands alone: name the branch or tag that is meant")


def _check_exact(path: ReferencePath, what: str) -> None:
    if path.hash is None:
        raise RefusedError(f"{path} does not say by its hash {what}: write NAME@HASH")


def _expected_of(session: NessieSession, path: ReferencePath, before: NamedRef) -> ObjectId | None:
    """Where the client says that a reference is; None: it has no commit, and this is checked here.

    raises        ConflictError where it has one, and for a hash that is not one of its commits
    """
    if path.is_no_ancestor:
        if before.head is None:
            return None
        raise _unexpected(before, "no commit")
    try:
        head = session.catalog.resolve(path.to_revspec(), exact=True)
    except NotFoundError as fault:
        if path.steps and not _is_elsewhere(session, path):
            raise
        raise _unexpected(before, str(path.hash)) from fault
    if head is None:
        raise _unexpected(before, str(path.hash))
    return head.id


def _is_elsewhere(session: NessieSession, path: ReferencePath) -> bool:
    """Whether a path leads to a commit of the catalog, though to none of the branch or tag that it names."""
    try:
        return session.catalog.resolve(replace(path, name=None).to_revspec(), exact=True) is not None
    except NotFoundError:
        return False


def _unexpected(before: NamedRef, expected: str) -> ConflictError:
    now = "no commit" if before.head is None else id_text(before.head)
    text = f"{before.kind} {before.name!r} is at {now}, expected {expected}: look again"
    return ConflictError(text, details=(Conflict(ConflictKind.UNEXPECTED_HASH, None, text),))
