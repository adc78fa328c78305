"""ValidatingAdmissionPolicies and their bindings: what they deny, and in which words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubeapi.causes import Cause, InvalidCrd
from kubeapi.expressions import Expression, ExpressionError

__all__ = ["Denial", "Policies"]

POLICY = "ValidatingAdmissionPolicy"
BINDING = "ValidatingAdmissionPolicyBinding"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""The label that every namespace has, with its name."""
CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_KNOWN = frozenset({"object", "oldObject", "request", "variables"})
_POLICY_KEYS = {"failurePolicy", "matchConstraints", "matchConditions", "validations", "variables"}
_BINDING_KEYS = {"policyName", "validationActions", "matchResources"}
_MATCH_KEYS = {"resourceRules", "excludeResourceRules", "matchPolicy", "namespaceSelector", "objectSelector"}
_RULE_KEYS = {"apiGroups", "apiVersions", "operations", "resources", "resourceNames", "scope"}
_VALIDATION_KEYS = {"expression", "message", "messageExpression", "reason"}


@dataclass(frozen=True, slots=True)
class Denial:
    """An answer of no: what a Status of it says, with ``cause`` as the message of its only cause."""

    code: int
    reason: str
    message: str
    cause: str


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str

    def told(self, known: Mapping[str, Any]) -> str:
        message = self.message or f"failed expression: {self.expression.text}"
        if self.message_expression is None:
            return message
        try:
            return str(self.message_expression.evaluate(known)).strip() or message
        except ExpressionError:
            return message


@dataclass(frozen=True, slots=True)
class _Policy:
    name: str
    does_fail: bool
    rules: Mapping[str, Any]
    conditions: tuple[Expression, ...]
    variables: Mapping[str, Expression]
    validations: tuple[_Validation, ...]

    def refusal(self, seen: Mapping[str, Any]) -> tuple[str, str] | None:
        """Reason and message of the first validation that does not hold."""
        try:
            if not all(condition.claims(seen) for condition in self.conditions):
                return None
        except ExpressionError as error:
            return ("Invalid", str(error)) if self.does_fail else None
        for validation in self.validations:
            refused = self._refused(validation, seen)
            if refused is not None:
                return refused
        return None

    def _refused(self, validation: _Validation, seen: Mapping[str, Any]) -> tuple[str, str] | None:
        try:
            known = dict(seen)
            known["variables"] = {}
            for name, variable in self.variables.items():
                known["variables"] = {**known["variables"], name: variable.evaluate(known)}
            if validation.expression.claims(known):
                return None
        except ExpressionError as error:
            said = f"expression '{validation.expression.text}' resulted in error: {error}"
            return ("Invalid", said) if self.does_fail else None
        return validation.reason, validation.told(known)


@dataclass(frozen=True, slots=True)
class _Binding:
    name: str
    policy: str
    does_deny: bool
    rules: Mapping[str, Any]


class Policies:
    """The policies and bindings of a server, and what they say of a request."""

    def __init__(self) -> None:
        self._policies: dict[str, _Policy] = {}
        self._bindings: dict[str, _Binding] = {}

    def put(self, obj: Mapping[str, Any]) -> None:
        """Take in a policy or a binding. Raises InvalidCrd for what cannot be evaluated here."""
        faults: list[Cause] = []
        if obj["kind"] == POLICY:
            policy = _policy(obj, faults)
            _raise(faults)
            self._policies[policy.name] = policy
        elif obj["kind"] == BINDING:
            binding = _binding(obj, faults)
            _raise(faults)
            self._bindings[binding.name] = binding

    def remove(self, kind: str, name: str) -> None:
        (self._policies if kind == POLICY else self._bindings).pop(name, None)

    def check(
        self, operation: str, resource: Mapping[str, str], obj: Mapping[str, Any] | None, old: Mapping[str, Any] | None
    ) -> Denial | None:
        """What a bound policy says against the request.

        operation     CREATE, UPDATE, DELETE or CONNECT
        resource      group, version, resource, namespace, name, and kind and subresource where there are such
        """
        seen = {"object": obj, "oldObject": old, "request": _request(operation, resource)}
        for binding in self._bindings.values():
            policy = self._policies.get(binding.policy)
            if policy is None or not binding.does_deny or not _matches(policy.rules, operation, resource):
                continue
            if binding.rules and not _matches(binding.rules, operation, resource):
                continue
            refused = policy.refusal(seen)
            if refused is not None:
                return _denial(policy, binding, resource, *refused)
        return None


