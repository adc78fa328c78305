"""Databases on which it can storm: all four, and one in memory that fails on demand, in both ways of writing a commit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from grounds import Ground

from backend_fixtures import store_url
from headwater.settings import Settings

__all__ = ["store_url"]


@pytest.fixture(params=[True, False], ids=["atomic", "two calls"])
def make_ground(request: pytest.FixtureRequest) -> Iterator[Callable[[Settings], Ground]]:
    """Makes a database in memory; once with commits in one call of the backend, once with two."""
    made: list[Ground] = []

    def make(settings: Settings) -> Ground:
        made.append(Ground(is_atomic=request.param, settings=settings))
        return made[-1]

    yield make
    for ground in made:
        ground.close()


@pytest.fixture
def ground(make_ground: Callable[[Settings], Ground]) -> Ground:
    """The same, where no member of a group is ever left out for being slow."""
    return make_ground(Settings(commit_timeout_seconds=20, commit_member_seconds=60))


@pytest.fixture
def chance() -> random.Random:
    """The same in every run."""
    return random.Random(20250301)
