"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kubeapi.failures import Failure
from kubeapi.kinds import Kind
from kubeapi.store import Record

__all__ = ["Selector", "read_selector"]

Labels = Mapping[str, str]
Matches = Callable[[Labels], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=<>]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[^\s=!]*)$")
_DOUBLED = re.compile(r"^[^\s!=<>]+\s*(==|=|!=)\s*(?P<sign>==|=|!=)")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)$")

COMMON_FIELDS = {"metadata.name": ".metadata.name", "metadata.namespace": ".metadata.namespace"}


class Selector:
    """Says of a record whether it was asked for."""

    def __init__(self, labels: list[Matches], fields: list[tuple[str, str, bool]]) -> None:
        self._labels = labels
        self._fields = fields

    @property
    def is_open(self) -> bool:
        return not self._labels and not self._fields

    @property
    def name(self) -> str | None:
        """The one name that is asked for, if only that is."""
        return next((value for path, value, wanted in self._fields if path == ".metadata.name" and wanted), None)

    def matches(self, record: Record) -> bool:
        return all(matches(record.labels) for matches in self._labels) and self._matches_fields(record)

    def _matches_fields(self, record: Record) -> bool:
        own = {".metadata.namespace": record.key[0], ".metadata.name": record.key[1]}
        body: Mapping[str, Any] | None = None
        for path, value, wanted in self._fields:
            if path in own:
                found: Any = own[path]
            else:
                body = record.load() if body is None else body
                found = _value(body, path)
            if (found == value) != wanted:
                return False
        return True


def read_selector(kind: Kind, query: Mapping[str, str]) -> Selector:
    labels = [_requirement(part) for part in _parts(query.get("labelSelector", ""))]
    fields = [_field(kind, part) for part in query.get("fieldSelector", "").split(",") if part]
    return Selector(labels, fields)


def _parts(text: str) -> list[str]:
    """Split at the commas that stand outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _requirement(part: str) -> Matches:
    if found := _SET.match(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["word"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.match(part):
        key, value = found["key"], found["value"]
        if found["sign"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(part):
        key, is_negated = found["key"], bool(found["not"])
        return lambda labels: (key in labels) != is_negated
    if found := _DOUBLED.match(part):
        raise Failure.bad_request(f"unable to parse requirement: found '{found['sign']}', expected: identifier")
    raise Failure.bad_request(f"unable to parse requirement: {part}")


def _field(kind: Kind, part: str) -> tuple[str, str, bool]:
    found = _EQUAL.match(part)
    if not found:
        raise Failure.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    path = ({**COMMON_FIELDS, **kind.selectable}).get(found["key"])
    if path is None:
        raise Failure.bad_request(f"field label not supported: {found['key']}")
    return path, found["value"], found["sign"] != "!="


def _value(body: Any, path: str) -> str:
    for name in path.strip(".").split("."):
        body = body.get(name) if isinstance(body, Mapping) else None
    if isinstance(body, bool):
        return "true" if body else "false"
    return "" if body is None else str(body)
