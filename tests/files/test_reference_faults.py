"""Contradictions between the rows of file references, which no request leads to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.clock import Micros
from headwater.files import FileReferenceStore, TrackedFile
from headwater.files.sql_references import ReferenceFaults, SqlReferenceStore


@pytest.mark.parametrize("reference_database", ["sqlite", "postgresql"], indirect=True)
def test_sound_references_have_no_faults(references: FileReferenceStore, track: Callable[..., TrackedFile]) -> None:
    assert isinstance(references, SqlReferenceStore)
    track("a", "r0", "r1")
    track("b")
    references.mark_unreferenced(Micros(5))

    assert references.find_faults(10) == ReferenceFaults(untracked=[], marked=[])
