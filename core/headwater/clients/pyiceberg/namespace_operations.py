"""The namespace operations of pyiceberg on a branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyiceberg.catalog import PropertiesUpdateSummary
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError
from pyiceberg.typedef import Identifier

from headwater.catalogs import ContentKey, ContentType, Delete, Namespace, Put
from headwater.clients.pyiceberg.translation import namespace_key, shown_identifier
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState

Merge = Callable[[dict[str, str]], tuple[PropertiesUpdateSummary, dict[str, str]]]


class NamespaceOperations:
    """``namespace`` is what a caller of pyiceberg names: a text with dots between the elements, or a tuple of them."""

    def __init__(self, branch: BranchSession) -> None:
        self._branch = branch

    def create_namespace(self, namespace: str | Identifier, properties: Mapping[str, object]) -> None:
        """Create a namespace and its missing ancestors, in one commit."""
        key = namespace_key(namespace)
        checked = _checked(properties)

        def plan(state: BranchState) -> BranchChange:
            contents = state.find_many([key, *key.ancestors()])
            if key in contents:
                raise NamespaceAlreadyExistsError(f"Namespace {shown_identifier(key)} already exists")
            for ancestor, content in contents.items():
                if not isinstance(content, Namespace):
                    raise NoSuchNamespaceError(f"{shown_identifier(ancestor)} is no namespace: nothing can be created below it")
            above = [Put(ancestor, Namespace()) for ancestor in key.ancestors() if ancestor not in contents]
            return BranchChange(operations=[*above, Put(key, Namespace(properties=checked))], message=f"create namespace {key}")

        self._branch.commit(plan, key=key)

    def drop_namespace(self, namespace: str | Identifier) -> None:
        key = namespace_key(namespace)

        def plan(state: BranchState) -> BranchChange:
            _read(state, key)
            child = next(state.child_namespaces(key), None)
            if child is not None:
                raise NamespaceNotEmptyError(
                    f"Namespace {shown_identifier(key)} is not empty: it holds {shown_identifier(child[0])}"
                )
            return BranchChange(operations=[Delete(key)], message=f"drop namespace {key}")

        self._branch.commit(plan, key=key)

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        try:
            key = namespace_key(namespace)
        except NoSuchNamespaceError:
            return False
        return self._branch.state().is_namespace(key)

    def read_properties(self, namespace: str | Identifier) -> dict[str, str]:
        return dict(_read(self._branch.state(), namespace_key(namespace)).properties)

    def update_properties(self, namespace: str | Identifier, merge: Merge) -> PropertiesUpdateSummary:
        """Replace the properties by the result of ``merge`` on the present ones."""
        key = namespace_key(namespace)
        summaries: list[PropertiesUpdateSummary] = []

        def plan(state: BranchState) -> BranchChange | None:
            stored = _read(state, key)
            summary, properties = merge(dict(stored.properties))
            summaries.append(summary)
            if properties == stored.properties:
                return None
            changed = Namespace(id=stored.id, properties=_checked(properties))
            return BranchChange(operations=[Put(key, changed, stored)], message=f"change properties of namespace {key}")

        self._branch.commit(plan, key=key)
        return summaries[-1]

    def namespaces_below(self, namespace: str | Identifier) -> list[Identifier]:
        """The namespaces directly below one; below ``()``, those at the top."""
        return self.listed(namespace, ContentType.NAMESPACE)

    def listed(self, namespace: str | Identifier, kind: ContentType) -> list[Identifier]:
        """List the identifiers of one kind directly below a namespace, in key order."""
        state = self._branch.state()
        if not namespace:
            return [key.elements for key, type_ in state.child_namespaces(None) if type_ is kind]
        parent = namespace_key(namespace)
        check_namespace(state, parent)
        return [key.elements for key, type_ in state.child_namespaces(parent) if type_ is kind]


def check_namespace(state: BranchState, key: ContentKey | None) -> None:
    """Check that a namespace exists; raises NoSuchNamespaceError. ``key`` None: the top, where pyiceberg has no tables."""
    if key is None or not state.is_namespace(key):
        raise NoSuchNamespaceError(f"Namespace does not exist: {'' if key is None else shown_identifier(key)}")


def _read(state: BranchState, key: ContentKey) -> Namespace:
    namespace = state.find_content(key)
    if not isinstance(namespace, Namespace):
        raise NoSuchNamespaceError(f"Namespace {shown_identifier(key)} does not exists")
    return namespace


def _checked(properties: Mapping[str, object]) -> dict[str, str]:
    """Properties as text; null is refused, as in pyiceberg's own catalogs."""
    for name, value in properties.items():
        if not isinstance(name, str) or value is None:
            raise ValueError(f"namespace property {name!r} is {value!r}: names and values are text")
    return {name: str(value) for name, value in properties.items()}
