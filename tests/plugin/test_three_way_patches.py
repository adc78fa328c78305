"""What `kubectl apply` would send, as `plan -f` has to know it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_operator.plugin.plan_command import three_way_patch

Body = dict[str, Any]

values = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
specs = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def merged(there: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(there) if isinstance(there, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@pytest.mark.parametrize(
    ("last", "wished", "live", "patch"),
    [
        ({"a": 1}, {"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}),
        ({"a": 1}, {}, {"a": 1}, {"a": None}),
        ({"a": 1}, {}, {}, {}),
        ({}, {}, {"filled": "by the server"}, {}),
        ({"m": {"x": 1, "y": 2}}, {"m": {"x": 1}}, {"m": {"x": 1, "y": 2, "z": 3}}, {"m": {"y": None}}),
        ({"m": [1, 2]}, {"m": [2]}, {"m": [1, 2]}, {"m": [2]}),
    ],
)
def test_field_goes_only_if_the_last_file_had_it(last: Body, wished: Body, live: Body, patch: Body) -> None:
    assert three_way_patch(last, wished, live) == patch


@given(last=specs, wished=specs)
def test_applied_object_as_it_stands_becomes_what_is_wished(last: Body, wished: Body) -> None:
    assert merged(last, three_way_patch(last, wished, last)) == wished


@given(last=specs, wished=specs, live=specs)
def test_wish_holds_afterwards_whatever_stands_there(last: Body, wished: Body, live: Body) -> None:
    after = merged(live, three_way_patch(last, wished, live))

    assert three_way_patch({}, wished, after) == {}
