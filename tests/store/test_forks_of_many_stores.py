"""A fork holds every open store up, and lets every one go again, whatever one of their backends does then."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from forked_children import run_forked
from headwater.clock import SystemClock
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, Store, StoredObject, object_type
from headwater.store.backends.memory import MemoryBackend

SEVERAL = 8
"""Stores are held up in no order."""


@object_type("fork-note")
class ForkNote(StoredObject, frozen=True, kw_only=True):
    text: str = ""


class Strange(MemoryBackend):
    """A backend of somebody else, which is wrong about forks."""

    def after_fork(self, *, is_child: bool) -> None:
        super().after_fork(is_child=is_child)
        raise RuntimeError("not now")


def make_store(backend: Any) -> Store:
    return Store(backend, url="memory://", settings=Settings(), clock=SystemClock())


def write(store: Store) -> int:
    return len(store.rows(RealmId("acme"), RealmKey(5)).write_objects([(store.new_id(), ForkNote())]))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_backend_that_fails_at_a_fork_holds_no_other_up() -> None:
    with ExitStack() as opened:
        stores = [opened.enter_context(make_store(MemoryBackend())) for _ in range(SEVERAL)]
        for _ in range(SEVERAL):
            opened.enter_context(make_store(Strange()))
        in_child = run_forked(1, lambda _: sum(map(write, stores)))

        assert (in_child, sum(map(write, stores))) == ([SEVERAL], SEVERAL)
