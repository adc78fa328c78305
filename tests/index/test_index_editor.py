"""What an editor promises beyond reading and writing."""

from __future__ import annotations

import pytest
from shelves import ROOMY, TINY, Shelf, commit, filled, numbered, reopened

from headwater.errors import RefusedError
from headwater.index import KEY_BYTES, Index, IndexEditor, IndexValue


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def spilled(shelf: Shelf) -> Index:
    """Numbers 0 to 999, in stripes below lists."""
    return reopened(shelf, filled(shelf, 1000, TINY))


@pytest.mark.parametrize("size", [0, KEY_BYTES + 1])
def test_key_of_an_impossible_size_is_refused(size: int) -> None:
    editor = IndexEditor(Index())
    with pytest.raises(RefusedError, match=f"{size} bytes: 1 to 500"):
        editor.put(b"k" * size, IndexValue(None))

    assert (len(editor), editor.changes()) == (0, [])


def test_putting_the_same_value_again_is_no_change(spilled: Index) -> None:
    editor = IndexEditor(spilled)
    editor.put(b"000500", IndexValue(None, b"another"))
    editor.put(b"000500", numbered(1000)[b"000500"])

    assert editor.changes() == []


def test_putting_a_key_and_removing_it_is_no_change(spilled: Index) -> None:
    editor = IndexEditor(spilled)
    editor.put(b"new", IndexValue(None))
    editor.remove(b"new")

    assert (editor.changes(), len(editor)) == ([], 1000)


def test_put_and_remove_tell_whether_the_key_was_there(spilled: Index) -> None:
    editor = IndexEditor(spilled)
    puts = [editor.put(key, IndexValue(None)) for key in (b"000500", b"new", b"new")]
    removals = [editor.remove(key) for key in (b"000500", b"new", b"new", b"never")]

    assert (puts, removals) == ([False, True, False], [True, True, False, False])


def test_base_of_an_editor_never_changes(spilled: Index) -> None:
    IndexEditor(spilled).remove(b"000500")

    assert b"000500" in spilled


def test_range_being_read_is_not_disturbed_by_edits(spilled: Index) -> None:
    editor = IndexEditor(spilled)
    editor.put(b"0005005", IndexValue(None))
    reading = editor.keys(b"000500", b"000502")
    next(reading)
    editor.remove(b"0005005")
    editor.put(b"0005015", IndexValue(None))

    assert list(reading) == [b"0005005", b"000501"]


def test_keys_are_looked_up_once(shelf: Shelf, spilled: Index) -> None:
    editor = IndexEditor(spilled)
    editor.get(b"000500")
    shelf.asked.clear()
    editor.get(b"000500")
    editor.put(b"000500", IndexValue(None))
    editor.remove(b"000500")
    editor.changes()

    assert shelf.asked == []


def test_keys_asked_for_together_are_put_without_another_read(shelf: Shelf, spilled: Index) -> None:
    editor = IndexEditor(spilled)
    editor.get_many(numbered(1000))
    shelf.asked.clear()
    for key in numbered(1000):
        editor.put(key, IndexValue(None))

    assert shelf.asked == []


def test_editor_absorbs_another_without_reading(shelf: Shelf, spilled: Index) -> None:
    lower = IndexEditor(spilled)
    upper = IndexEditor(lower)
    upper.put(b"new", IndexValue(None))
    upper.remove(b"000500")
    shelf.asked.clear()
    lower.absorb(upper)

    assert (shelf.asked, len(lower), lower.changes()) == ([], 1000, [(b"000500", None), (b"new", IndexValue(None))])


def test_editor_on_an_editor_stores_the_edits_of_both(shelf: Shelf, spilled: Index) -> None:
    lower = IndexEditor(spilled)
    lower.remove(b"000500")
    lower.put(b"new", IndexValue(None, b"1"))
    upper = IndexEditor(lower)
    upper.put(b"new", IndexValue(None, b"2"))
    stored = upper.stored(shelf.new_ids, TINY)
    shelf.put(stored.objects)
    index = reopened(shelf, stored)

    assert (len(index), index.get(b"000500"), index.get(b"new")) == (1000, None, IndexValue(None, b"2"))


def test_storing_again_tells_the_same(shelf: Shelf, spilled: Index) -> None:
    editor = IndexEditor(spilled)
    for key in numbered(30):
        editor.put(key, IndexValue(None, b"another"))
    first, second = (editor.stored(Shelf().new_ids, TINY) for _ in range(2))

    assert first == second


def test_editor_without_changes_stores_what_was_there(shelf: Shelf) -> None:
    before = filled(shelf, 100, ROOMY)

    assert commit(shelf, reopened(shelf, before), {}, ROOMY) == (before.container, [])
