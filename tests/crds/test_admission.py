"""The admission that these tests and the test server rely on does what a real server does, and refuses what it cannot judge."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubeapi.admission import CompiledKind, InvalidCrd
from kubeapi.expressions import Expression, ExpressionError, has_match

TEXT: dict[str, Any] = {"type": "string"}


def definition(spec: dict[str, Any], **version: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {"spec": {"versions": [served]}}


def compiled(spec: dict[str, Any], **version: Any) -> CompiledKind:
    return CompiledKind(definition(spec, **version), "v1")


def told(kind: CompiledKind, new: Any, old: Any = None) -> list[str]:
    return list(map(str, kind.validate({"metadata": {"name": "x"}, "spec": new}, None if old is None else {"spec": old})))


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def ruled(schema: dict[str, Any], rule: str, **others: str) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": "no", **others}]}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({}, "type: Required value: must not be empty for specified object fields"),
        ({"type": "text"}, 'type: Unsupported value: "text"'),
        ({"type": "array"}, "items: Required value: must be specified"),
        ({"type": "object", "additionalProperties": False}, "additionalProperties: Invalid value: false"),
        (
            fields(a=TEXT) | {"additionalProperties": TEXT},
            "additionalProperties: Forbidden: additionalProperties and properties",
        ),
        ({"type": "object", "patternProperties": {}}, "patternProperties: Forbidden: "),
        ({"type": "object", "$ref": "#/x"}, "$ref: Forbidden: "),
        ({"type": "array", "items": TEXT, "uniqueItems": True}, "uniqueItems: Forbidden: "),
        ({"type": "object", "oneOf": [{"required": ["a"]}]}, "oneOf: Forbidden: "),
        ({"type": "integer", "multipleOf": 2}, "multipleOf: Forbidden: "),
        ({"type": "integer", "maxLength": 2}, "maxLength: Forbidden: "),
        ({"type": "string", "format": "uri"}, "format: Forbidden: the format uri of type string is not checked here"),
        ({"type": "string", "pattern": "a(?=b)"}, "pattern: Invalid value: "),
        ({"type": "string", "pattern": "(a)\\1"}, "pattern: Invalid value: "),
        ({"type": "string", "enum": ["a"], "default": "b"}, 'default: Invalid value: "b": '),
        ({"type": "string", "default": None}, "default: Invalid value: null: must not be null"),
        (fields(a=TEXT) | {"default": {"b": "x"}}, "default: Invalid value: "),
        (fields(a=TEXT) | {"required": ["b"]}, 'required: Invalid value: "b": is no property'),
        ({"type": "array", "items": fields(a=TEXT), "x-kubernetes-list-type": "set"}, "items: Invalid value: "),
        (
            {"type": "array", "items": fields(a=TEXT), "x-kubernetes-list-type": "map"},
            "x-kubernetes-list-map-keys: Invalid value: []",
        ),
        (
            {"type": "array", "items": fields(a=TEXT), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
            "items.properties[a].default: Required value: ",
        ),
        (ruled(TEXT, "self.nope()"), "rule: Invalid value: "),
        (ruled(TEXT, "self =="), "rule: Invalid value: "),
        (ruled(TEXT, "other == self"), "rule: Invalid value: "),
        (ruled(fields(a=TEXT), "self.b == 'x'"), "rule: Invalid value: "),
        (ruled(TEXT, "true", optionalOldSelf="true"), "optionalOldSelf: Forbidden: "),
        (ruled(TEXT, "true", reason="Wrong"), 'reason: Unsupported value: "Wrong"'),
        (ruled(fields(a=TEXT), "true", fieldPath=".b"), 'fieldPath: Invalid value: ".b"'),
        (ruled(TEXT, " "), "rule: Required value: rule is not specified"),
        (ruled(TEXT, "true", message="a\nb"), "message: Invalid value: "),
        ({"type": "array", "items": ruled(TEXT, "self == oldSelf")}, "rule: Invalid value: "),
    ],
)
def test_schema_is_refused_at_the_place_that_is_wrong(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidCrd) as refused:
        compiled(fields(x=schema))

    assert [
        str(cause) for cause in refused.value.causes if place in str(cause) and "properties[spec].properties[x]" in cause.field
    ]


@pytest.mark.parametrize(
    "version",
    [
        {"selectableFields": [{"jsonPath": ".spec.nope"}]},
        {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".spec"}]},
        {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "spec"}]},
        {"schema": {}},
        {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"metadata": fields(labels=TEXT)}}}},
        {
            "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"metadata": {"type": "object", "description": "It."}}}
            }
        },
        {"schema": {"openAPIV3Schema": {"type": "string"}}},
    ],
)
def test_version_is_refused_where_a_real_server_refuses_it(version: dict[str, Any]) -> None:
    with pytest.raises(InvalidCrd):
        compiled(fields(), **version)


def test_unknown_fields_are_taken_away_and_named() -> None:
    kind = compiled(
        fields(
            a=fields(b=TEXT), c={"type": "array", "items": fields(d=TEXT)}, e={"type": "object", "additionalProperties": TEXT}
        )
    )
    body = {
        "kind": "X",
        "nope": 1,
        "metadata": {"name": "x", "labels": {"any": "thing"}, "color": "red"},
        "spec": {"a": {"b": "x", "f": 1}, "c": [{"d": "x"}, {"g": 1}], "e": {"any": "x"}},
    }  # fmt: skip

    assert sorted(kind.decode(body)) == ["metadata.color", "nope", "spec.a.f", "spec.c[1].g"]
    assert body["spec"] == {"a": {"b": "x"}, "c": [{"d": "x"}, {}], "e": {"any": "x"}}


def test_fields_to_be_preserved_stay() -> None:
    kind = compiled({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": fields(b=TEXT)}})
    body = {"spec": {"any": {"thing": 1}, "a": {"b": "x", "c": 1}}}

    assert kind.decode(body) == ["spec.a.c"]
    assert body == {"spec": {"any": {"thing": 1}, "a": {"b": "x"}}}


def test_defaults_fill_what_is_there_from_the_outside_in() -> None:
    inner = fields(a={"type": "string", "default": "x"})
    kind = compiled(fields(filled=inner | {"default": {}}, absent=inner, listed={"type": "array", "items": inner}))
    body: dict[str, Any] = {"spec": {"listed": [{}, {"a": "y"}]}}

    kind.default(body)

    assert body["spec"] == {"filled": {"a": "x"}, "listed": [{"a": "x"}, {"a": "y"}]}


def test_two_bodies_do_not_share_a_default() -> None:
    kind = compiled(fields(a={"type": "array", "items": TEXT, "default": []}))
    one: dict[str, Any] = {"spec": {}}
    other = copy.deepcopy(one)
    for body in (one, other):
        kind.default(body)

    one["spec"]["a"].append("x")

    assert other["spec"]["a"] == []


def test_null_is_a_default_or_nothing_unless_allowed() -> None:
    kind = compiled(fields(a={**TEXT, "default": "x"}, b=TEXT, c={**TEXT, "nullable": True}))
    body: dict[str, Any] = {"spec": {"a": None, "b": None, "c": None}}

    kind.default(body)

    assert body["spec"] == {"a": "x", "c": None}
    assert told(kind, body["spec"]) == []


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (TEXT, 1, 'Invalid value: "integer": spec.x in body must be of type string: "integer"'),
        ({"type": "integer"}, True, 'Invalid value: "boolean": spec.x in body must be of type integer: "boolean"'),
        ({"type": "integer"}, 1.5, 'Invalid value: "number": spec.x in body must be of type integer: "number"'),
        ({"type": "boolean"}, 1, 'Invalid value: "integer": spec.x in body must be of type boolean: "integer"'),
        (
            {"type": "integer", "exclusiveMinimum": True, "minimum": 1},
            1,
            "Invalid value: 1: spec.x in body should be greater than 1",
        ),
        (
            {"type": "number", "exclusiveMaximum": True, "maximum": 1},
            1,
            "Invalid value: 1: spec.x in body should be less than 1",
        ),
        (
            {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
            {},
            "Invalid value: {}: spec.x in body should have at least 1 properties",
        ),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            "Invalid value: 2147483648: spec.x in body must be of type int32: 2147483648",
        ),
        (
            {"type": "string", "format": "date-time"},
            "now",
            'Invalid value: "now": spec.x in body must be of type date-time: "now"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-02-30T00:00:00Z",
            'Invalid value: "2026-02-30T00:00:00Z": spec.x in body must be of type date-time: "2026-02-30T00:00:00Z"',
        ),
        ({"type": "string", "pattern": "^a+$"}, "a\n", "Invalid value: \"a\\n\": spec.x in body should match '^a+$'"),
        (
            {"x-kubernetes-int-or-string": True},
            1.5,
            'Invalid value: "number": spec.x in body must be of type integer,string: "number"',
        ),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, ["a", "b", "a"], 'Duplicate value: "a"'),
    ],
)
def test_value_is_refused_in_the_words_of_a_real_server(schema: dict[str, Any], value: Any, says: str) -> None:
    (line,) = told(compiled(fields(x=schema)), {"x": value})

    assert line.split(": ", 1)[1] == says


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "number"}, 1),
        ({"type": "string", "maxLength": 2}, "äö"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T23:59:59.5+01:00"),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"x-kubernetes-int-or-string": True}, 50),
    ],
)
def test_right_value_is_taken(schema: dict[str, Any], value: Any) -> None:
    assert told(compiled(fields(x=schema)), {"x": value}) == []


def test_rules_on_a_wrong_shape_are_said_to_be_unchecked() -> None:
    kind = compiled(ruled(fields(a=TEXT, b=TEXT), "self.a == self.b"))

    assert told(kind, {"a": 1, "b": "x"})[-1].startswith("<nil>: Invalid value: null: some validation rules were not checked")
    assert told(compiled(fields(a=TEXT)), {"a": 1})[1:] == []


def test_transition_is_judged_only_where_something_was_before() -> None:
    kind = compiled(fields(a=ruled(TEXT, "self == oldSelf")))

    assert (
        told(kind, {"a": "x"})
        == told(kind, {"a": "x"}, {})
        == told(kind, {}, {"a": "x"})
        == told(kind, {"a": "x"}, {"a": "x"})
        == []
    )
    assert told(kind, {"a": "y"}, {"a": "x"}) == ['spec.a: Invalid value: "y": no']


def test_transition_within_a_list_follows_the_keys() -> None:
    item = fields(name=TEXT, a=ruled(TEXT, "self == oldSelf")) | {"required": ["name"]}
    kind = compiled(
        fields(x={"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
    )
    before = {"x": [{"name": "one", "a": "1"}, {"name": "two", "a": "2"}]}

    assert told(kind, {"x": [{"name": "two", "a": "2"}, {"name": "new", "a": "3"}]}, before) == []
    assert told(kind, {"x": [{"name": "two", "a": "1"}]}, before) == ['spec.x[0].a: Invalid value: "1": no']


def test_rule_speaks_at_its_field_and_by_its_reason() -> None:
    kind = compiled(ruled(fields(a=TEXT), "self.a != 'x'", fieldPath=".a", reason="FieldValueForbidden"))

    assert told(kind, {"a": "x"}) == ["spec.a: Forbidden: no"]


def test_rule_may_compute_what_it_says() -> None:
    kind = compiled(ruled(fields(a=TEXT), "self.a != 'x'", messageExpression="'not ' + self.a"))

    assert told(kind, {"a": "x"}) == ["spec: Invalid value: not x"]


def test_rule_that_cannot_be_evaluated_refuses() -> None:
    kind = compiled(ruled(fields(a=TEXT, b=TEXT), "self.a == self.b"))

    assert told(kind, {"a": "x"}) == ['spec: Invalid value: "object": no such key: b evaluating rule: no']


def test_names_that_cel_keeps_for_itself_are_written_escaped() -> None:
    rule = "self.__namespace__ == self.a__dash__b__dot__c__slash__d__underscores__e"
    kind = compiled(ruled(fields(**{"namespace": TEXT, "a-b.c/d__e": TEXT}), rule))

    assert told(kind, {"namespace": "x", "a-b.c/d__e": "x"}) == []


def test_root_sees_only_name_and_kind_of_the_metadata() -> None:
    rules = ["self.metadata.name == 'x'", "!has(self.metadata.generateName)"]
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "no"} for rule in rules]}
    kind = compiled({}, schema={"openAPIV3Schema": schema})

    assert told(kind, {}) == []
    with pytest.raises(InvalidCrd):
        compiled({}, schema={"openAPIV3Schema": ruled({"type": "object"}, "has(self.metadata.labels)")})


def test_write_of_the_status_is_held_against_the_status_alone() -> None:
    schema = fields(spec=fields(a={**TEXT, "maxLength": 1}), status=fields(n={"type": "integer"}))
    kind = compiled({}, schema={"openAPIV3Schema": schema})
    body = {"spec": {"a": "too long"}, "status": {"n": "x"}}

    assert list(map(str, kind.validate(body, body, is_status=True))) == [
        'status.n: Invalid value: "string": n in body must be of type integer: "string"'
    ]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("'12ab3d'.find('[0-9]+[a-z]')", "12a"),
        ("'none'.find('[0-9]+')", ""),
        ("'500ms'.find('[0-9]+m($|[0-9])')", ""),
        ("'12ab3d'.findAll('[0-9]+')", ["12", "3"]),
        ("'12ab3d'.findAll('[0-9]+', 1)", ["12"]),
        ("'a b c'.split(' ', 2)", ["a", "b c"]),
        ("'ab'.split('')", ["a", "b"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("'\\u00a0 x\\t'.trim()", "x"),
        ("'ÄB'.lowerAscii()", "Äb"),
        ("'abc'.substring(1, 2)", "b"),
        ("'aXbX'.replace('X', '', 1)", "abX"),
        ("'abc'.indexOf('c')", 2),
        ("[1, 2, 3].sum()", 6),
        ("[3, 1].isSorted()", False),
        ("'%s has %d'.format(['a', 2])", "a has 2"),
        ("int('0' + '030'.find('[0-9]+'))", 30),
    ],
)
def test_functions_of_kubernetes_are_there(text: str, result: object) -> None:
    assert Expression.compile(text, frozenset()).evaluate({}) == result


@pytest.mark.parametrize(
    "text", ["1 + 'a'", "'a'.substring(2)", "[1].join()", "'a'.find('\\\\pL')", "{}.a", "9223372036854775807 + 1"]
)
def test_rule_without_a_result_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.compile(text, frozenset()).evaluate({})


@pytest.mark.parametrize("text", ["quantity('1')", "isURL('x')", "authorizer.path('/')", "self.?a", "unknown", "f(1)"])
def test_rule_not_evaluated_here_is_refused_at_once(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.compile(text, frozenset({"self"}))


def test_pattern_ends_where_the_text_ends() -> None:
    assert has_match("a", "^a$")
    assert not has_match("a\n", "^a$")
