"""Conditions, merged: their order, their times, and the length of what they say."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import NOW, NOW_TEXT, later
from hypothesis import given
from hypothesis import strategies as st

from headwater.clock import as_text
from headwater_operator.resource.conditions import Condition, cut_message, kept_conditions, merge_conditions
from headwater_operator.resource.reasons import CONDITIONS

READY = Condition("Ready", "True", "Reconciled")
WAITING = Condition("Ready", "False", "Loading", "it is being loaded")

conditions = st.lists(
    st.builds(
        Condition,
        st.sampled_from([condition.name for condition in CONDITIONS]),
        st.sampled_from(["True", "False", "Unknown"]),
        st.sampled_from(["Reconciled", "StoreUnavailable"]),
        st.text(max_size=2000),
    ),
    unique_by=lambda one: one.type,
)


def first(wanted: list[Condition], *, generation: int = 1) -> list[dict[str, Any]]:
    return merge_conditions([], wanted, generation=generation, now=NOW)


def test_condition_has_all_that_the_api_asks_for() -> None:
    assert first([READY], generation=3) == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Reconciled",
            "message": "",
            "observedGeneration": 3,
            "lastTransitionTime": NOW_TEXT,
        }
    ]


def test_conditions_stand_in_the_order_of_the_catalogue() -> None:
    names = [condition.name for condition in CONDITIONS]
    wanted = [Condition(name, "True", "Reconciled") for name in reversed(names)]

    assert [one["type"] for one in first(wanted)] == names


def test_time_changes_with_the_status() -> None:
    (after,) = merge_conditions(first([WAITING]), [READY], generation=1, now=later(60))

    assert after["lastTransitionTime"] == as_text(later(60))


def test_time_stays_when_reason_message_or_generation_change() -> None:
    other = Condition("Ready", "False", "PurgeHold", "it is held")

    (after,) = merge_conditions(first([WAITING]), [other], generation=2, now=later(60))

    assert (after["reason"], after["observedGeneration"], after["lastTransitionTime"]) == ("PurgeHold", 2, NOW_TEXT)


def test_condition_that_does_not_apply_any_more_leaves() -> None:
    former = first([READY, Condition("Purging", "False", "PurgeHold")])

    assert [one["type"] for one in merge_conditions(former, [READY], generation=1, now=NOW)] == ["Ready"]


@pytest.mark.parametrize("time", [None, "", "yesterday", 7])
def test_time_that_is_none_is_not_kept(time: object) -> None:
    former = [{"type": "Ready", "status": "True", "lastTransitionTime": time}]

    assert merge_conditions(former, [READY], generation=1, now=NOW)[0]["lastTransitionTime"] == NOW_TEXT


def test_condition_can_be_said_again_as_it_was() -> None:
    assert kept_conditions(first([WAITING]), "Ready") == WAITING
    assert kept_conditions(first([WAITING]), "Drifted") is None
    assert kept_conditions([{"type": "Ready", "status": "Perhaps"}], "Ready") is None


@given(former=conditions, wanted=conditions)
def test_merged_conditions_do_not_change_by_merging_again(former: list[Condition], wanted: list[Condition]) -> None:
    once = merge_conditions(merge_conditions([], former, generation=1, now=NOW), wanted, generation=2, now=later(60))
    again = [said for one in once if (said := kept_conditions(once, one["type"])) is not None]

    assert merge_conditions(once, wanted, generation=2, now=later(3600)) == once
    assert merge_conditions(once, again, generation=2, now=later(3600)) == once


@given(text=st.text(max_size=3000), limit=st.integers(min_value=10, max_value=1024))
def test_text_is_cut_to_its_limit_and_once_only(text: str, limit: int) -> None:
    short = cut_message(text, limit)

    assert len(short) <= limit
    assert cut_message(short, limit) == short
    assert short == text.strip() or short.endswith("…")


def test_text_is_cut_where_a_sentence_ends() -> None:
    assert cut_message("One is done. Two is done. Three is not done yet.", 30) == "One is done. Two is done. …"


def test_text_without_sentences_is_cut_where_it_must_be() -> None:
    assert cut_message("x" * 50, 10) == "xxxxxxxx …"
