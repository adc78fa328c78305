from __future__ import annotations

import pytest

from headwater.iceberg import (
    AcceptedTable,
    ChoiceRule,
    QuarantineCode,
    QuarantinedTable,
    SurveyOutcome,
    pack_outcome,
    unpack_outcome,
)
from headwater.iceberg.survey_outcomes import OutcomeSpill

LOCATION = "s3://lake/sales/orders/metadata/v1.metadata.json"
FOUND = AcceptedTable(
    directory="s3://lake/sales/orders",
    key=("sales", "orders"),
    metadata_location=LOCATION,
    uuid=None,
    format_version=2,
    snapshot_id=22,
    schema_id=0,
    spec_id=0,
    sort_order_id=0,
    rule=ChoiceRule.ONLY_FILE,
    evidence=("1 metadata file",),
    document=b'{"location":"s3://lake/sales/orders"}' * 1000,
    log=(LOCATION,),
)
QUARANTINED = QuarantinedTable(directory="s3://lake/web", key=("web",), code=QuarantineCode.CORRUPT, message="it is empty")


@pytest.mark.parametrize("outcome", [FOUND, QUARANTINED])
@pytest.mark.parametrize("squeezed", [True, False])
def test_outcome_comes_out_as_it_was_packed(outcome: SurveyOutcome, squeezed: bool) -> None:
    assert unpack_outcome(pack_outcome(outcome, squeezed=squeezed)) == outcome


def test_squeezed_outcome_is_small() -> None:
    assert len(pack_outcome(FOUND)) < len(pack_outcome(FOUND, squeezed=False)) / 5


def test_spill_holds_what_was_packed_either_way() -> None:
    spill = OutcomeSpill()
    spill.append_outcome(FOUND)
    spill.append_packed(pack_outcome(FOUND))
    spill.append_packed(pack_outcome(QUARANTINED, squeezed=False))

    assert (list(spill), len(spill)) == ([FOUND, FOUND, QUARANTINED], 3)
