"""The tasks that are left are ended in the tests' own process: what they log would hide what is wrong."""

from __future__ import annotations

import logging

import pytest
import structlog


@pytest.fixture(autouse=True)
def _silence(logging_as_before: None) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