def _denial(policy: _Policy, binding: _Binding, resource: Mapping[str, str], reason: str, told: str) -> Denial:
    what = f"{resource['resource']}.{resource['group']}" if resource["group"] else resource["resource"]
    message = f"{POLICY} '{policy.name}' with binding '{binding.name}' denied request: {told}"
    return Denial(CODES[reason], reason, f'{what} "{resource["name"]}" is forbidden: {message}', message)


def _request(operation: str, resource: Mapping[str, str]) -> dict[str, Any]:
    group, version = resource["group"], resource["version"]
    return {
        "operation": operation,
        "name": resource["name"],
        "namespace": resource["namespace"],
        "subResource": resource.get("subresource", ""),
        "resource": {"group": group, "version": version, "resource": resource["resource"]},
        "kind": {"group": group, "version": version, "kind": resource.get("kind", "")},
        "dryRun": resource.get("dryRun", "") == "true",
        "userInfo": {"username": resource.get("user", "kubernetes-admin")},
    }


def _matches(rules: Mapping[str, Any], operation: str, resource: Mapping[str, str]) -> bool:
    def is_hit(name: str) -> bool:
        return any(_is_hit(rule, operation, resource) for rule in rules.get(name, ()))

    if not all(_is_in(asked, resource["namespace"]) for asked in _asked_of_namespace(rules)):
        return False
    return (is_hit("resourceRules") or not rules.get("resourceRules")) and not is_hit("excludeResourceRules")


