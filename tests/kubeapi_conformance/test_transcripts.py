"""Every recorded request, sent to our server in the order in which a real one got them: it answers the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

import pytest
import yaml
from transcripts import DATA, Played, Player, Step, differences, read_steps, served_here

pytestmark = pytest.mark.long

FILES = ("raw-objects", "raw-watches", "raw-discovery", "kubectl")
STEPS = [step for file in FILES for step in read_steps(file)]
WIDGETS = "/apis/example.dev/v1alpha1/namespaces/default/widgets"

OTHERWISE = {
    "raw-objects:01 list empty": "a real server is not ready for a resource in its first second; ours is, at once",
}
"""Steps that are not answered alike, and why."""


@pytest.fixture(scope="module")
def answers(server: str) -> dict[str, Played]:
    """What our server answered, by step."""
    player = Player(server)
    define(player)
    found: dict[str, Played] = {}
    watches = []
    for step in STEPS:
        if step.file == "raw-watches":
            found[step.id] = watched(player, step)
        elif step.is_watch:
            watches.append((step, player.watch(step, most=len(step.response["events"]))))
        else:
            found[step.id] = player.play(step)
    return found | {step.id: watch.end() for step, watch in watches}


def define(player: Player) -> None:
    """Make the resource as it was made there: by kubectl, which leaves its mark."""
    recorded = next(step for step in STEPS if step.name == "get crd widgets.example.dev")
    crd = yaml.safe_load((DATA / "crd.yaml").read_text(encoding="utf-8"))
    crd["metadata"]["annotations"] = recorded.response["body"]["rows"][0]["object"]["metadata"]["annotations"]
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=kubectl-client-side-apply"
    assert player.ask("POST", path, crd, media="application/json").status == 201


def watched(player: Player, step: Step) -> Played:
    """The events of a watch while that was done which was done when it was recorded."""
    watch = player.watch(step)
    merge = "application/merge-patch+json"
    for method, path, media, body in {
        "watch from now: add, modify, status, delete": [
            ("POST", "", "application/json", widget("w")),
            ("PATCH", "/w", merge, {"spec": {"size": 2}}),
            ("PATCH", "/w/status", merge, {"status": {"state": "X"}}),
            ("DELETE", "/w", None, None),
        ],
        "watch by label": [
            ("POST", "", "application/json", widget("q", team="q")),
            ("PATCH", "/q", merge, {"metadata": {"labels": {"team": "z"}}}),
            ("DELETE", "/q", None, None),
        ],
    }.get(step.name, []):
        assert player.ask(method, WIDGETS + path, body, media=media, agent="Python-urllib").status < 300
    played = watch.end()
    player.learn_from(step, played)
    return played


def widget(name: str, **labels: str) -> dict[str, object]:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", "metadata": metadata, "spec": {"id": "abc"}}


def compare(step: Step, played: Played) -> Iterator[str]:
    there = step.response
    if played.status != there["status"]:
        yield f"status {there['status']} there, {played.status} here"
    if "events" in there:
        yield from compare_events(there["events"], played.events)
        return
    if there["content-type"] == "application/vnd.kubernetes.protobuf":
        return  # answered as JSON here, which whoever asks for protobuf takes too
    if played.media != there["content-type"]:
        yield f"content type {there['content-type']} there, {played.media} here"
    body = there["body"]
    if isinstance(body, str) and body.startswith("<"):
        return  # left out of the recording
    yield from differences(served_here(body, played.body), played.body)


def compare_events(there: list[dict[str, object]], here: list[dict[str, object]]) -> Iterator[str]:
    """All events in their order. How often the end of a quiet watch is bookmarked depends on the second in which it began."""
    yield from differences(*([next(group) for _, group in groupby(events, key=bookmark_or_own)] for events in (there, here)))


def bookmark_or_own(event: dict[str, object]) -> object:
    return "BOOKMARK" if event.get("type") == "BOOKMARK" else json.dumps(event)


@pytest.mark.parametrize("step", [step for step in STEPS if step.id not in OTHERWISE], ids=lambda step: step.id)
def test_recorded_request_is_answered_as_a_real_server_did(step: Step, answers: dict[str, Played]) -> None:
    found = list(compare(step, answers[step.id]))

    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", OTHERWISE)
def test_step_that_is_told_to_be_answered_otherwise_is(name: str, answers: dict[str, Played]) -> None:
    step = next(step for step in STEPS if step.id == name)

    assert list(compare(step, answers[name]))
