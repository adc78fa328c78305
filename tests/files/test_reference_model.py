"""Any sequence of requests, marks and collections: the store answers as a dictionary does. HEADWATER_SOAK=1 tries more of them."""

from __future__ import annotations

from typing import Any

import pytest
from dictionary_references import ReferenceModel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference_stores import ReferenceDatabase, assignment, commit_of, make_file, place_of, places

from headwater.clock import Micros
from headwater.files import AddFiles, FileReferenceStore, FileRequest, ForgetFiles, SplitReference
from tiers import IS_SOAK

NAMES = st.sampled_from("abcde")
PARTITIONS = st.sampled_from(["r", "r0", "r1", "r00"])
JOBS = st.sampled_from(["j1", "j2", "j3"])
IDS = st.sampled_from(["", "", "q1", "q2"])
FILES = st.lists(NAMES, min_size=1, max_size=3, unique=True)


def addition(names: list[str], partitions: list[str], request: str) -> AddFiles:
    return AddFiles(files=tuple(make_file(name, *partitions) for name in names), request=request)


def split(name: str, source: str, targets: list[str], request: str) -> SplitReference:
    return SplitReference(
        source=place_of(name, source), targets=tuple(place_of(name, each) for each in targets), request=request
    )


REQUESTS = st.one_of(
    st.builds(addition, FILES, st.lists(PARTITIONS, max_size=3, unique=True), IDS),
    st.builds(split, NAMES, PARTITIONS, st.lists(PARTITIONS, min_size=1, max_size=2, unique=True), IDS),
    st.builds(lambda job, part, names, request: assignment(job, part, *names, request=request), JOBS, PARTITIONS, FILES, IDS),
    st.builds(lambda job, part, names, output: commit_of(job, part, *names, output=output), JOBS, PARTITIONS, FILES, NAMES),
    st.builds(lambda names, request: ForgetFiles(filenames=tuple(names), request=request), FILES, IDS),
)
STEPS = st.lists(
    st.one_of(st.lists(REQUESTS, min_size=1, max_size=4), st.integers(1, 100), st.just("clear")), min_size=1, max_size=12
)


def check_story(references: FileReferenceStore, steps: list[Any]) -> None:
    """Do the same with a store and with the model, and compare all that can be asked after every step."""
    model = ReferenceModel()
    for step in steps:
        if isinstance(step, list):
            check_requests(references, model, step)
        elif isinstance(step, int):
            assert references.mark_unreferenced(Micros(step), batch=2) == model.mark(step)
        else:
            references.clear_files()
            model.files, model.jobs, model.marks = set(), {}, {}
        assert places(references) == sorted((*place, job) for place, job in model.jobs.items())
        assert [each.filename for each in references.report(99).files] == sorted(model.files)
        assert list(references.collectable_files(Micros(50))) == model.collectable(50)
        assert references.is_empty() is not bool(model.files)


def check_requests(references: FileReferenceStore, model: ReferenceModel, requests: list[FileRequest]) -> None:
    refusals = [model.apply(request) for request in requests]
    outcomes = references.apply_requests(requests)
    assert [outcome.error for outcome in outcomes] == refusals


@pytest.mark.parametrize("reference_database", ["sqlite"], indirect=True)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_references_answer_as_a_dictionary(reference_database: ReferenceDatabase, steps: list[Any]) -> None:
    check_story(reference_database.make_table(), steps)


@pytest.mark.long
@settings(
    max_examples=1000 if IS_SOAK else 40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=STEPS)
def test_every_database_answers_as_a_dictionary(reference_database: ReferenceDatabase, steps: list[Any]) -> None:
    check_story(reference_database.make_table(), steps)
