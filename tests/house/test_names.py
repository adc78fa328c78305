"""Whether a reader finds things: every ruler's figure at its limit, of which limits only become better."""

from __future__ import annotations

import pytest
from rulers import (
    HARD_PLACES,
    RULERS,
    TEST_RULERS,
    House,
    Ruler,
    hard_places,
    lower_limits,
    read_house,
    read_limits,
    read_tests,
)

LIMITS, TEST_LIMITS = read_limits(), read_limits("tests")


@pytest.fixture(scope="module")
def house() -> House:
    return read_house()


def test_figures_are_at_their_limits(house: House) -> None:
    """All at once: each worker that has one of them would read and parse the whole house."""
    verdicts = [ruler.verdict(ruler.measure(house), LIMITS[ruler.name]) for ruler in RULERS]

    assert [verdict for verdict in verdicts if verdict] == []


@pytest.mark.long
def test_figures_of_the_tests_are_at_their_limits() -> None:
    tests = read_tests()
    verdicts = [ruler.verdict(ruler.measure(tests), TEST_LIMITS[ruler.name]) for ruler in TEST_RULERS]

    assert [verdict for verdict in verdicts if verdict] == []


def test_limits_are_those_of_the_rulers() -> None:
    assert list(LIMITS) == [ruler.name for ruler in RULERS]
    assert list(TEST_LIMITS) == [ruler.name for ruler in TEST_RULERS]


def test_hard_places_are_there(house: House) -> None:
    assert {place for place in HARD_PLACES for module in hard_places(house) if module.path.startswith(place)} == set(
        HARD_PLACES
    )


@pytest.mark.parametrize(
    ("figure", "is_floor", "word"), [(12, False, "limit is 10"), (9, False, ""), (7, False, "lower"), (12, True, "raise")]
)
def test_verdict_says_what_to_do(figure: float, is_floor: bool, word: str) -> None:
    verdict = Ruler("things", len, slack=0.1, is_floor=is_floor).verdict(figure, 10)

    assert word in verdict and bool(verdict) == bool(word)


def test_limits_are_lowered_and_never_raised() -> None:
    limits = {ruler.name: 10 for ruler in RULERS}
    text = "[names]\n" + "".join(f'"{name}" = {limit}\n' for name, limit in limits.items())
    better, worse, *_ = limits

    lowered = lower_limits(text, limits | {better: 8, worse: 11})

    assert lowered == text.replace(f'"{better}" = 10\n', f'"{better}" = 8\n')


def test_limit_of_the_other_section_stays() -> None:
    text = "[names]\n" + "".join(f'"{ruler.name}" = 10\n' for ruler in RULERS) + "[tests]\n"
    text += "".join(f'"{ruler.name}" = 10\n' for ruler in TEST_RULERS)
    shared = TEST_RULERS[0].name

    lowered = lower_limits(text, {ruler.name: 1 for ruler in TEST_RULERS}, TEST_RULERS, "tests")

    assert lowered.count(f'"{shared}" = 10\n') == lowered.count(f'"{shared}" = 1\n') == 1
