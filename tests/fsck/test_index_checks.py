"""An index is looked at as searches and listings see it: keys in order and each once, every key where searches look, true counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from harm import make_lake, make_realm, open_on, put

from fake_clock import FakeClock
from headwater import Settings
from headwater.commits import Head
from headwater.index import IndexChecker, IndexContainer
from headwater.index.index_nodes import EntryPage, PageRows
from headwater.store import id_text
from headwater.store.backends.memory import MemoryBackend


@pytest.fixture
def head(settings: Settings, clock: FakeClock) -> Iterator[Head]:
    """A commit whose index of content has several stripes under one list."""
    small = dataclasses.replace(settings, index_embedded_bytes=1024, index_stripe_bytes=1024)
    with open_on(MemoryBackend(), small, clock) as store:
        make_realm(store)
        lake = make_lake(store)
        put(lake, 1, *(f"t{number:03}" for number in range(200)))
        found = lake.resolve("main")
        assert found is not None
        yield found


@pytest.fixture
def sound(head: Head) -> IndexContainer:
    container = head.commit.indexes["content"]
    assert container.levels == 1 and len(container.children) > 3
    return container


def changed(container: IndexContainer, **fields: object) -> IndexContainer:
    told = {name: getattr(container, name) for name in ("length", "embedded", "spilled", "levels")}
    return IndexContainer(**(told | fields))  # type: ignore[arg-type]


def faults(head: Head, container: IndexContainer) -> str:
    return "; ".join(IndexChecker(head.rows).faults(container))


def test_sound_index_has_no_faults(head: Head, sound: IndexContainer) -> None:
    assert faults(head, sound) == ""


def test_stripes_that_changed_places_are_beyond_their_bounds(head: Head, sound: IndexContainer) -> None:
    first, second = sound.children[1], sound.children[2]
    swapped = sound.children.updated(
        {1: first._replace(object_id=second.object_id), 2: second._replace(object_id=first.object_id)}
    )

    told = faults(head, changed(sound, spilled=swapped.page.raw))
    assert f"its stripe {id_text(second.object_id)} holds keys from" in told
    assert f"its stripe {id_text(first.object_id)} holds keys from" in told


def test_bounds_that_do_not_ascend_are_found(head: Head, sound: IndexContainer) -> None:
    children = sound.children.all()
    children[1], children[2] = children[2], children[1]

    assert "the bounds of its children do not ascend" in faults(
        head, changed(sound, spilled=sound.children.replaced(children).page.raw)
    )


def test_embedded_keys_out_of_order_are_found(head: Head, sound: IndexContainer) -> None:
    page = EntryPage.made(PageRows([b"b", b"a"], [bytes(8)] * 2, [b"x"] * 2), packed=False)

    assert "the keys of its embedded part do not ascend" in faults(head, changed(sound, embedded=page.raw))


def test_size_that_is_not_the_stripes_is_found(head: Head, sound: IndexContainer) -> None:
    child = sound.children[1]
    wrong = sound.children.updated({1: child._replace(size=child.size + 1)})

    assert f"{child.size + 1} are noted" in faults(head, changed(sound, spilled=wrong.page.raw))


def test_missing_stripe_is_a_fault_and_no_failure(head: Head, sound: IndexContainer) -> None:
    child = sound.children[1]
    lost = sound.children.updated({1: child._replace(object_id=head.rows.new_id())})

    assert "is not there" in faults(head, changed(sound, spilled=lost.page.raw))
