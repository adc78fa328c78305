"""What one caller may do on one reference of a catalog: checked before anything is read for it, and again on the very state of a change.

A thing that the caller may not even list is told as missing, in the words that a missing one is told in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from headwater.access import (
    AccessDecisions,
    AccessQuestion,
    ForbiddenError,
    Privilege,
    ReferenceName,
    Securable,
    SecurableKind,
    reference_of,
)
from headwater.catalogs import (
    CatalogDefinition,
    ContentKey,
    Delete,
    Put,
    TableClaims,
    Unmodified,
    content_type_of,
)
from headwater.errors import NotFoundError
from headwater.iceberg_catalog.branch_session import BranchChange, BranchState
from headwater.iceberg_catalog.lake_errors import NoSuchNamespaceError, NoSuchTableError, NoSuchViewError
from headwater.iceberg_catalog.lake_privileges import (
    CHANGE_PRIVILEGES,
    CONTENT_KINDS,
    CREATE_PRIVILEGES,
    DROP_PRIVILEGES,
    LIST_PRIVILEGES,
    READ_PRIVILEGES,
    REPLACE_PRIVILEGES,
    SHOW_PRIVILEGES,
    needs_history,
    securable_kind,
)
from headwater.store import ObjectId

_K = SecurableKind
_SHOWING_NAMESPACES = (Privilege.NAMESPACE_LIST, Privilege.TABLE_LIST, Privilege.VIEW_LIST)
"""Rights on a namespace that show it: whoever may see all tables in it finds the way to them."""
_MISSING = {
    SecurableKind.NAMESPACE: NoSuchNamespaceError.at,
    SecurableKind.TABLE: NoSuchTableError.at,
    SecurableKind.VIEW: NoSuchViewError.at,
}


@dataclass(frozen=True, slots=True)
class _SeenContents:
    """What is known of contents before a caller is judged by them.

    named         content ids that matter for a decision, by the keys that they stand at
    above         the namespaces on the way to what may be seen
    """

    named: Mapping[tuple[str, ...], UUID]
    above: frozenset[tuple[str, ...]] = frozenset()


def hidden_catalog_error(catalog: str, reference: str | None) -> NotFoundError:
    """What a caller is told of a catalog or reference that is not there, and of one that it may see nothing of."""
    return NotFoundError(f"there is no catalog {catalog!r}, or no reference {reference!r} in it")


class LakeAccess:
    """A caller's rights, as they are when they are asked for. Thread-safe.

    reference     as the caller names it; None: the default branch
    read_rules    the caller's rules in a catalog
    """

    def __init__(self, reference: str | None, read_rules: Callable[[CatalogDefinition], AccessDecisions]) -> None:
        self._reference = reference
        self._read_rules = read_rules
        self._kept: tuple[AccessDecisions, ObjectId | None, ReferenceName, _SeenContents] | None = None

    def check_reference(self, definition: CatalogDefinition) -> None:
        """Check that the caller may see anything through this reference.

        raises        NotFoundError where it may not; ForbiddenError where it lacks the right to read history
        """
        rules, reference = self._read_rules(definition), reference_of(self._reference, definition)
        if not rules.reaches(reference):
            raise hidden_catalog_error(definition.name, self._reference)
        if not needs_history(self._reference):
            return
        on = Securable(kind=SecurableKind.REFERENCE, catalog=definition.name, pattern=reference.name or "*")
        if not rules.allows(Privilege.REFERENCE_READ_HISTORY, on, reference):
            raise ForbiddenError.lacking(Privilege.REFERENCE_READ_HISTORY, on, reference)

    def check_content(
        self, state: BranchState, privilege: Privilege, key: ContentKey, *, content_id: UUID | None = None
    ) -> None:
        """Check a privilege on what stands at a key, or might.

        content_id    what stands there, where it is known: then it is not looked up
        raises        ForbiddenError where the caller may list it; else NoSuchTableError, NoSuchViewError or NoSuchNamespaceError
        """
        self._check(state, privilege, key, content_id or self._content_id(state, key))

    def check_creation(self, state: BranchState, privilege: Privilege, key: ContentKey) -> None:
        """Check that something may be created at a key: rights by content id say nothing of new keys.

        raises        ForbiddenError where the caller may list the namespace; else NoSuchNamespaceError
        """
        definition = state.catalog.definition
        rules, reference, on = (
            self._read_rules(definition),
            reference_of(self._reference, definition),
            _on(state, privilege, key, None),
        )
        if rules.allows(privilege, on, reference):
            return
        parent = key.parent
        if parent is None or self.filter_listed(state, SecurableKind.NAMESPACE, [parent]):
            raise ForbiddenError.lacking(privilege, on, reference)
        raise NoSuchNamespaceError.at(parent)

    def check_change(self, state: BranchState, change: BranchChange) -> None:
        """Check every key that a change touches, on the very state that it is applied to; the guard of a session."""
        definition = state.catalog.definition
        put = {each.content.id for each in change.operations if isinstance(each, Put)}
        for operation in change.operations:
            held = state.find_value(operation.key)
            if isinstance(operation, Delete) and held is not None:
                kind = securable_kind(held.type)
                self._check(state, DROP_PRIVILEGES[kind], operation.key, held.content_id)
                if held.content_id in put:  # it is renamed: whoever may see the new key would see what it holds
                    self._check(state, READ_PRIVILEGES[kind], operation.key, held.content_id)
            elif isinstance(operation, Put):
                kind = securable_kind(content_type_of(operation.content))
                if held is not None and held.content_id == operation.content.id:
                    privilege = CHANGE_PRIVILEGES[kind] if operation.key in change.same_data else REPLACE_PRIVILEGES[kind]
                    self._check(state, privilege, operation.key, held.content_id)
                else:
                    self.check_creation(state, CREATE_PRIVILEGES[kind], operation.key)
            elif isinstance(operation, Unmodified) and held is not None:
                kind = securable_kind(held.type)
                self._check(state, SHOW_PRIVILEGES[kind], operation.key, held.content_id)
        if not change.is_new:
            self._check_adoptions(state, definition, change)

    def filter_listed(
        self, state: BranchState, kind: SecurableKind, keys: Sequence[ContentKey], *, content_ids: Sequence[UUID] = ()
    ) -> tuple[ContentKey, ...]:
        """Those of some keys, of things of one kind, that may be listed. A namespace is, too, if something below it may be seen.

        content_ids   what stands at the keys, one for each, where it is known: then it is not looked up
        """
        definition = state.catalog.definition
        decisions, reference = self._read_rules(definition), reference_of(self._reference, definition)
        showing = _SHOWING_NAMESPACES if kind is _K.NAMESPACE else (LIST_PRIVILEGES[kind],)
        if not keys or any(decisions.holds_wide(privilege, reference) for privilege in showing):
            return tuple(keys)
        if content_ids:
            seen = _SeenContents({key.elements: content_id for key, content_id in zip(keys, content_ids, strict=True)})
        elif kind is _K.NAMESPACE:
            seen = self._find_seen(state, decisions, reference, keys)
        else:
            seen = _SeenContents(_named_contents(state, decisions, keys))
        catalog, named, listed = definition.name, seen.named, set(seen.above)
        for privilege in showing:
            asked = [key.elements for key in keys if key.elements not in listed]
            answers = decisions.allows_each(
                [
                    AccessQuestion(
                        privilege, Securable(kind=kind, catalog=catalog, path=path, content_id=named.get(path)), reference
                    )
                    for path in asked
                ]
            )
            listed.update(path for path, answer in zip(asked, answers, strict=True) if answer)
        return tuple(key for key in keys if key.elements in listed)

    def _find_seen(
        self, state: BranchState, decisions: AccessDecisions, reference: ReferenceName, keys: Sequence[ContentKey]
    ) -> _SeenContents:
        """What may be seen below namespaces. It is found once, as long as neither the caller's rules nor the reference change."""
        kept, head_id = self._kept, None if state.head is None else state.head.id
        if kept is not None and kept[0] is decisions and kept[1:3] == (head_id, reference):
            return kept[3]
        named = _named_contents(state, decisions, keys)
        above = _namespaces_above(state.catalog.definition.name, decisions, reference, named)
        seen = _SeenContents(named, above)
        if decisions.content_ids is not None:  # else it is about these keys alone
            self._kept = (decisions, head_id, reference, seen)
        return seen

    def _check(self, state: BranchState, privilege: Privilege, key: ContentKey, content_id: UUID | None) -> None:
        definition = state.catalog.definition
        rules, reference = self._read_rules(definition), reference_of(self._reference, definition)
        on = _on(state, privilege, key, content_id)
        if rules.allows(privilege, on, reference):
            return
        if content_id is None:  # there is nothing that could be forbidden
            raise _MISSING[on.kind](key)
        if on.kind is _K.NAMESPACE and self.filter_listed(state, on.kind, [key]):
            if privilege is Privilege.NAMESPACE_LIST:  # as listings show it, for something below it may be seen
                return
        elif not rules.allows(LIST_PRIVILEGES[on.kind], on, reference):
            raise _MISSING[on.kind](key)
        raise ForbiddenError.lacking(privilege, on, reference)

    def _check_adoptions(self, state: BranchState, definition: CatalogDefinition, change: BranchChange) -> None:
        """Check that a table whose document a client brings is not somebody else's: its uuid makes its content id.

        What is known by a uuid already needs the right to read it where it stands on this reference, or else on the default branch:
        whoever may do everything on a branch of its own would otherwise bring what it may not read there, and get its files.
        """
        uuids = [claim.table_uuid for claim in change.claims if claim.table_uuid is not None]
        owners = TableClaims(state.rows).find_by_uuid(uuids) if uuids else {}
        if not owners:
            return
        rules = self._read_rules(definition)
        for owner in owners.values():
            reference, key = reference_of(self._reference, definition), state.key_of(owner.content_id)
            if key is None and not reference.is_default:
                reference, key = reference_of(None, definition), _default_state(state).key_of(owner.content_id)
            path = () if key is None else key.elements
            on = Securable(kind=SecurableKind.TABLE, catalog=definition.name, path=path, content_id=owner.content_id)
            is_here = owner.catalog_id == definition.id
            if is_here and rules.allows(Privilege.TABLE_READ_DATA, on, reference):
                continue
            if is_here and rules.allows(Privilege.TABLE_LIST, on, reference):
                raise ForbiddenError.lacking(Privilege.TABLE_READ_DATA, on, reference)
            raise ForbiddenError(
                f"the uuid is that of another table, and this needs {Privilege.TABLE_READ_DATA} on that one, which was not granted:"
                " ask whoever manages its grants"
            )

    def _content_id(self, state: BranchState, key: ContentKey) -> UUID | None:
        value = state.find_value(key)
        return None if value is None else value.content_id