def _asked_of_namespace(rules: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The expressions of the selector of namespaces; labels to match are such expressions, too."""
    selector = rules.get("namespaceSelector") or {}
    labels = [{"key": key, "operator": "In", "values": [value]} for key, value in selector.get("matchLabels", {}).items()]
    return [*selector.get("matchExpressions", ()), *labels]


def _is_in(asked: Mapping[str, Any], namespace: str) -> bool:
    """Whether a namespace of this name is meant. What has no namespace always is."""
    return not namespace or (namespace in asked["values"]) == (asked["operator"] == "In")


def _is_hit(rule: Mapping[str, Any], operation: str, resource: Mapping[str, str]) -> bool:
    what = "/".join(filter(None, (resource["resource"], resource.get("subresource", ""))))
    asked = {"operations": operation, "apiGroups": resource["group"], "apiVersions": resource["version"]}
    named = rule.get("resourceNames") or [resource["name"]]
    wide = what.split("/")[0] + "/*"
    return (
        all({"*", value} & set(rule.get(name, ())) for name, value in asked.items())
        and bool({what, wide, "*/*", *([] if "/" in what else ["*"])} & set(rule.get("resources", ())))
        and resource["name"] in named
    )


def _policy(obj: Mapping[str, Any], faults: list[Cause]) -> _Policy:
    spec = obj["spec"]
    _only(spec, _POLICY_KEYS, "spec", faults)
    rules = spec.get("matchConstraints") or {}
    _match_faults(rules, "spec.matchConstraints", faults)
    if not rules.get("resourceRules"):
        faults.append(Cause.required("spec.matchConstraints.resourceRules", ""))
    if not spec.get("validations"):
        faults.append(Cause.required("spec.validations", "validations or auditAnnotations must be non-empty"))
    conditions = [
        _expression(one, f"spec.matchConditions[{number}]", faults) for number, one in _numbered(spec, "matchConditions")
    ]
    variables = {
        one["name"]: _expression(one, f"spec.variables[{number}]", faults) for number, one in _numbered(spec, "variables")
    }
    validations = [_validation(one, f"spec.validations[{number}]", faults) for number, one in _numbered(spec, "validations")]
    _raise(faults)
    return _Policy(
        obj["metadata"]["name"],
        spec.get("failurePolicy", "Fail") == "Fail",
        rules,
        tuple(one for one in conditions if one),
        {name: one for name, one in variables.items() if one},
        tuple(one for one in validations if one),
    )


def _binding(obj: Mapping[str, Any], faults: list[Cause]) -> _Binding:
    spec = obj["spec"]
    _only(spec, _BINDING_KEYS, "spec", faults)
    rules = spec.get("matchResources") or {}
    _match_faults(rules, "spec.matchResources", faults)
    if not spec.get("policyName"):
        faults.append(Cause.required("spec.policyName"))
    actions = spec.get("validationActions") or []
    if not actions:
        faults.append(Cause.required("spec.validationActions"))
    for number, action in enumerate(actions):
        if action not in ("Deny", "Warn", "Audit"):
            faults.append(Cause.not_supported(f"spec.validationActions[{number}]", action, ("Audit", "Deny", "Warn")))
    return _Binding(obj["metadata"]["name"], spec.get("policyName", ""), "Deny" in actions, rules)


def _match_faults(rules: Mapping[str, Any], path: str, faults: list[Cause]) -> None:
    _only(rules, _MATCH_KEYS, path, faults)
    if rules.get("objectSelector"):
        faults.append(Cause.forbidden(f"{path}.objectSelector", "is not evaluated here"))
    for number, asked in enumerate(_asked_of_namespace(rules)):
        if asked["key"] != NAMESPACE_LABEL or asked["operator"] not in ("In", "NotIn") or not asked.get("values"):
            where = f"{path}.namespaceSelector.matchExpressions[{number}]"
            faults.append(Cause.forbidden(where, f"only In and NotIn of the label {NAMESPACE_LABEL} are evaluated here"))
    for name in ("resourceRules", "excludeResourceRules"):
        for number, rule in _numbered(rules, name):
            where = f"{path}.{name}[{number}]"
            _only(rule, _RULE_KEYS, where, faults)
            for key in ("apiGroups", "apiVersions", "operations", "resources"):
                if not rule.get(key):
                    faults.append(Cause.required(f"{where}.{key}"))


def _validation(told: Mapping[str, Any], path: str, faults: list[Cause]) -> _Validation | None:
    _only(told, _VALIDATION_KEYS, path, faults)
    reason = told.get("reason", "Invalid")
    if reason not in CODES:
        faults.append(Cause.not_supported(f"{path}.reason", reason, sorted(CODES)))
    expression = _expression(told, path, faults)
    spoken = told.get("messageExpression")
    message_expression = _expression({"expression": spoken}, path, faults) if spoken else None
    return expression and _Validation(expression, told.get("message", ""), message_expression, reason)


def _expression(told: Mapping[str, Any], path: str, faults: list[Cause]) -> Expression | None:
    text = told.get("expression", "")
    try:
        return Expression.compile(text, _KNOWN)
    except ExpressionError as error:
        faults.append(Cause.invalid(f"{path}.expression", text, str(error)))
        return None


def _only(told: Mapping[str, Any], known: set[str], path: str, faults: list[Cause]) -> None:
    faults += [Cause.forbidden(f"{path}.{name}", "unknown, or not evaluated here") for name in sorted(told.keys() - known)]


def _numbered(told: Mapping[str, Any], name: str) -> Iterator[tuple[int, Any]]:
    return enumerate(told.get(name) or ())


def _raise(faults: list[Cause]) -> None:
    if faults:
        raise InvalidCrd(faults)
