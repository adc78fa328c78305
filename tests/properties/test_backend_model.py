"""Every backend does what two plain dictionaries do, whatever is asked of it in whatever order.

A short run for each; HEADWATER_SOAK=1 makes it fifty times as long (some minutes on a quick backend, an hour on a slow server).
A failure prints the steps that lead to it, and a line for ``@reproduce_failure``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from backend_model import BackendModel
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from rows_of_all_kinds import run_of
from wrong_backends import WRONG

from backend_fixtures import BACKENDS
from headwater.errors import BeatenError
from headwater.store import Backend

pytestmark = pytest.mark.slow

EXAMPLES = {"memory": 60, "sqlite": 40, "postgresql": 30, "mongodb": 6, "faulty": 40, "unordered": 60}


@pytest.mark.timeout(0 if run_of(1).max_examples > 1 else 120)
@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_is_two_dictionaries(name: str, request: pytest.FixtureRequest) -> None:
    backend = BACKENDS[name](request)
    try:
        run_state_machine_as_test(lambda: BackendModel(backend), settings=run_of(EXAMPLES.get(name, 30)))
    finally:
        backend.close()


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_the_model_finds_what_a_backend_does_wrong(make: Callable[[], Backend]) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception, BeatenError)):
        run_state_machine_as_test(
            lambda: BackendModel(make()), settings=settings(run_of(2000), phases=[Phase.generate], derandomize=True)
        )
