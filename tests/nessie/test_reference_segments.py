"""Where references end in paths: names with slashes, keys with an ``@``, and branches called by the words of the API."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_server.nessie.reference_segments import fold_reference_segments

_BEHIND = ["", "/entries", "/history", "/history/commit", "/recent-changes", "/contents", "/contents/a.b@c", "/diff/other"]


@pytest.mark.parametrize(
    ("path", "folded"),
    [
        ("main", ["main"]),
        ("test/branch/name1@", ["test/branch/name1@"]),
        ("test/branch/name1@0123456789abcdef~1/entries", ["test/branch/name1@0123456789abcdef~1", "entries"]),
        ("main/contents/a@b", ["main", "contents", "a@b"]),
        ("dev/x@/contents/a@b", ["dev/x@", "contents", "a@b"]),
        ("main@/contents/a", ["main@", "contents", "a"]),
        ("feature/x@/diff/other/y@", ["feature/x@", "diff", "other/y@"]),
        ("main/diff/other/y@", ["main", "diff", "other/y@"]),
        ("feature/x@/diff/main", ["feature/x@", "diff", "main"]),
        ("x/diff/y@/diff/z", ["x/diff/y@", "diff", "z"]),
        ("x/diff/y@/entries", ["x/diff/y@", "entries"]),
        ("x/history/commit@/history/commit", ["x/history/commit@", "history", "commit"]),
        ("x/entries@", ["x/entries@"]),
        ("x/entries/y@/history", ["x/entries/y@", "history"]),
        ("x/contents/y@/entries", ["x/contents/y@", "entries"]),
        ("x/contents/y@", ["x", "contents", "y@"]),
        ("main/unknown", ["main", "unknown"]),
        ("a/b/unknown@/c", ["a/b/unknown@", "c"]),
        ("main/contents/a/b", ["main", "contents", "a", "b"]),
    ],
)
def test_reference_ends_where_the_rule_says(path, folded):
    assert list(fold_reference_segments(path.split("/"))) == folded


@given(st.lists(st.sampled_from(["a", "entries", "b"]), min_size=1, max_size=4), st.sampled_from(_BEHIND))
def test_name_with_an_at_sign_is_found_before_everything(segments, behind):
    name = "/".join(segments) + "@0123456789abcdef"

    assert "/".join(fold_reference_segments((name + behind).split("/"))) == name + behind
    assert fold_reference_segments((name + behind).split("/"))[0] == name


@given(st.text(st.sampled_from("ab/"), min_size=1), st.sampled_from(_BEHIND))
def test_name_in_one_segment_stays_as_it_is(name, behind):
    assert fold_reference_segments([name, *behind.split("/")[1:]])[0] == name
