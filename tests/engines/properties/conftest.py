"""A seed for each test with chance in it, and shown when it fails."""

from __future__ import annotations

import os
import random

import pytest


@pytest.fixture
def seed() -> int:
    chosen = int(os.environ.get("HEADWATER_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"HEADWATER_SEED={chosen}")  # noqa: T201  shown with a failure
    return chosen
