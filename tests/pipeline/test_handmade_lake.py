"""What is said of every naming scheme, and of every way for tables to be wrong, in process."""

from __future__ import annotations

from handmade_lake import Lake

from headwater.iceberg import AcceptedTable, SurveyOutcome, SurveyScope, survey_in_process


def word_of(outcome: SurveyOutcome) -> str:
    return str(outcome.rule if isinstance(outcome, AcceptedTable) else outcome.code)


def test_table_of_a_handmade_warehouse_is_judged_as_expected(lake: Lake) -> None:
    outcomes = survey_in_process(SurveyScope(locations=lake.locations, allowed=lake.locations).checked())

    assert {".".join(outcome.key): word_of(outcome) for outcome in outcomes} == lake.expected
