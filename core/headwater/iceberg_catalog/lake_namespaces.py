"""The namespaces of a reference: listed level by level, created with those above them, dropped when they are empty."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headwater.catalogs import ContentKey, ContentType, Delete, Namespace, Put, RequestKey
from headwater.errors import RefusedError
from headwater.iceberg.property_rules import check_properties
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState
from headwater.iceberg_catalog.content_locations import LOCATION, namespace_location
from headwater.iceberg_catalog.lake_errors import (
    AlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    PropertyClashError,
    dotted,
)
from headwater.iceberg_catalog.lake_values import KeyPage, PropertyChanges


class LakeNamespaces:
    """The namespaces of a reference.

    own           properties that the owner of the process has configured: a namespace that has the same one chooses nothing by it
    warehouse     below which new tables lie; None: the catalog's base location
    """

    def __init__(self, session: BranchSession, *, own: Mapping[str, str], warehouse: str | None = None) -> None:
        self._session = session
        self._own = own
        self._warehouse = warehouse or session.catalog.definition.base_location

    def list_children(self, parent: ContentKey | None, *, token: str | None = None, limit: int | None = None) -> KeyPage:
        """List the namespaces directly below one; None: at the top.

        token         ``next_token`` of the page before, which goes on in the same commit; None and empty: the first page
        limit         of the page; None: all
        raises        NoSuchNamespaceError · RefusedError for a malformed token, or one of another listing · ExpiredError
        """
        state = self._session.state()
        if parent is not None and not token:
            check_namespace(state, parent)
        page = self._session.children(parent, ContentType.NAMESPACE, token=token, limit=limit)
        return KeyPage(tuple(entry.key for entry in page.entries), page.next_token)

    def create(
        self, key: ContentKey, properties: Mapping[str, object], *, request: RequestKey | None = None
    ) -> Mapping[str, str]:
        """Create a namespace, and the missing ones above it, in one commit; returns what ``read_located_properties`` does.

        raises        AlreadyExistsError · NoSuchNamespaceError where what stands above is no namespace
        """
        checked = _checked(key, properties)
        check_properties(checked, of=f"namespace {key}", own=self._own)
        located: list[dict[str, str]] = []

        def plan(state: BranchState) -> BranchChange:
            contents = state.find_many([key, *key.ancestors()])
            if key in contents:
                raise AlreadyExistsError.at(key, contents[key], wanted="Namespace")
            for ancestor, content in contents.items():
                if not isinstance(content, Namespace):
                    raise NoSuchNamespaceError(f"{dotted(ancestor)} is no namespace: nothing can be created below it")
            located.append(self._located(state, key, checked))  # here: a read after the commit could fail
            above = [Put(ancestor, Namespace()) for ancestor in key.ancestors() if ancestor not in contents]
            return BranchChange(operations=[*above, Put(key, Namespace(properties=checked))], message=f"create namespace {key}")

        earlier = self._session.carry_out(plan, keys=[key], request=request)
        if earlier is None:
            return located[-1]
        present = self._session.state()
        is_shown = present.is_namespace(key) and self._session.may_show(present, key)
        state = present if is_shown else self._session.state_of(earlier)  # it may have been dropped since
        return self._located(state, key, _read(state, key).properties)

    def drop(self, key: ContentKey, *, request: RequestKey | None = None) -> None:
        """Drop an empty namespace; raises NoSuchNamespaceError and NamespaceNotEmptyError."""

        def plan(state: BranchState) -> BranchChange:
            check_namespace(state, key)
            child = state.first_child(key)
            if child is not None:
                held = f": it holds {dotted(child)}" if self._session.may_show(state, child) else ""
                raise NamespaceNotEmptyError(f"Namespace {dotted(key)} is not empty{held}")
            return BranchChange(operations=[Delete(key)], message=f"drop namespace {key}")

        self._session.carry_out(plan, keys=[key], request=request)

    def exists(self, key: ContentKey) -> bool:
        return self._session.state().is_namespace(key)

    def read_properties(self, key: ContentKey) -> Mapping[str, str]:
        """Read a namespace's properties; raises NoSuchNamespaceError."""
        return dict(_read(self._session.state(), key).properties)

    def read_located_properties(self, key: ContentKey) -> Mapping[str, str]:
        """Read a namespace's properties with the location of its new tables; raises NoSuchNamespaceError.

        Where no location is stored, the computed one is added: Trino creates tables only in a namespace that has one.
        """
        state = self._session.state()
        return self._located(state, key, _read(state, key).properties)

    def _located(self, state: BranchState, key: ContentKey, properties: Mapping[str, str]) -> dict[str, str]:
        if properties.get(LOCATION) or not self._warehouse:
            return dict(properties)
        return {**properties, LOCATION: namespace_location(state, key, warehouse=self._warehouse)}

    def update_properties(
        self,
        key: ContentKey,
        removals: Collection[str],
        updates: Mapping[str, object],
        *,
        request: RequestKey | None = None,
    ) -> PropertyChanges:
        """Remove and set properties; raises NoSuchNamespaceError, and PropertyClashError for a property in both."""
        checked, gone = _checked(key, updates), set(removals)
        for name in sorted(gone.intersection(checked)):
            raise PropertyClashError(f"Cannot remove and update the same key: {name}")
        changes: list[PropertyChanges] = []

        def plan(state: BranchState) -> BranchChange | None:
            stored = _read(state, key)
            before = dict(stored.properties)
            check_properties(checked, of=f"namespace {key}", before=before, own=self._own)
            after = {name: value for name, value in before.items() if name not in gone} | checked
            removed, missing = sorted(gone.intersection(before)), sorted(gone.difference(before))
            changes.append(PropertyChanges(tuple(sorted(checked)), tuple(removed), tuple(missing)))
            if after == before:
                return None
            changed = Namespace(id=stored.id, properties=after)
            return BranchChange(operations=[Put(key, changed, stored)], message=f"change properties of namespace {key}")

        earlier = self._session.carry_out(plan, keys=[key], request=request)
        if earlier is not None:
            plan(self._session.state_before(earlier))  # what it says, as it said it then
        return changes[-1]


def check_namespace(state: BranchState, key: ContentKey | None) -> None:
    """Check that a namespace exists; raises NoSuchNamespaceError. ``key`` None: the top, where Iceberg has no tables."""
    if key is None or not state.is_namespace(key):
        raise NoSuchNamespaceError.at(key)


def _read(state: BranchState, key: ContentKey) -> Namespace:
    namespace = state.find_content(key)
    if not isinstance(namespace, Namespace):
        raise NoSuchNamespaceError.at(key)
    return namespace


def _checked(key: ContentKey, properties: Mapping[str, object]) -> dict[str, str]:
    """Properties as text; null is refused, as in other catalogs."""
    for name, value in properties.items():
        if not isinstance(name, str) or value is None:
            raise RefusedError(f"property {name!r} of namespace {key} is {value!r}: names and values are text")
    return {name: str(value) for name, value in properties.items()}
