from __future__ import annotations

import pytest

from headwater.errors import RefusedError
from headwater.iceberg.layout import parse_pattern


def key(pattern: str, path: str) -> tuple[str, ...] | None:
    return parse_pattern(pattern).match_key(path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("{namespace}.db/{table}", "sales.db/orders", ("sales", "orders")),
        ("{namespace}.db/{table}", "sales/orders", None),
        ("{namespace}.db/{table}", "a/sales.db/orders", None),
        ("{namespace/}/{table}", "a/b/c/t", ("a", "b", "c", "t")),
        ("{namespace/}/{table}", "t", None),
        ("team/{table}_v*", "team/orders_v2", ("orders",)),
        ("*/{namespace}/{table}", "x/sales/t", ("sales", "t")),
        ("**/{table}", "a/b/t", ("t",)),
        ("**/{table}", "t", ("t",)),
        ("{namespace}/**/{table}", "sales/2024/eu/t", ("sales", "t")),
        ("{region}-{namespace}/{table}", "eu-west-sales/t", ("eu", "west-sales", "t")),
        ("{table}", "Ünïcode %20 t", ("Ünïcode %20 t",)),
        ("a+b/{table}", "a+b/t", ("t",)),
    ],
)
def test_pattern_takes_keys_out_of_paths(pattern: str, path: str, expected: tuple[str, ...] | None) -> None:
    assert key(pattern, path) == expected


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("{namespace}/t", "{table}"),
        ("{table}/{namespace}", "last placeholder"),
        ("{namespace}/{table/}", "last placeholder"),
        ("{a}/{a}/{table}", "twice"),
        ("{namespace}/{table", "place 13"),
        ("{name space}/{table}", "place 1"),
        ("a}/{table}", "place 2"),
        ("/{table}", "slash"),
        ("a//{table}", "slash"),
        ("", "{table}"),
        ("*a*a*a*a*a/{table}", "at most 3"),
        ("{a}{b}{c}{d}{table}", "at most 3"),
        ("**/x/**/y/**/{table}", "at most 2"),
        ("{a/}/{b/}/**/{table}", "at most 2"),
    ],
)
def test_pattern_without_sense_is_refused_with_its_fault(pattern: str, fault: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_pattern(pattern)

    assert fault in str(refused.value)
