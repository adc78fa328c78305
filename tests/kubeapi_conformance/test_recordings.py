"""Every request that Headwater's programs, helm and kubectl were recorded with, sent to our server in its order: it answers the same."""

from __future__ import annotations

import fcntl
import json
import os
from itertools import groupby
from typing import Any

import pytest
from comparison import compare, known_place
from known_differences import LEFT_OUT, LINES, PLACES
from probe_client import start, stop
from recorded_stories import STORIES, Story, tell
from replays import Answer, Replay

from kubetest.recordings import FILES, read_lines

LINES_BY_STEP = {
    f"{name}: {lines[0].number} {step[:80]}": lines
    for name, story in STORIES.items()
    for step, group in groupby(story.lines(), key=lambda line: line.step)
    for lines in [tuple(group)]
}
Found = dict[str, list[str]]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What differs, by line. The first worker of a run that needs it tells the stories, which takes a minute; the others wait and read."""
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "HEADWATER_TEST_PROCESS" in os.environ else folder) / "recorded-differences.json"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            shared.write_text(json.dumps(tell_all()))
    differences: Found = json.loads(shared.read_text())
    return differences


def tell_all() -> Found:
    answers: dict[str, Answer] = {}
    for story in STORIES.values():
        answers |= answered(story)
    return {line.id: list(compare(line, answers[line.id])) for lines in LINES_BY_STEP.values() for line in lines}


def answered(story: Story) -> dict[str, Answer]:
    process, url = start("--no-controllers")  # there was none
    try:
        return tell(story, Replay(url))
    finally:
        stop(process)


@pytest.mark.parametrize("step", LINES_BY_STEP)
def test_recorded_step_is_answered_as_a_real_server_did(step: str, found: Found) -> None:
    lines = [line for line in LINES_BY_STEP[step] if line.id not in LINES]
    wrong = [
        f"{line.id} {line.request['method']} {line.request['path']}: {difference}"
        for line in lines
        for difference in found[line.id]
        if known_place(line, difference) is None
    ]

    assert not wrong, "\n".join(wrong)


def test_place_that_is_known_to_differ_still_does(found: Found) -> None:
    differing = {
        known_place(line, difference)
        for lines in LINES_BY_STEP.values()
        for line in lines
        if line.id not in LINES
        for difference in found[line.id]
    }

    assert [place for place in PLACES if place not in differing] == []


def test_line_that_is_known_to_differ_still_does(found: Found) -> None:
    assert [line for line in LINES if not found[line]] == []


def test_request_left_out_was_refused_for_want_of_rights() -> None:
    lines = {line.id: line for file in FILES for line in read_lines(file)}

    assert [left for left in LEFT_OUT if not is_about_rights(lines[left].response)] == []


def is_about_rights(response: dict[str, Any]) -> bool:
    body = response["body"]
    is_denied = body.get("kind") == "SelfSubjectAccessReview" and not body["status"]["allowed"]
    return response["status"] in (401, 403) or is_denied
