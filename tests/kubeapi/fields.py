"""Sets of fields, as ``managedFields`` tells them: who owns what, what a change touched, and how two writers' fields are merged.

A path is a tuple of members: ``f:name`` of a map, ``k:{...}`` of a list with keys, ``v:...`` of a set. The rules are those of
structured merges: maps and keyed lists are owned member by member, all other lists and whatever is atomic as a whole.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "METADATA",
    "Changes",
    "Path",
    "changes",
    "decode",
    "encode",
    "merged",
    "owned",
    "problems",
    "shown",
    "with_parents",
    "without",
]

Path = tuple[str, ...]
Paths = set[Path]
Schema = Mapping[str, Any]

ABSENT: Any = object()
OPEN: Schema = {"x-kubernetes-preserve-unknown-fields": True}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

METADATA: Schema = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")},
        **{name: {"type": "string"} for name in ("creationTimestamp", "deletionTimestamp")},
        **{name: {"type": "integer"} for name in ("generation", "deletionGracePeriodSeconds")},
        "labels": TEXTS,
        "annotations": TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    **{name: {"type": "string"} for name in ("apiVersion", "kind", "name", "uid")},
                    **{name: {"type": "boolean"} for name in ("controller", "blockOwnerDeletion")},
                },
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "managedFields": {"type": "array", "items": OPEN},
    },
}

_STRIPPED = {
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
            "deletionTimestamp", "deletionGracePeriodSeconds",
        )
    ),
}  # fmt: skip
"""Fields that the server keeps for itself: nobody is told to own them."""


@dataclass(slots=True)
class Changes:
    added: Paths = field(default_factory=set)
    modified: Paths = field(default_factory=set)
    removed: Paths = field(default_factory=set)


def owned(value: Any, schema: Schema) -> Paths:
    """The fields that whoever applies this value owns."""
    found: Paths = set()
    _collect(value, schema, (), found)
    return found - _STRIPPED


def changes(old: Any, new: Any, schema: Schema) -> Changes:
    """What differs between two objects."""
    found = Changes()
    _compare(old, new, schema, (), found)
    for paths in (found.added, found.modified, found.removed):
        paths -= _STRIPPED
    return found


def merged(live: Any, applied: Any, schema: Schema) -> Any:
    """The live value with all that was applied laid over it."""
    if live is ABSENT or _shape(live, schema) != _shape(applied, schema):
        return applied
    if _shape(applied, schema) == "map":
        return live | {name: merged(live.get(name, ABSENT), value, _inner(schema, name)) for name, value in applied.items()}
    if _shape(applied, schema) == "list":
        return _merged_lists(live, applied, schema)
    return applied


def without(value: Any, gone: Paths, schema: Schema, path: Path = ()) -> Any:
    """The value without these paths and all that is below them."""
    shape = _shape(value, schema)
    if shape == "map":
        kept = ((name, member, (*path, f"f:{name}")) for name, member in value.items())
        return {name: without(member, gone, _inner(schema, name), where) for name, member, where in kept if where not in gone}
    if shape == "list":
        items = ((item, (*path, _element(item, schema))) for item in value)
        return [without(item, gone, schema.get("items", OPEN), where) for item, where in items if where not in gone]
    return value


def with_parents(paths: Iterable[Path]) -> Paths:
    """The paths, and the fields above them: who owns a field keeps what it stands in."""
    return {
        path[:length]
        for path in paths
        for length in range(1, len(path) + 1)
        if length == len(path) or path[length - 1][0] == "f"
    }


def problems(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Why a value can't be applied by this schema: fields that it does not declare, and members that stand twice."""
    if isinstance(value, dict):
        declared = schema.get("properties", {})
        is_open = not declared or "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
        for name, member in value.items():
            if name not in declared and not is_open:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from problems(member, _inner(schema, name), f"{path}.{name}")
    elif isinstance(value, list):
        seen: set[str] = set()
        for number, item in enumerate(value):
            element = _element(item, schema) if _shape(value, schema) == "list" else ""
            if element in seen and element:
                yield f"{path}: duplicate entries for key {shown((element,))}"
            seen.add(element)
            yield from problems(item, schema.get("items", OPEN), f"{path}[{number}]")