def _default_state(state: BranchState) -> BranchState:
    return replace(state, head=state.catalog.resolve(None))


def _named_contents(state: BranchState, decisions: AccessDecisions, keys: Sequence[ContentKey]) -> dict[tuple[str, ...], UUID]:
    """The content ids that matter for a decision, by the keys that they stand at."""
    if decisions.content_ids is None:
        values = ((key, state.find_value(key)) for key in keys)
        return {key.elements: value.content_id for key, value in values if value is not None}
    return {key.elements: content_id for content_id, key in state.keys_of(decisions.content_ids).items()}


def _namespaces_above(
    catalog: str, decisions: AccessDecisions, reference: ReferenceName, named: Mapping[tuple[str, ...], UUID]
) -> frozenset[tuple[str, ...]]:
    """The namespaces on the way to what may be seen, as far as that is known beforehand."""
    paths = list(decisions.seen_paths(reference))
    for path, content_id in () if decisions.content_ids is None else named.items():
        securables = (Securable(kind=kind, catalog=catalog, path=path, content_id=content_id) for kind in (_K.TABLE, _K.VIEW))
        if any(decisions.allows(LIST_PRIVILEGES[on.kind], on, reference) for on in securables):
            paths.append(path)
    return frozenset(path[:length] for path in paths for length in range(1, len(path) + 1))


def _on(state: BranchState, privilege: Privilege, key: ContentKey, content_id: UUID | None) -> Securable:
    return Securable(
        kind=CONTENT_KINDS[privilege], catalog=state.catalog.definition.name, path=key.elements, content_id=content_id
    )
