"""What a realm's handles do, over each backend and with faults injected, is what plain models of references and objects say.

A short run for each; HEADWATER_SOAK=1 makes it a hundred times as long. A failure prints its steps and a line for ``@reproduce_failure``.
"""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test
from object_model import ObjectModel
from reference_model import ReferenceModel
from rows_of_all_kinds import IS_SOAK, run_of

from backend_fixtures import BACKENDS
from tiers import long_but_for

EXAMPLES = {"memory": 15, "sqlite": 10, "postgresql": 6, "mongodb": 3, "faulty": 10, "unordered": 10}
pytestmark = pytest.mark.timeout(0 if IS_SOAK else 120)


@pytest.mark.parametrize("model", [ReferenceModel, ObjectModel])
@pytest.mark.parametrize("name", long_but_for({"memory", "sqlite", "unordered"}, BACKENDS))
def test_realms_rows_are_what_the_model_says(name: str, model: type, request: pytest.FixtureRequest) -> None:
    backend = BACKENDS[name](request)
    try:
        run_state_machine_as_test(lambda: model(backend), settings=run_of(EXAMPLES.get(name, 8)))
    finally:
        backend.close()