def encode(paths: Paths) -> dict[str, Any]:
    """As it stands in ``fieldsV1``."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for member in path:
            node = node.setdefault(member, {})
        node["."] = {}
    return _trimmed(tree)


def decode(tree: Mapping[str, Any], path: Path = ()) -> Paths:
    found: Paths = set()
    for member, below in tree.items():
        if member == ".":
            found.add(path)
        elif not below:
            found.add((*path, member))
        else:
            found |= decode(below, (*path, member))
    return found


def shown(path: Path) -> str:
    """As messages name a field: ``.status.conditions[type="Ready"].status``."""
    return "".join(map(_shown_member, path))


def _shown_member(member: str) -> str:
    kind, _, value = member.partition(":")
    if kind == "f":
        return f".{value}"
    if kind == "v":
        return f"[={value}]"
    keys = json.loads(value)
    return f"[{','.join(f'{name}={json.dumps(keys[name])}' for name in sorted(keys))}]"


def _trimmed(node: dict[str, Any]) -> dict[str, Any]:
    if node == {".": {}}:
        return {}
    return {member: below if member == "." else _trimmed(below) for member, below in node.items()}


def _shape(value: Any, schema: Schema) -> str:
    """``map`` and ``list`` are owned member by member, a ``leaf`` as a whole."""
    if isinstance(value, dict):
        return "leaf" if schema.get("x-kubernetes-map-type") == "atomic" else "map"
    if isinstance(value, list):
        return "list" if schema.get("x-kubernetes-list-type", "atomic") != "atomic" else "leaf"
    return "leaf"


def _inner(schema: Schema, name: str) -> Schema:
    found = schema.get("properties", {}).get(name)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, Mapping) else OPEN


def _element(item: Any, schema: Schema) -> str:
    if schema.get("x-kubernetes-list-type") == "map":
        defaults = schema.get("items", {}).get("properties", {})
        keys = {name: item.get(name, defaults.get(name, {}).get("default")) for name in schema["x-kubernetes-list-map-keys"]}
        return "k:" + json.dumps(keys, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return "v:" + json.dumps(item, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _members(value: Any, schema: Schema) -> dict[str, tuple[Any, Schema]]:
    """Members by element, each with the schema that it is read by. Of members that stand twice the last counts."""
    if isinstance(value, dict):
        return {f"f:{name}": (member, _inner(schema, name)) for name, member in value.items()}
    return {_element(item, schema): (item, schema.get("items", OPEN)) for item in value}


def _collect(value: Any, schema: Schema, path: Path, found: Paths) -> None:
    shape = _shape(value, schema)
    if shape == "leaf":
        found.add(path)
        return
    declared = schema.get("properties", {})
    for element, (member, inner) in _members(value, schema).items():
        where = (*path, element)
        if shape == "list" or member is None or member == {} or element[2:] not in declared:
            found.add(where)
        _collect(member, inner, where, found)


def _compare(old: Any, new: Any, schema: Schema, path: Path, found: Changes) -> None:
    if old is ABSENT or new is ABSENT:
        _walk(new if old is ABSENT else old, schema, path, found.added if old is ABSENT else found.removed)
        return
    shape = _shape(new, schema)
    if shape != _shape(old, schema):
        if old is not None:
            _walk_below(old, schema, path, found.removed)
        found.modified.add(path)
        _walk_below(new, schema, path, found.added)
    elif shape == "leaf":
        if not _same(old, new):
            found.modified.add(path)
    else:
        before, after = _members(old, schema), _members(new, schema)
        for element in before.keys() | after.keys():
            was, inner = before.get(element, (ABSENT, OPEN))
            now, inner = after.get(element, (ABSENT, inner))
            _compare(was, now, inner, (*path, element), found)


def _walk(value: Any, schema: Schema, path: Path, found: Paths) -> None:
    if path:
        found.add(path)
    _walk_below(value, schema, path, found)


def _walk_below(value: Any, schema: Schema, path: Path, found: Paths) -> None:
    if _shape(value, schema) != "leaf":
        for element, (member, inner) in _members(value, schema).items():
            _walk(member, inner, (*path, element), found)


def _merged_lists(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    """Members in the order in which they were applied; what only the live list has stays between them where it was."""
    items = schema.get("items", OPEN)
    before = {_element(item, schema): item for item in live}
    wanted = {_element(item, schema): item for item in applied}
    left, coming = deque(before), deque(wanted)
    shared = deque(element for element in wanted if element in before)
    taken: set[str] = set()
    result = []
    while left or coming:
        if left and (left[0] in taken or (left[0] in wanted and shared and shared[0] != left[0])):
            left.popleft()
        elif left and left[0] not in wanted:
            result.append(before[left.popleft()])
        else:
            element = coming.popleft()
            if shared and shared[0] == element:
                shared.popleft()
            taken.add(element)
            result.append(merged(before.get(element, ABSENT), wanted[element], items))
    return result


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON: true is not 1."""
    return one == other and (not isinstance(one, bool | int | float) or isinstance(one, bool) == isinstance(other, bool))
