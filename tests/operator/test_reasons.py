"""The catalogue of reasons: one entry for every word that a planner, a status or an event may use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headwater.reconcile as planners
from headwater.reconcile import REASONS as STEPS
from headwater_operator.resource.reasons import CONDITIONS, REASONS, conditions_table, events_table, reason_named, reasons_table

WORD = re.compile(r"[A-Z][A-Za-z]+")
NOTICE = re.compile(r"\b(?:WaitUntil|RefuseManifest|ReportDrift)\(\s*\"([A-Za-z]+)\"")
ROOM = Path(planners.__file__).parent


def words_of_notices() -> list[str]:
    return sorted({word for file in ROOM.glob("*.py") for word in NOTICE.findall(file.read_text(encoding="utf-8"))})


def test_every_step_of_the_planners_is_in_the_catalogue() -> None:
    assert [word for word in STEPS.values() if not reason_named(word)] == []


def test_notices_of_the_planners_are_found_where_they_are_made() -> None:
    assert {"PurgeUnconfirmed", "ManagedByAnother", "RealmMissing", "Drifted"} <= set(words_of_notices())


@pytest.mark.parametrize("word", words_of_notices())
def test_every_notice_of_the_planners_may_stand_in_a_condition(word: str) -> None:
    assert reason_named(word).conditions


def test_word_that_nobody_explained_is_an_error() -> None:
    with pytest.raises(KeyError):
        reason_named("Whatever")


def test_every_word_is_camel_case_and_given_once() -> None:
    types = [condition.name for condition in CONDITIONS]

    assert all(WORD.fullmatch(word) for word in [*REASONS, *types])
    assert len(set(types)) == len(types)


def test_conditions_of_reasons_are_those_that_there_are() -> None:
    types = {condition.name for condition in CONDITIONS}

    assert {name for reason in REASONS.values() for name in reason.conditions} == types


def test_every_reason_stands_somewhere() -> None:
    silent = [reason.name for reason in REASONS.values() if not reason.conditions and reason.event is None]

    assert silent == ["Recorded"]


def test_warning_says_what_to_do() -> None:
    assert [reason.name for reason in REASONS.values() if reason.event == "Warning" and not reason.action] == []


def test_meanings_and_actions_are_sentences() -> None:
    texts = [text for reason in REASONS.values() for text in (reason.meaning, reason.action) if text]
    texts += [condition.meaning for condition in CONDITIONS]

    assert [text for text in texts if not text.endswith((".", "`."))] == []


@pytest.mark.parametrize("table", [conditions_table(), reasons_table(), events_table()])
def test_tables_are_even(table: str) -> None:
    lines = table.splitlines()

    assert len(lines) > 3
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {lines[0].count("|")}


def test_tables_have_a_row_for_each_entry() -> None:
    assert all(f"| `{condition.name}` |" in conditions_table() for condition in CONDITIONS)
    assert all(f"| `{reason.name}` |" in reasons_table() for reason in REASONS.values() if reason.conditions)
    assert all(f"| `{reason.name}` |" in events_table() for reason in REASONS.values() if reason.event)
