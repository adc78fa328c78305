"""Five rules that the code keeps. All other figures are a report per change: ``make report``."""

from __future__ import annotations

import pytest
from rulers import (
    HARD_PLACES,
    Codebase,
    banners,
    doubled_classes,
    error_roots,
    hard_places,
    import_circles,
    long_functions,
    read_product,
)

SIGNALS = {
    "AvroFileError",
    "ClientGoneError",
    "GroupFullError",
    "HandlerTimeoutError",
    "LeftEarly",
    "NoAnswerError",
    "NotAFileError",
    "OAuthRefusal",
    "RestartError",
    "TurnTimeoutError",
    "UnansweredError",
    "_ExpiredError",
    "_LostError",
    "_RefusedRequestError",
    "TerminatedError",
    "UnreplicatedError",
}
"""Exceptions within one package, which the package itself catches: callers never see them."""


@pytest.fixture(scope="module")
def modules() -> Codebase:
    return read_product()


def test_no_modules_import_each_other(modules: Codebase) -> None:
    assert import_circles(modules) == []


def test_each_public_class_name_means_one_thing(modules: Codebase) -> None:
    assert doubled_classes(modules) == []


def test_no_function_is_longer_than_sixty_lines(modules: Codebase) -> None:
    assert long_functions(modules) == []


def test_no_comment_is_a_banner(modules: Codebase) -> None:
    assert banners(modules) == []


@pytest.mark.long
def test_errors_that_callers_see_are_one_tree(modules: Codebase) -> None:
    assert set(error_roots(modules)) - SIGNALS == {"HeadwaterError"}


def test_hard_places_are_there(modules: Codebase) -> None:
    places = {place for place in HARD_PLACES for module in hard_places(modules) if module.path.startswith(place)}

    assert places == set(HARD_PLACES)
