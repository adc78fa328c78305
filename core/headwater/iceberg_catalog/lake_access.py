"""What one caller may do on one reference of a catalog: checked before anything is read for it, and again on the very state of a change.

A thing that the caller may not even list is told as missing, in the words that a missing one is told in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

from headwater.access import AccessRules, ForbiddenError, Privilege, ReferenceName, Securable, SecurableKind, reference_of
from headwater.catalogs import (
    CatalogDefinition,
    ContentKey,
    ContentType,
    Delete,
    Put,
    TableClaims,
    content_type_of,
    parse_revspec,
)
from headwater.errors import NotFoundError
from headwater.iceberg_catalog.branch_session import BranchChange, BranchState
from headwater.iceberg_catalog.lake_errors import NoSuchNamespaceError, NoSuchTableError, NoSuchViewError

_DEFAULT = "-"
_P = Privilege
_LIST = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_LIST,
    SecurableKind.TABLE: _P.TABLE_LIST,
    SecurableKind.VIEW: _P.VIEW_LIST,
}
_CREATE = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_CREATE,
    SecurableKind.TABLE: _P.TABLE_CREATE,
    SecurableKind.VIEW: _P.VIEW_CREATE,
}
_CHANGE = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_WRITE_PROPERTIES,
    SecurableKind.TABLE: _P.TABLE_WRITE_PROPERTIES,
    SecurableKind.VIEW: _P.VIEW_WRITE_PROPERTIES,
}
_DROP = {SecurableKind.NAMESPACE: _P.NAMESPACE_DROP, SecurableKind.TABLE: _P.TABLE_DROP, SecurableKind.VIEW: _P.VIEW_DROP}
_READ = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_READ_PROPERTIES,
    SecurableKind.TABLE: _P.TABLE_READ_DATA,
    SecurableKind.VIEW: _P.VIEW_READ_PROPERTIES,
}
_MISSING = {
    SecurableKind.NAMESPACE: NoSuchNamespaceError.at,
    SecurableKind.TABLE: NoSuchTableError.at,
    SecurableKind.VIEW: NoSuchViewError.at,
}


class LakeAccess:
    """A caller's rights, as they are when they are asked for. Thread-safe.

    reference     as the caller names it; None: the default branch
    read_rules    the caller's rules in a catalog
    """

    def __init__(self, reference: str | None, read_rules: Callable[[CatalogDefinition], AccessRules]) -> None:
        self._reference = reference
        self._read_rules = read_rules

    def check_reference(self, definition: CatalogDefinition) -> None:
        """Check that the caller may see anything through this reference.

        raises        NotFoundError where it may not; ForbiddenError where it lacks the right to read history
        """
        rules, reference = self._read_rules(definition), self._through(definition)
        if not rules.reaches(reference):
            raise NotFoundError(f"there is no catalog {definition.name!r}, or no reference {self._reference!r} in it")
        spec = parse_revspec(self._reference or _DEFAULT)
        on = Securable(kind=SecurableKind.REFERENCE, catalog=definition.name, pattern=spec.name or "*")
        if (spec.commit is not None or spec.steps) and not rules.allows(_P.REFERENCE_READ_HISTORY, on, reference):
            raise ForbiddenError.lacking(_P.REFERENCE_READ_HISTORY, on, reference)

    def check_content(self, state: BranchState, privilege: Privilege, key: ContentKey) -> None:
        """Check a privilege on what stands at a key, or might.

        raises        ForbiddenError where the caller may list it; else NoSuchTableError, NoSuchViewError or NoSuchNamespaceError
        """
        self._check(state, privilege, key, self._content_id(state, key))

    def check_creation(self, state: BranchState, privilege: Privilege, key: ContentKey) -> None:
        """Check that something may be created at a key: rights by content id say nothing of new keys.

        raises        ForbiddenError where the caller may list the namespace; else NoSuchNamespaceError
        """
        definition = state.catalog.definition
        rules, reference, on = self._read_rules(definition), self._through(definition), _on(state, privilege, key, None)
        if rules.allows(privilege, on, reference):
            return
        parent = key.parent
        if parent is None or self.is_listed(state, SecurableKind.NAMESPACE)(parent):
            raise ForbiddenError.lacking(privilege, on, reference)
        raise NoSuchNamespaceError.at(parent)

    def check_change(self, state: BranchState, change: BranchChange) -> None:
        """Check every key that a change touches, on the very state that it is applied to; the guard of a session."""
        definition = state.catalog.definition
        put = {each.content.id for each in change.operations if isinstance(each, Put)}
        for operation in change.operations:
            held = state.find_value(operation.key)
            if isinstance(operation, Delete) and held is not None and (kind := _kind_of(held.type)) is not None:
                self._check(state, _DROP[kind], operation.key, held.content_id)
                if held.content_id in put:  # it is renamed: whoever may see the new key would see what it holds
                    self._check(state, _READ[kind], operation.key, held.content_id)
            elif isinstance(operation, Put) and (kind := _kind_of(content_type_of(operation.content))) is not None:
                if held is not None and held.content_id == operation.content.id:
                    self._check(state, _CHANGE[kind], operation.key, held.content_id)
                else:
                    self.check_creation(state, _CREATE[kind], operation.key)
        if not change.is_new:
            self._check_adoptions(state, definition, change)

    def is_listed(self, state: BranchState, kind: SecurableKind) -> Callable[[ContentKey], bool]:
        """Make the test whether a thing of a kind may be listed. A namespace is listed, too, if something below it may be seen."""
        definition = state.catalog.definition
        rules, reference = self._read_rules(definition), self._through(definition)
        if rules.holds_wide(_LIST[kind], reference):
            return lambda key: True
        named = {key.elements: content_id for content_id in rules.content_ids if (key := state.key_of(content_id)) is not None}
        above = {path[:length] for path in _seen_paths(rules, reference, named) for length in range(1, len(path) + 1)}

        def is_listed(key: ContentKey) -> bool:
            if kind is SecurableKind.NAMESPACE and key.elements in above:
                return True
            on = Securable(kind=kind, catalog=definition.name, path=key.elements, content_id=named.get(key.elements))
            return rules.allows(_LIST[kind], on, reference)

        return is_listed

    def _check(self, state: BranchState, privilege: Privilege, key: ContentKey, content_id: UUID | None) -> None:
        definition = state.catalog.definition
        rules, reference = self._read_rules(definition), self._through(definition)
        on = _on(state, privilege, key, content_id)
        if rules.allows(privilege, on, reference):
            return
        if rules.allows(_LIST[on.kind], on, reference) or (
            on.kind is SecurableKind.NAMESPACE and self.is_listed(state, on.kind)(key)
        ):
            raise ForbiddenError.lacking(privilege, on, reference)
        raise _MISSING[on.kind](key)

    def _check_adoptions(self, state: BranchState, definition: CatalogDefinition, change: BranchChange) -> None:
        """Check that a table whose document a client brings is not somebody else's: its uuid makes its content id.

        What is known by a uuid already needs the right to read it, by content id, or where it stands on the default branch.
        """
        uuids = [claim.table_uuid for claim in change.claims if claim.table_uuid is not None]
        owners = TableClaims(state.rows).find_by_uuid(uuids) if uuids else {}
        rules, reference = self._read_rules(definition), self._through(definition)
        for owner in owners.values():
            here = state.key_of(owner.content_id)
            path = () if here is None else here.elements
            on = Securable(kind=SecurableKind.TABLE, catalog=definition.name, path=path, content_id=owner.content_id)
            if owner.catalog_id != definition.id or not rules.allows(_P.TABLE_READ_DATA, on, reference):
                raise ForbiddenError.lacking(_P.TABLE_READ_DATA, on, reference)

    def _content_id(self, state: BranchState, key: ContentKey) -> UUID | None:
        value = state.find_value(key)
        return None if value is None else value.content_id

    def _through(self, definition: CatalogDefinition) -> ReferenceName:
        return reference_of(self._reference, definition)


def _seen_paths(rules: AccessRules, reference: ReferenceName, named: dict[tuple[str, ...], UUID]) -> Iterator[tuple[str, ...]]:
    """The keys at or below which a rule lets the caller see something."""
    for rule in rules.rules:
        if rule.on.path and rules.allows(rule.privilege, rule.on, reference):
            yield rule.on.path
    yield from named


def _kind_of(content_type: ContentType | int | None) -> SecurableKind | None:
    kinds = {
        ContentType.NAMESPACE: SecurableKind.NAMESPACE,
        ContentType.ICEBERG_TABLE: SecurableKind.TABLE,
        ContentType.ICEBERG_VIEW: SecurableKind.VIEW,
    }
    return kinds.get(content_type) if isinstance(content_type, ContentType) else None


def _on(state: BranchState, privilege: Privilege, key: ContentKey, content_id: UUID | None) -> Securable:
    kind = SecurableKind(privilege.value.partition("_")[0].lower())
    return Securable(kind=kind, catalog=state.catalog.definition.name, path=key.elements, content_id=content_id)
