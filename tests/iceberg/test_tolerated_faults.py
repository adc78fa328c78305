"""Tables that the letter of the specification forbids and every engine reads, taken where an import says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import RefusedError
from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable, SurveyOutcome, SurveyScope, survey_in_process

MakeTable = Callable[..., Path]


def survey(root: Path, *tolerate: str, **options: Any) -> SurveyOutcome:
    scope = SurveyScope(locations=[str(root)], allowed=[str(root)], tolerate=tolerate, **options).checked()
    (outcome,) = survey_in_process(scope)
    return outcome


@pytest.fixture
def inconsistent(tmp_path: Path, make_table: MakeTable) -> Path:
    """A table whose last-column-id is behind its columns."""
    column = {"id": 7, "name": "id", "required": True, "type": "long"}
    schemas = [{"type": "struct", "schema-id": 4, "fields": [column]}]
    make_table("t", {"v1.metadata.json": {"schemas": schemas, "current-schema-id": 4, "last-column-id": 1}})
    return tmp_path


@pytest.fixture
def invalid(tmp_path: Path, make_table: MakeTable) -> Path:
    """A table of the second format without sort orders."""
    make_table("t", {"v1.metadata.json": {"sort-orders": None}})
    return tmp_path


def test_fault_that_is_tolerated_becomes_evidence(inconsistent: Path) -> None:
    found = survey(inconsistent, "Inconsistent")

    assert isinstance(found, AcceptedTable), found
    assert found.schema_id == 4
    assert any("tolerated" in sentence and "last-column-id" in sentence for sentence in found.evidence)


def test_faults_are_tolerated_only_if_named(inconsistent: Path) -> None:
    outcome = survey(inconsistent, "Invalid", "BadManifest")

    assert isinstance(outcome, QuarantinedTable)
    assert outcome.code is QuarantineCode.INCONSISTENT


def test_shape_that_is_tolerated_is_not_verified_further(invalid: Path) -> None:
    found = survey(invalid, "Invalid", verify="files")

    assert isinstance(found, AcceptedTable), found
    assert "not verified below its metadata: its shape is only tolerated" in found.evidence


def test_uuid_that_is_none_is_never_tolerated(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("t", {"v1.metadata.json": {"table-uuid": "none"}})

    assert isinstance(survey(tmp_path, "Invalid"), QuarantinedTable)


def test_files_elsewhere_are_never_tolerated(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("t", {"v1.metadata.json": {"sort-orders": None, "properties": {"write.data.path": "s3://elsewhere/"}}})

    outcome = survey(tmp_path, "Invalid")

    assert isinstance(outcome, QuarantinedTable)
    assert outcome.code is QuarantineCode.OUTSIDE_ALLOWED


@pytest.mark.parametrize("code", ["Corrupt", "inconsistent", "OutsideAllowed", ""])
def test_other_codes_cannot_be_tolerated(tmp_path: Path, code: str) -> None:
    with pytest.raises(RefusedError, match="Inconsistent, Invalid"):
        SurveyScope(locations=[str(tmp_path)], allowed=[], tolerate=[code]).checked()
