"""Every backend does what two plain dictionaries do, whatever is asked of it in whatever order.

A short run for each; HEADWATER_SOAK=1 makes it a hundred times as long (some minutes on a quick backend, an hour on a slow server).
A failure prints the steps that lead to it, and a line for ``@reproduce_failure``.
"""

from __future__ import annotations

import pytest
from backend_model import BackendModel
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from mutant_stories import STORIES, tell
from rows_of_all_kinds import run_of
from wrong_backends import WRONG

from backend_fixtures import BACKENDS
from headwater.errors import SwapConflictError
from headwater.store.backends.memory import MemoryBackend
from tiers import long_but_for

EXAMPLES = {"memory": 30, "sqlite": 20, "postgresql": 15, "mongodb": 6, "faulty": 20, "unordered": 30}
SEEDS = {
    "ComparesVersionsAlone": 1,
    "ComparesWholeRows": 3,
    "KeepsCreationTimes": 2,
    "FoldsCase": 5,
    "OrdersLikeUtf16": 7,
    "TakesNoTokenForAny": 1,
}
"""Where the search for what is wrong begins, if not at 0: from here it takes about a second, and from elsewhere up to thirty.

Whoever changes the model looks for new ones.
"""


@pytest.mark.timeout(0 if run_of(1).max_examples > 1 else 120)
@pytest.mark.parametrize("name", long_but_for(BACKENDS.keys() - {"mongodb", "faulty"}, BACKENDS))
def test_backend_is_two_dictionaries(name: str, request: pytest.FixtureRequest) -> None:
    backend = BACKENDS[name](request)
    try:
        run_state_machine_as_test(lambda: BackendModel(backend), settings=run_of(EXAMPLES.get(name, 15)))
    finally:
        backend.close()


NOTICED = (AssertionError, pytest.fail.Exception, SwapConflictError)


@pytest.mark.parametrize("name", WRONG)
def test_model_notices_a_wrong_backend_in_its_story(name: str) -> None:
    tell(STORIES[name], MemoryBackend())

    with pytest.raises(NOTICED):
        tell(STORIES[name], WRONG[name]())


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.parametrize("name", WRONG)
def test_model_finds_a_wrong_backend_by_searching(name: str) -> None:
    @seed(SEEDS.get(name, 0))
    def model() -> BackendModel:
        return BackendModel(WRONG[name]())

    with pytest.raises(NOTICED):
        run_state_machine_as_test(model, settings=settings(run_of(2000), phases=[Phase.generate]))


def test_every_story_has_its_wrong_backend() -> None:
    assert STORIES.keys() == WRONG.keys()
