"""Values of documents of YAML and JSON: a fault is noted with its file, its line and the path of its field, and reading goes on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from headwater.errors import RefusedError
from headwater.reconcile.manifests import ManifestFault
from headwater.settings import is_duration, parse_duration

C = TypeVar("C", bound=str)
R = TypeVar("R")
T = TypeVar("T")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHAPES = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
_TAG = "tag:yaml.org,2002:"
_NOWHERE = yaml.Mark("", 0, -1, 0, None, 0)


@dataclass(slots=True)
class ManifestSource:
    """One file, and the faults that were found in it."""

    file: str
    faults: list[ManifestFault] = field(default_factory=list)

    def fault(self, line: int, path: str, message: str) -> None:
        self.faults.append(ManifestFault(self.file, line, path, message))


@dataclass(frozen=True, slots=True)
class YamlValue:
    """One value of a document. Every reading method returns the value, or notes a fault and returns an empty value of its type.

    node          None for a field that is not given, which reads as an empty value, or as the first choice
    """

    source: ManifestSource
    node: yaml.Node | None
    path: str
    line: int

    @property
    def word(self) -> str:
        """The value as it is written, whatever its type; empty where it is not given."""
        return "" if self.node is None else str(self.node.value)

    def fault(self, message: str) -> None:
        self.source.fault(self.line, self.path, message)

    def required(self) -> YamlValue:
        """This value; its absence is a fault."""
        if self.node is None:
            self.fault("is missing")
        return self

    def text(self) -> str:
        """A string that is not empty. YAML's own idea of an unquoted ``yes`` or ``1.10`` is refused, not guessed."""
        word = self._scalar("a text")
        if word is None:
            return ""
        if not self._is_tagged("str"):
            self.fault(f'expected a text, YAML reads {word} otherwise; write "{word}" in quotes')
        elif not word.strip():
            self.fault("expected a text, this one is empty")
        return word

    def checked(self, check: Callable[[str], str]) -> str:
        """What the check makes of a text; its refusal is a fault."""
        text = self.text()
        return (self.apply_check(check, text) or text) if text.strip() else text

    def apply_check(self, check: Callable[[T], R], value: T) -> R | None:
        """What the check makes of a value that was read from here; None after its refusal, which is a fault."""
        try:
            return check(value)
        except RefusedError as error:
            self.fault(str(error))
            return None

    def flag(self) -> bool:
        word = self._scalar("true or false")
        if word is not None and not (self._is_tagged("bool") and word in ("true", "false")):
            self.fault(f"expected true or false, not {self._shown()}")
        return word == "true"

    def whole(self, *, least: int, most: int) -> int | None:
        """A whole number within its bounds."""
        word = self._scalar("a whole number")
        if word is None:
            return None
        if not self._is_tagged("int") or not _WHOLE.fullmatch(word):
            unquoted = f"; write {word} without quotes" if _WHOLE.fullmatch(word) else ""
            self.fault(f"expected a whole number, not {self._shown()}{unquoted}")
            return None
        if not least <= int(word) <= most:
            self.fault(f"must be from {least} to {most}, not {word}")
        return int(word)

    def choice(self, *choices: C) -> C:
        """One of several words."""
        word = self._scalar("one of " + ", ".join(choices))
        if word is not None and word not in choices:
            near = _nearest(word, choices)
            self.fault(f"{self._shown()} is none of {', '.join(choices)}" + (f"; did you mean {near}?" if near else ""))
        return next((choice for choice in choices if choice == word), choices[0])

    def duration(self) -> float | None:
        """A duration in seconds."""
        word = self._scalar("a duration such as 30d")
        if word is None:
            return None
        try:
            return parse_duration(word)
        except RefusedError:
            likely = f"{self._shown()} is not a duration; write for example {_likely_duration(word)}"
            self.fault(f"{word} is longer than a hundred years" if is_duration(word) else likely)
            return None

    def items(self, *, least: int = 0) -> list[YamlValue]:
        """The members of a list, each with its own path."""
        if self.node is None:
            return []
        if not isinstance(self.node, yaml.SequenceNode):
            self.fault(f"expected a list, not {self._shown()}")
            return []
        if len(self.node.value) < least:
            self.fault(f"expected a list with at least {least}, this one has {len(self.node.value)}")
        return [node_value(self.source, node, f"{self.path}[{number}]") for number, node in enumerate(self.node.value)]

    def pairs(self) -> dict[str, YamlValue]:
        """The entries of a mapping with free names, such as properties."""
        return {name: value for name, (_, value) in self._entries().items()}

    def member_word(self, name: str) -> str:
        """The word of a single value inside of a mapping, unread; empty where there is none."""
        nodes = self.node.value if isinstance(self.node, yaml.MappingNode) else []
        found = (node for key, node in nodes if isinstance(key, yaml.ScalarNode) and key.value == name)
        return next((str(node.value) for node in found if isinstance(node, yaml.ScalarNode)), "")

    def texts(self) -> dict[str, str]:
        """A mapping from free names to texts."""
        return {name: value.free_text() for name, value in self.pairs().items()}

    def free_text(self) -> str:
        """A string that may be empty."""
        return "" if self._is_tagged("str") and not self.word else self.text()

    def block(self, *known: str) -> dict[str, YamlValue]:
        """The fields of a mapping, all of them: ``null`` counts as not given, as in Kubernetes.

        Every other name is a fault that suggests the nearest known one.
        """
        prefix = f"{self.path}." if self.path else ""
        fields = {name: YamlValue(self.source, None, prefix + name, self.line) for name in known}
        for name, (line, value) in self._entries().items():
            if name not in fields:
                near = _nearest(name, known)
                advice = f"did you mean {near}?" if near else "there is: " + ", ".join(known)
                self.source.fault(line, value.path, f"unknown field; {advice}")
            elif not value._is_tagged("null"):
                fields[name] = value
        return fields

    def _entries(self) -> dict[str, tuple[int, YamlValue]]:
        """The entries of a mapping by name, each with the line of its name."""
        if self.node is None:
            return {}
        if not isinstance(self.node, yaml.MappingNode):
            self.fault(f"expected a mapping, not {self._shown()}")
            return {}
        entries: dict[str, tuple[int, YamlValue]] = {}
        for key, node in self.node.value:
            line = key.start_mark.line + 1
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            value = node_value(self.source, node, f"{self.path}.{name}" if self.path else name)
            if not name:
                self.source.fault(line, self.path, "the name of a field must be a text")
            elif name in entries:
                self.source.fault(line, value.path, f"given twice; it stands in line {entries[name][0]} already")
            else:
                entries[name] = (line, value)
        return entries

    def _is_tagged(self, tag: str) -> bool:
        return self.node is not None and self.node.tag == _TAG + tag

    def _scalar(self, expected: str) -> str | None:
        """The word of a single value; None where there is none, which is a fault unless it is not given."""
        if isinstance(self.node, yaml.ScalarNode) and not self._is_tagged("null"):
            return self.word
        if self.node is not None:
            self.fault(f"expected {expected}, not {self._shown()}")
        return None

    def _shown(self) -> str:
        if self._is_tagged("null"):
            return "null"
        if not isinstance(self.node, yaml.ScalarNode):
            return _SHAPES[type(self.node)]
        shown = self.word if len(self.word) <= 60 else self.word[:57] + "..."
        return f'"{shown}"' if self._is_tagged("str") else shown


