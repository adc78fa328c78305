"""A real server adds up what rules could cost before it takes a definition. Here the worst of it is bounded from above.

A character counts as four bytes; a pattern costs a tenth of the text's bytes times a quarter of its own length; other calls on texts at
most two tenths of their bytes; a rule is charged for each item and name under which it can stand. The limits are those of Kubernetes:
10 million for a rule, 100 million for a definition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pytest
from defined_kinds import LEAST, nodes, read_kind

RULE_LIMIT, DEFINITION_LIMIT = 10_000_000, 100_000_000
PATTERN = re.compile(r"\.(?:matches|find|findAll)\(r?'((?:[^'\\]|\\.)*)'\)")
CALL = re.compile(r"\w+\(")


def longest(schema: Mapping[str, Any]) -> int:
    """Bytes of the longest text in it."""
    return max((4 * inner.get("maxLength", 0) for _, inner in nodes(schema)), default=0)


def most_items(schema: Mapping[str, Any]) -> int:
    """Of the longest list or block of free names in it."""
    return max((inner.get("maxItems", inner.get("maxProperties", 1)) for _, inner in nodes(schema)), default=1)


def cost(rule: str, schema: Mapping[str, Any]) -> int:
    """Of one evaluation, at most."""
    text = longest(schema)
    patterns = sum(math.ceil((text + 1) * 0.1) * math.ceil(len(pattern) * 0.25) for pattern in PATTERN.findall(rule))
    others = len(CALL.findall(rule)) * math.ceil(text * 0.2) + 10 * len(rule.split())
    return (patterns + others) * (most_items(schema) if ".all(" in rule else 1)


def times(kind: str) -> dict[tuple[str, ...], int]:
    """How often each place can be there in one resource."""
    counted: dict[tuple[str, ...], int] = {}
    fields = dict(nodes(read_kind(kind).schema))
    for path in fields:
        above = fields[path[:-1]] if path else {}
        own = {"[]": above.get("maxItems", 0), "*": above.get("maxProperties", 0)}.get(path[-1] if path else "", 1)
        counted[path] = own * (counted[path[:-1]] if path else 1)
    return counted


def costs(kind: str) -> dict[str, int]:
    """By place and message."""
    counted = times(kind)
    return {
        f"{'.'.join(path)}: {rule['message']}": cost(rule["rule"], schema) * counted[path]
        for path, schema in nodes(read_kind(kind).schema)
        for rule in schema.get("x-kubernetes-validations", ())
    }


@pytest.mark.parametrize("kind", LEAST)
def test_no_rule_costs_more_than_a_server_allows(kind: str) -> None:
    assert {rule: most for rule, most in costs(kind).items() if most > RULE_LIMIT} == {}


@pytest.mark.parametrize("kind", LEAST)
def test_all_rules_together_cost_less_than_a_server_allows(kind: str) -> None:
    assert sum(costs(kind).values()) <= DEFINITION_LIMIT


@pytest.mark.parametrize("kind", LEAST)
def test_rules_work_on_pieces_of_a_known_size(kind: str) -> None:
    """What split and findAll return has items of no known length: any further call on those would count as endless."""
    rules = [rule["rule"] for _, schema in nodes(read_kind(kind).schema) for rule in schema.get("x-kubernetes-validations", ())]

    assert [rule for rule in rules if re.search(r"\b(split|findAll|join|map|filter)\(", rule)] == []
