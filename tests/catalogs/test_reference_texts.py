"""The grammar of references: what a text says, and what is refused at which character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs.history.revspec import parse_revspec
from headwater.errors import RefusedError

HASH = "0123456789abcdef"
NUMBER = int(HASH, 16)
MILLENNIUM = 946_684_800_000_000


@pytest.mark.parametrize(
    ("text", "name", "commit", "steps"),
    [
        ("main", "main", None, []),
        ("-", "-", None, []),
        ("", "-", None, []),
        ("a_b-", "a_b-", None, []),
        ("abc/def.x", "abc/def.x", None, []),
        ("coffee20", "coffee20", None, []),
        ("0123456789ABCDEF", "0123456789ABCDEF", None, []),
        ("test/branch@", "test/branch", None, []),
        (HASH, None, NUMBER, []),
        (f"@{HASH}", None, NUMBER, []),
        (f"-@{HASH}", "-", NUMBER, []),
        (f"main@{HASH}", "main", NUMBER, []),
        ("a~10", "a", None, [("~", 10)]),
        ("~1", "-", None, [("~", 1)]),
        ("@~1", "-", None, [("~", 1)]),
        ("test@~1", "test", None, [("~", 1)]),
        (f"{HASH}^2", None, NUMBER, [("^", 2)]),
        (f"a@{HASH}~10", "a", NUMBER, [("~", 10)]),
        (f"main@{HASH}~1^2*2000-01-01T00:00:00Z", "main", NUMBER, [("~", 1), ("^", 2), ("*", MILLENNIUM + 999_999)]),
        ("main*946684800000", "main", None, [("*", MILLENNIUM)]),
        ("main*-1", "main", None, [("*", -1000)]),
        ("main*2000-01-01T00:00:00.5Z", "main", None, [("*", MILLENNIUM + 500_000)]),
        ("main*2000-01-01T00:00:00.123456789Z", "main", None, [("*", MILLENNIUM + 123_456)]),
        ("main*1969-12-31T23:59:59Z~3", "main", None, [("*", -1), ("~", 3)]),
    ],
)
def test_text_is_taken_apart(text: str, name: str | None, commit: int | None, steps: list[tuple[str, int]]) -> None:
    told = parse_revspec(text)

    assert (told.name, told.commit) == (name, commit)
    assert [(step.way, step.number) for step in told.steps] == steps


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("@", 2, "neither name nor hash"),
        ("main~", 5, "no number"),
        ("main~0", 5, "no number"),
        ("main^0", 5, "no number"),
        ("main~-1", 5, "no number"),
        ("main~1x", 5, "no number"),
        ("main~٣", 5, "no number"),
        ("main~" + "9" * 5000, 5, "no number"),
        ("main*", 5, "no time"),
        ("main*yesterday", 5, "no time"),
        ("main*2000-02-30T00:00:00Z", 5, "no time"),
        ("main*2000-01-01T00:00:00", 5, "no time"),
        ("main*2000-01-01T00:00:00+01:00", 5, "no time"),
        ("main*2000-01-01T00:00:00.1234567890Z", 5, "no time"),
        ("main*" + "9" * 16, 5, "no time"),
        ("main@12345678", 6, "no hash"),
        ("main@0123456789ABCDEF", 6, "no hash"),
        ("main@f123456789abcdef", 6, "no hash"),
        (f"main@{HASH}@{HASH}", 22, "only once"),
        (f"{HASH}@{HASH}", 17, "no name"),
        ("main~1@", 7, "only once"),
        ("a b", 2, "in no name"),
        ("abc/de{blah", 7, "in no name"),
        ("na\u00efve", 3, "in no name"),
    ],
)
def test_text_that_is_no_reference_is_refused_with_the_place(text: str, place: int, why: str) -> None:
    with pytest.raises(RefusedError, match=why) as refused:
        parse_revspec(text)

    assert f"at character {place}:" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "is_ambiguous"), [("main", False), ("main~1", True), (f"main@{HASH}~1", False), (HASH, False)]
)
def test_steps_from_a_branch_alone_are_ambiguous(text: str, is_ambiguous: bool) -> None:
    assert parse_revspec(text).is_ambiguous is is_ambiguous


@given(st.text(st.sampled_from("ab1@~^*-./:TZ0 "), max_size=30) | st.text(max_size=20))
def test_text_is_taken_apart_or_refused(text: str) -> None:
    try:
        told = parse_revspec(text)
    except RefusedError as refused:
        assert repr(text) in str(refused)
    else:
        assert told.text == text
        assert "".join(step.text for step in told.steps) == text[len(text) - sum(len(step.text) for step in told.steps) :]
