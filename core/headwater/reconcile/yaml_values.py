"""Values of a YAML file with their position. A wrong value is noted with its line and path, and reading continues."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from headwater.errors import RefusedError
from headwater.settings import is_duration, parse_duration

T = TypeVar("T")
E = TypeVar("E")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHAPES = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, order=True)
class ManifestFault:
    """One fault in a manifest. ``path`` is empty where the whole file or document is meant."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ManifestError(RefusedError):
    """Manifests that cannot be applied: every fault of all files at once, one a line."""

    def __init__(self, faults: Sequence[ManifestFault]) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults))


@dataclass(slots=True)
class YamlSource:
    """One file, and the faults that were found in it."""

    file: str
    faults: list[ManifestFault] = field(default_factory=list)

    def fault(self, line: int, path: str, message: str) -> None:
        self.faults.append(ManifestFault(self.file, line, path, message))


@dataclass(frozen=True, slots=True)
class YamlValue:
    """One value. Every reading method returns the value, or notes a fault and returns an empty value of its type."""

    source: YamlSource
    node: yaml.Node
    path: str

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    @property
    def is_null(self) -> bool:
        return bool(self.node.tag == _TAG + "null")

    def fault(self, message: str) -> None:
        self.source.fault(self.line, self.path, message)

    def text(self) -> str:
        """A string that is not empty. YAML's own idea of an unquoted ``yes`` or ``1.10`` is refused, not guessed."""
        word = self._scalar("a text")
        if word is None:
            return ""
        if self.node.tag != _TAG + "str":
            self.fault(f'expected a text, YAML reads {word} otherwise; write "{word}" in quotes')
        elif not word.strip():
            self.fault("expected a text, this one is empty")
        return word

    def flag(self) -> bool:
        word = self._scalar("true or false")
        if word is not None and (self.node.tag != _TAG + "bool" or word not in ("true", "false")):
            self.fault(f"expected true or false, not {self._shown()}")
        return word == "true"

    def whole(self, *, least: int, most: int) -> int:
        """A whole number within its bounds."""
        word = self._scalar("a whole number")
        if word is None:
            return least
        if self.node.tag != _TAG + "int" or not _WHOLE.fullmatch(word):
            unquoted = f"; write {word} without quotes" if _WHOLE.fullmatch(word) else ""
            self.fault(f"expected a whole number, not {self._shown()}{unquoted}")
            return least
        if not least <= int(word) <= most:
            self.fault(f"must be from {least} to {most}, not {word}")
        return int(word)

    def choice(self, *choices: str) -> str:
        """One of several words."""
        word = self._scalar("one of " + ", ".join(choices))
        if word is not None and word not in choices:
            near = _nearest(word, choices)
            self.fault(f"{self._shown()} is none of {', '.join(choices)}" + (f"; did you mean {near}?" if near else ""))
        return word if word in choices else choices[0]

    def duration(self) -> float:
        """A duration in seconds; infinite after a fault, so that no bound is reported as well."""
        word = self._scalar("a duration such as 30d")
        if word is None:
            return math.inf
        try:
            return parse_duration(word)
        except RefusedError:
            likely = f"{self._shown()} is not a duration; write for example {_likely_duration(word)}"
            self.fault(f"{word} is longer than a hundred years" if is_duration(word) else likely)
            return math.inf

    def items(self, *, least: int = 0) -> list[YamlValue]:
        """The members of a list, each with its own path."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fault(f"expected a list, not {self._shown()}")
            return []
        if len(self.node.value) < least:
            self.fault(f"expected a list with at least {least}, this one has {len(self.node.value)}")
        return [YamlValue(self.source, node, f"{self.path}[{number}]") for number, node in enumerate(self.node.value)]

    def pairs(self) -> dict[str, YamlValue]:
        """The entries of a mapping with free names, such as properties."""
        return {name: value for name, (_, value) in self._entries().items()}

    def texts(self) -> dict[str, str]:
        """A mapping from free names to texts."""
        return {name: value.free_text() for name, value in self.pairs().items()}

    def free_text(self) -> str:
        """A string that may be empty."""
        return "" if self.node.tag == _TAG + "str" and self.node.value == "" else self.text()

    def block(self, *known: str) -> YamlBlock:
        """A mapping with known names; every other name is a fault that suggests the nearest known one."""
        values = {}
        for name, (key, value) in self._entries().items():
            if name in known:
                values[name] = value
            else:
                near = _nearest(name, known)
                advice = f"did you mean {near}?" if near else "there is: " + ", ".join(known)
                self.source.fault(key.start_mark.line + 1, value.path, f"unknown field; {advice}")
        return YamlBlock(self.source, self.path, self.line, values)

    def _entries(self) -> dict[str, tuple[yaml.Node, YamlValue]]:
        if not isinstance(self.node, yaml.MappingNode):
            self.fault(f"expected a mapping, not {self._shown()}")
            return {}
        entries: dict[str, tuple[yaml.Node, YamlValue]] = {}
        for key, node in self.node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            value = YamlValue(self.source, node, f"{self.path}.{name}" if self.path else name)
            if not name:
                self.source.fault(key.start_mark.line + 1, self.path, "the name of a field must be a text")
            elif name in entries:
                first = entries[name][0].start_mark.line + 1
                self.source.fault(key.start_mark.line + 1, value.path, f"given twice; it stands in line {first} already")
            else:
                entries[name] = (key, value)
        return entries

    def _scalar(self, expected: str) -> str | None:
        if isinstance(self.node, yaml.ScalarNode) and not self.is_null:
            return str(self.node.value)
        self.fault(f"expected {expected}, not {self._shown()}")
        return None

    def _shown(self) -> str:
        if self.is_null:
            return "null"
        if not isinstance(self.node, yaml.ScalarNode):
            return _SHAPES[type(self.node)]
        word = str(self.node.value)
        shown = word if len(word) <= 60 else word[:57] + "..."
        return f'"{shown}"' if self.node.tag == _TAG + "str" else shown


@dataclass(frozen=True, slots=True)
class YamlBlock:
    """A mapping with known names, empty if it was not given. ``null`` counts as not given, as in Kubernetes."""

    source: YamlSource
    path: str
    line: int
    values: dict[str, YamlValue]

    def find_value(self, name: str) -> YamlValue | None:
        value = self.values.get(name)
        return None if value is None or value.is_null else value

    def given(self, name: str, read: Callable[[YamlValue], T], default: E) -> T | E:
        """The value that ``read`` makes of the field, or the default where it is not given."""
        value = self.find_value(name)
        return default if value is None else read(value)

    def required(self, name: str, read: Callable[[YamlValue], T], empty: E) -> T | E:
        """The value that ``read`` makes of the field; its absence is a fault."""
        if self.find_value(name) is None:
            self.source.fault(self.line, self._path_of(name), "is missing")
        return self.given(name, read, empty)

    def block(self, name: str, *known: str) -> YamlBlock:
        """A mapping inside this one; an empty one where it is not given."""
        value = self.find_value(name)
        return YamlBlock(self.source, self._path_of(name), self.line, {}) if value is None else value.block(*known)

    def items(self, name: str) -> list[YamlValue]:
        """The members of a list; none where it is not given."""
        value = self.find_value(name)
        return [] if value is None else value.items()

    def pairs(self, name: str) -> dict[str, YamlValue]:
        """The entries of a mapping with free names; none where it is not given."""
        value = self.find_value(name)
        return {} if value is None else value.pairs()

    def _path_of(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def read_documents(text: str, source: YamlSource) -> list[YamlValue]:
    """The non-empty documents of one file; text that is no YAML is noted as a fault."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        source.fault(mark.line + 1 if mark else 0, "", f"not YAML: {error.problem or error.context}")
        return []
    except yaml.YAMLError as error:
        source.fault(0, "", f"not YAML: {' '.join(str(error).split())}")
        return []
    values = [YamlValue(source, node, "") for node in nodes if node is not None]
    return [value for value in values if not value.is_null]


