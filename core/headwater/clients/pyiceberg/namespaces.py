"""Namespaces of a branch, by pyiceberg's promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyiceberg.catalog import PropertiesUpdateSummary
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError
from pyiceberg.typedef import Identifier

from headwater.catalogs import ContentKey, ContentType, Delete, Namespace, Put
from headwater.clients.pyiceberg.committing import Branch, Change
from headwater.clients.pyiceberg.names import namespace_key, shown
from headwater.clients.pyiceberg.states import State

__all__ = ["Namespaces", "check_namespace"]

Merge = Callable[[dict[str, str]], tuple[PropertiesUpdateSummary, dict[str, str]]]


class Namespaces:
    """``namespace`` is what a caller of pyiceberg names: a text with dots between the elements, or a tuple of them."""

    def __init__(self, branch: Branch) -> None:
        self._branch = branch

    def create(self, namespace: str | Identifier, properties: Mapping[str, object]) -> None:
        """With the namespaces above it that are not there yet, in one commit."""
        key = namespace_key(namespace)
        checked = _checked(properties)

        def plan(state: State) -> Change:
            there = state.find_many([key, *key.ancestors()])
            if key in there:
                raise NamespaceAlreadyExistsError(f"Namespace {shown(key)} already exists")
            for ancestor, content in there.items():
                if not isinstance(content, Namespace):
                    raise NoSuchNamespaceError(f"{shown(ancestor)} is no namespace: nothing can be created below it")
            above = [Put(one, Namespace()) for one in key.ancestors() if one not in there]
            return Change(operations=[*above, Put(key, Namespace(properties=checked))], message=f"create namespace {key}")

        self._branch.commit(plan, key=key)

    def drop(self, namespace: str | Identifier) -> None:
        key = namespace_key(namespace)

        def plan(state: State) -> Change:
            _read(state, key)
            child = next(state.children(key), None)
            if child is not None:
                raise NamespaceNotEmptyError(f"Namespace {shown(key)} is not empty: it holds {shown(child[0])}")
            return Change(operations=[Delete(key)], message=f"drop namespace {key}")

        self._branch.commit(plan, key=key)

    def exists(self, namespace: str | Identifier) -> bool:
        try:
            key = namespace_key(namespace)
        except NoSuchNamespaceError:
            return False
        return self._branch.state().is_namespace(key)

    def properties(self, namespace: str | Identifier) -> dict[str, str]:
        return dict(_read(self._branch.state(), namespace_key(namespace)).properties)

    def update(self, namespace: str | Identifier, merge: Merge) -> PropertiesUpdateSummary:
        """Replace the properties by what ``merge`` makes of those that are there."""
        key = namespace_key(namespace)
        summaries: list[PropertiesUpdateSummary] = []

        def plan(state: State) -> Change | None:
            there = _read(state, key)
            summary, properties = merge(dict(there.properties))
            summaries.append(summary)
            if properties == there.properties:
                return None
            changed = Namespace(id=there.id, properties=_checked(properties))
            return Change(operations=[Put(key, changed, there)], message=f"change properties of namespace {key}")

        self._branch.commit(plan, key=key)
        return summaries[-1]

    def below(self, namespace: str | Identifier) -> list[Identifier]:
        """The namespaces directly below one; of ``()``, those at the top."""
        return self.listed(namespace, ContentType.NAMESPACE)

    def listed(self, namespace: str | Identifier, kind: ContentType) -> list[Identifier]:
        """The identifiers of one kind directly below a namespace, in key order."""
        state = self._branch.state()
        if not namespace:
            return [key.elements for key, found in state.children(None) if found is kind]
        parent = namespace_key(namespace)
        check_namespace(state, parent)
        return [key.elements for key, found in state.children(parent) if found is kind]


def check_namespace(state: State, key: ContentKey | None) -> None:
    """Pass, or raise NoSuchNamespaceError. ``key`` None: the top, where pyiceberg has no tables."""
    if key is None or not state.is_namespace(key):
        raise NoSuchNamespaceError(f"Namespace does not exist: {'' if key is None else shown(key)}")


def _read(state: State, key: ContentKey) -> Namespace:
    found = state.find(key)
    if not isinstance(found, Namespace):
        raise NoSuchNamespaceError(f"Namespace {shown(key)} does not exists")
    return found


def _checked(properties: Mapping[str, object]) -> dict[str, str]:
    """Properties as text; pyiceberg's own catalogs refuse null, too."""
    for name, value in properties.items():
        if not isinstance(name, str) or value is None:
            raise ValueError(f"namespace property {name!r} is {value!r}: names and values are text")
    return {name: str(value) for name, value in properties.items()}
