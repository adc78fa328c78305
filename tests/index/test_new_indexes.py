"""An index whose entries are all there at once is stored as if they had been put one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelves import MANY, ROOMY, TINY, Shelf, commit, numbered, reopened

from headwater.errors import RefusedError
from headwater.index import KEY_BYTES, Index, IndexContainer, IndexLimits, IndexValue, NewIndex, StoredIndex
from headwater.store import ObjectId

values = st.builds(
    IndexValue, st.none() | st.integers(1, 1 << 62).map(ObjectId), st.binary(max_size=12) | st.just(b"long" * 100)
)
long_keys = st.binary(min_size=1, max_size=4).map(lambda end: b"k" * (KEY_BYTES - len(end)) + end)
entries = st.dictionaries(st.binary(min_size=1, max_size=4) | long_keys, values, max_size=60)


def new(content: dict[bytes, IndexValue]) -> NewIndex:
    objects = {key: value.object_id for key, value in content.items() if value.object_id is not None}
    return NewIndex({key: value.data for key, value in content.items()}, objects)


def fields(container: IndexContainer) -> tuple[int, bytes, bytes, int]:
    return container.length, container.embedded, container.spilled, container.levels


def assert_stored_alike(one: StoredIndex, other: StoredIndex) -> None:
    assert fields(one.container) == fields(other.container)
    assert one.objects == other.objects


@pytest.mark.long
@given(entries, st.sampled_from([TINY, ROOMY, MANY]))
def test_new_index_is_stored_as_an_editor_stores_it(content: dict[bytes, IndexValue], limits: IndexLimits) -> None:
    made = new(content).stored(Shelf().new_ids, limits)

    assert_stored_alike(made, commit(Shelf(), Index(), content, limits))


@pytest.mark.parametrize("limits", [TINY, MANY])
def test_new_index_with_lists_is_stored_as_an_editor_does(limits: IndexLimits) -> None:
    made = new(numbered(3000)).stored(Shelf().new_ids, limits)

    assert made.container.levels == 2
    assert_stored_alike(made, commit(Shelf(), Index(), numbered(3000), limits))


def test_new_index_holds_what_it_was_made_of() -> None:
    shelf = Shelf()
    made = new(numbered(300)).stored(shelf.new_ids, TINY)
    shelf.put(made.objects)

    assert dict(reopened(shelf, made).range()) == numbered(300)


@pytest.mark.parametrize("size", [0, KEY_BYTES + 1])
def test_new_index_refuses_a_key_of_an_impossible_size(size: int) -> None:
    with pytest.raises(RefusedError, match=f"{size} bytes: 1 to 500"):
        NewIndex({b"a": b"", b"k" * size: b""}, {})
