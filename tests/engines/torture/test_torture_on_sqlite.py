"""A store on SQLite under torture. HEADWATER_SEED repeats what the seed decides; HEADWATER_TORTURE_SECONDS lets it last for hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from torture_storm import SECONDS, torture
from torture_verdict import faults_of, report

from tiers import long_but_for

QUICK_SECONDS = 6.0


@pytest.mark.timeout(SECONDS * 3 + 300)
@pytest.mark.parametrize("seconds", long_but_for({QUICK_SECONDS}, [QUICK_SECONDS, SECONDS]))
def test_tortured_store_on_sqlite_keeps_all_its_promises(tmp_path: Path, seconds: float) -> None:
    stage = torture(f"sqlite:///{tmp_path}/store.db", tmp_path, seconds=seconds)
    happened = report(stage)
    print(happened)  # noqa: T201 - shown with a failure
    faults = faults_of(stage)

    assert not faults, "\n".join(faults[:20])
    wanted = ("done", "looked", "collections", "deleted") if seconds > QUICK_SECONDS else ("done", "looked")
    assert min(happened.get(what, 0) for what in wanted) > 0, happened
