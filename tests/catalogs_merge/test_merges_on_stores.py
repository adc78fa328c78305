"""Merges and transplants on each of the databases, also while others commit to the target."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from sketched_branches import Branching

from backend_fixtures import store_url

__all__ = ["store_url"]


def merge_dev(lake: Branching) -> object:
    return lake.merge()


def transplant_dev(lake: Branching) -> object:
    commits = [entry.id for entry in lake.catalog.log("dev", limit=2)]
    return lake.catalog.transplant("dev", commits[::-1], "main")


@pytest.mark.parametrize("act", [merge_dev, transplant_dev])
def test_merge_brings_dev_to_main(lake: Branching, act: Callable[[Branching], object]) -> None:
    lake.put("dev", "s.a=2", "n/")
    lake.put("dev", "n.x")
    lake.put("main", "y")
    act(lake)

    assert lake.words("main") == {"s/", "s.a=2", "s.b", "n/", "n.x", "y"}
    lake.check("main")


@pytest.mark.parametrize("act", [merge_dev, transplant_dev])
def test_others_commit_to_the_target_meanwhile(lake: Branching, act: Callable[[Branching], object]) -> None:
    def commit(number: int) -> None:
        for version in range(5):
            lake.put("main", f"t{number}={version + 2}")

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for version in range(3):
        lake.put("dev", f"x=a{version}")
        lake.put("dev", f"x=b{version}")
        act(lake)
    for thread in threads:
        thread.join()

    assert lake.words("main") == {"s/", "s.a", "s.b", "x=b2", "t0=6", "t1=6", "t2=6"}
    lake.check("main")
