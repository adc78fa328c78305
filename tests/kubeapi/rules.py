"""``x-kubernetes-validations``: rules over an object, and over the way from the old object to the new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kubeapi.causes import OMITTED, Cause
from kubeapi.expressions import Expression, ExpressionError
from kubeapi.schemas import INT_OR_STRING, is_date_time

__all__ = ["RuleTree", "compile_rules"]

Schema = Mapping[str, Any]

_ABSENT = object()
_KNOWN = frozenset({"self", "oldSelf"})
_KEYS = {"rule", "message", "messageExpression", "reason", "fieldPath"}
_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
_PATH = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_]*)+")
_CHAIN = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\()?")
_ESCAPED = {
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
    *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
}
_STRING = re.compile(r"""[rRbB]{0,2}("([^"\\]|\\.)*"|'([^'\\]|\\.)*')""")


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str
    field_path: str

    @property
    def is_transition(self) -> bool:
        return "oldSelf" in self.expression.names

    def check(self, variables: Mapping[str, Any], path: str, shown: Any, kind: str) -> Iterator[Cause]:
        """``kind`` is the schema's type, which is told where the rule itself fails; its own field path then says nothing."""
        where = (path + self.field_path).removeprefix(".") or "<nil>"
        try:
            if self.expression.claims(variables):
                return
        except ExpressionError as error:
            yield Cause.invalid(path or "<nil>", kind, f"{error} evaluating rule: {self.message or self.expression.text}")
            return
        message = self._told(variables)
        match self.reason:
            case "FieldValueForbidden":
                yield Cause.forbidden(where, message)
            case "FieldValueRequired":
                yield Cause.required(where, message)
            case "FieldValueDuplicate":
                yield Cause.duplicate(where, shown)
            case _:
                yield Cause.invalid(where, shown, message)

    def _told(self, variables: Mapping[str, Any]) -> str:
        if self.message_expression is not None:
            try:
                told = self.message_expression.evaluate(variables)
            except ExpressionError:
                told = ""
            if isinstance(told, str) and told.strip() and "\n" not in told:
                return told
        return self.message or f"failed rule: {self.expression.text}"


@dataclass(frozen=True, slots=True)
class RuleTree:
    """The rules of a schema, each at its place."""

    schema: Schema
    rules: tuple[_Rule, ...] = ()
    fields: Mapping[str, RuleTree] = field(default_factory=dict)
    members: RuleTree | None = None
    items: RuleTree | None = None

    @property
    def is_empty(self) -> bool:
        inner = [*self.fields.values(), self.members, self.items]
        return not self.rules and all(tree is None or tree.is_empty for tree in inner)

    def check(self, new: Any, old: Any = _ABSENT, path: str = "") -> Iterator[Cause]:
        """What breaks a rule. Rules that compare are left out where nothing old stands in the same place."""
        if self.rules:
            yield from self._check_here(new, old, path)
        if isinstance(new, dict):
            was = old if isinstance(old, dict) else {}
            for name, value in new.items():
                tree = self.fields.get(name)
                if tree is not None:
                    yield from tree.check(value, was.get(name, _ABSENT), f"{path}.{name}" if path else name)
                elif self.members is not None:
                    yield from self.members.check(value, was.get(name, _ABSENT), f"{path}[{name}]")
        if isinstance(new, list) and self.items is not None:
            for number, item in enumerate(new):
                yield from self.items.check(item, self._same(item, old), f"{path}[{number}]")

    def _check_here(self, new: Any, old: Any, path: str) -> Iterator[Cause]:
        is_new = old is _ABSENT or old is None
        variables = {"self": _plain(new, self.schema), **({} if is_new else {"oldSelf": _plain(old, self.schema)})}
        shown = OMITTED if isinstance(new, dict | list) else new
        for rule in self.rules:
            if not (rule.is_transition and is_new):
                yield from rule.check(variables, path, shown, self.schema.get("type", ""))

    def _same(self, item: Any, old: Any) -> Any:
        """The old item with the same keys, in a list of type map."""
        keys = self.schema.get("x-kubernetes-list-map-keys", ())
        if not keys or not isinstance(old, list):
            return _ABSENT
        return next((was for was in old if all(was.get(key) == item.get(key) for key in keys)), _ABSENT)