def plain_value(value: object, source: YamlSource) -> YamlValue:
    """A value that was parsed elsewhere, such as the body of a resource; its faults have no line."""
    return YamlValue(source, _node(value), "")


_NOWHERE = yaml.Mark("", 0, -1, 0, None, 0)


def _node(value: object) -> yaml.Node:
    match value:
        case Mapping():
            pairs = [(_node(str(name)), _node(inner)) for name, inner in value.items()]
            return yaml.MappingNode(_TAG + "map", pairs, _NOWHERE, _NOWHERE)
        case list() | tuple():
            return yaml.SequenceNode(_TAG + "seq", [_node(inner) for inner in value], _NOWHERE, _NOWHERE)
        case None:
            return yaml.ScalarNode(_TAG + "null", "null", _NOWHERE, _NOWHERE)
        case bool():
            return yaml.ScalarNode(_TAG + "bool", "true" if value else "false", _NOWHERE, _NOWHERE)
    tag = {int: "int", float: "float"}.get(type(value), "str")
    return yaml.ScalarNode(_TAG + tag, str(value), _NOWHERE, _NOWHERE)


def _nearest(word: str, known: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def _likely_duration(word: str) -> str:
    """Suggest a duration: ``30 days`` probably means ``30d``."""
    guess = re.sub(r"[\s_]+", "", word.lower())
    found = re.fullmatch(r"([0-9]+)(ms|[smhd])?[a-z]*", guess)
    return f"{found[1]}{found[2] or 's'}" if found else "30d"
