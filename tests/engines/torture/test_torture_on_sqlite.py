"""A store on SQLite under torture. HEADWATER_SEED repeats what the seed decides; HEADWATER_TORTURE_SECONDS lets it last for hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from torture_storm import SECONDS, torture
from torture_verdict import faults_of, report


@pytest.mark.rare(2)
@pytest.mark.timeout(SECONDS * 3 + 300)
def test_tortured_store_on_sqlite_keeps_all_its_promises(tmp_path: Path) -> None:
    stage = torture(f"sqlite:///{tmp_path}/store.db", tmp_path)
    happened = report(stage)
    print(happened)  # noqa: T201 - shown with a failure
    faults = faults_of(stage)

    assert not faults, "\n".join(faults[:20])
    assert min(happened.get(what, 0) for what in ("done", "looked", "collections", "deleted")) > 0, happened