def compile_rules(schema: Schema, path: str, faults: list[Cause], *, is_correlatable: bool = True) -> RuleTree:
    """The rules of the schema. What is wrong with them is added to ``faults``."""
    rules = []
    for number, told in enumerate(schema.get("x-kubernetes-validations", ())):
        where = f"{path}.x-kubernetes-validations[{number}]"
        rule = _compile(told, schema, where, faults)
        if rule is not None and rule.is_transition and not is_correlatable:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
            faults.append(Cause.invalid(f"{where}.rule", rule.expression.text, detail))
        rules += [rule] if rule else []
    keeps_items = is_correlatable and schema.get("x-kubernetes-list-type") == "map"
    keeps_fields = is_correlatable and schema.get("x-kubernetes-map-type") != "atomic"
    fields = {
        name: compile_rules(inner, f"{path}.properties[{name}]", faults, is_correlatable=keeps_fields)
        for name, inner in schema.get("properties", {}).items()
    }
    return RuleTree(
        schema,
        tuple(rules),
        {name: tree for name, tree in fields.items() if not tree.is_empty},
        _compiled_inner(schema.get("additionalProperties"), f"{path}.additionalProperties", faults, keeps_fields),
        _compiled_inner(schema.get("items"), f"{path}.items", faults, keeps_items),
    )


def _compiled_inner(schema: Schema | None, path: str, faults: list[Cause], is_correlatable: bool) -> RuleTree | None:
    tree = None if schema is None else compile_rules(schema, path, faults, is_correlatable=is_correlatable)
    return None if tree is None or tree.is_empty else tree


def _compile(told: Mapping[str, Any], schema: Schema, path: str, faults: list[Cause]) -> _Rule | None:
    before = len(faults)
    for name in sorted(told.keys() - _KEYS):
        faults.append(Cause.forbidden(f"{path}.{name}", "unknown, or not done here"))
    message, reason, field_path = told.get("message", ""), told.get("reason", _REASONS[0]), told.get("fieldPath", "")
    if "\n" in message or (message and not message.strip()):
        faults.append(Cause.invalid(f"{path}.message", message, "message must be one line that is not empty"))
    if len(message) > 2048:
        faults.append(Cause.invalid(f"{path}.message", "<snip>", "message must be 2048 characters or less"))
    if reason not in _REASONS:
        faults.append(Cause.not_supported(f"{path}.reason", reason, _REASONS))
    if field_path and (not _PATH.fullmatch(field_path) or _at(schema, field_path[1:].split(".")) is None):
        faults.append(Cause.invalid(f"{path}.fieldPath", field_path, "fieldPath must be a path of existing fields"))
    expression = _expression(told.get("rule", ""), schema, f"{path}.rule", faults)
    told_expression = told.get("messageExpression")
    spoken = _expression(told_expression, schema, f"{path}.messageExpression", faults) if told_expression else None
    if expression is None or len(faults) > before:
        return None
    return _Rule(expression, message, spoken, reason, field_path)


def _expression(text: str, schema: Schema, path: str, faults: list[Cause]) -> Expression | None:
    if not text.strip():
        faults.append(Cause.required(path, "rule is not specified"))
        return None
    try:
        expression = Expression.compile(text, _KNOWN)
    except ExpressionError as error:
        faults.append(Cause.invalid(path, text, str(error)))
        return None
    for chain, call in _CHAIN.findall(_STRING.sub("''", text)):
        names = chain[1:].split(".")[: -1 if call else None]
        if names and _at(schema, names) is None:
            faults.append(Cause.invalid(path, text, f"compilation failed: undefined field '{'.'.join(names)}'"))
    return expression


def _at(schema: Schema, names: list[str]) -> Schema | None:
    """The schema of the field at the end of the names, which may be escaped."""
    for name in names:
        fields = {_escaped(key): inner for key, inner in schema.get("properties", {}).items()}
        inner = fields.get(name, schema.get("additionalProperties"))
        if inner is None:
            return None
        schema = inner
    return schema


def _escaped(name: str) -> str:
    """How a rule writes the name of a field."""
    if name in _ESCAPED:
        return f"__{name}__"
    return name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


def _plain(value: Any, schema: Schema) -> Any:
    """The value as a rule sees it: names escaped, numbers and times of the type that the schema says."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        inner = schema.get("additionalProperties", {})
        seen = {name: member for name, member in value.items() if member is not None}
        if not properties:
            return {name: _plain(member, inner) for name, member in seen.items()}
        return {_escaped(name): _plain(member, properties.get(name, {})) for name, member in seen.items()}
    if isinstance(value, list):
        return [_plain(item, schema.get("items", {})) for item in value]
    if schema.get("format") == "date-time" and isinstance(value, str) and is_date_time(value):
        return datetime.fromisoformat(value.upper())
    if schema.get("type") == "number" and not schema.get(INT_OR_STRING) and isinstance(value, int):
        return float(value)
    return value