def node_value(source: ManifestSource, node: yaml.Node, path: str) -> YamlValue:
    return YamlValue(source, node, path, node.start_mark.line + 1)


def yaml_documents(text: str, source: ManifestSource) -> list[YamlValue]:
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
    return [node_value(source, node, "") for node in nodes if node is not None and node.tag != _TAG + "null"]


def plain_node(value: object) -> yaml.Node:
    """A value that was parsed elsewhere, such as the body of a resource, as a node without a line."""
    match value:
        case Mapping():
            pairs = [(plain_node(str(name)), plain_node(inner)) for name, inner in value.items()]
            return yaml.MappingNode(_TAG + "map", pairs, _NOWHERE, _NOWHERE)
        case list() | tuple():
            return yaml.SequenceNode(_TAG + "seq", [plain_node(inner) for inner in value], _NOWHERE, _NOWHERE)
    tag = {type(None): "null", bool: "bool", int: "int", float: "float"}.get(type(value), "str")
    return yaml.ScalarNode(_TAG + tag, str(value).lower() if tag == "bool" else str(value), _NOWHERE, _NOWHERE)


def _nearest(word: str, known: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def _likely_duration(word: str) -> str:
    """Suggest a duration: ``30 days`` probably means ``30d``."""
    guess = re.fullmatch(r"([0-9]+)(ms|[smhd])?[a-z]*", re.sub(r"[\s_]+", "", word.lower()))
    return f"{guess[1]}{guess[2] or 's'}" if guess else "30d"
