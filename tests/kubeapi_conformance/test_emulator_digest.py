"""Says in each run whether the conformance suite is part of it."""

from __future__ import annotations

import os

import pytest
from emulator_digest import COMMITTED, compute_digest, read_committed_digest


@pytest.mark.long
def test_suite_ran_against_this_emulator() -> None:
    if os.environ.get("HEADWATER_KUBEAPI_CONFORMANCE") != "1" and compute_digest() == read_committed_digest():
        pytest.skip(
            f"the conformance suite of tests/kubeapi passed with just these files, says {COMMITTED.name}; `make test-kube` runs it"
        )
