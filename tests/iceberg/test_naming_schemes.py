from __future__ import annotations

import pytest

from handmade_warehouse import CASES, Case, make_by_hand
from headwater.iceberg import AcceptedTable, QuarantinedTable, SurveyOutcome, SurveyScope, survey_in_process


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SurveyOutcome]:
    root = tmp_path_factory.mktemp("by-hand")
    make_by_hand(root)
    return {
        ".".join(outcome.key): outcome
        for outcome in survey_in_process(SurveyScope(locations=[str(root)], allowed=[str(root)]).checked())
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_naming_scheme_is_read_right(outcomes: dict[str, SurveyOutcome], case: Case) -> None:
    outcome = outcomes[case.name]

    if isinstance(outcome, QuarantinedTable):
        assert (str(outcome.code), "") == (case.expected, case.rule), outcome.message
    else:
        assert (outcome.metadata_location.rpartition("/")[2], str(outcome.rule)) == (case.expected, case.rule)


def test_schemes_find_nothing_else(outcomes: dict[str, SurveyOutcome]) -> None:
    assert sorted(outcomes) == sorted(case.name for case in CASES)


def test_every_outcome_says_why(outcomes: dict[str, SurveyOutcome]) -> None:
    for outcome in outcomes.values():
        assert outcome.evidence if isinstance(outcome, AcceptedTable) else outcome.directory in outcome.message
