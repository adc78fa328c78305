"""`kubectl headwater plan`: a question in an annotation, the operator's answer in the status, and nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from plugin_bodies import FINALIZER, realm_body, realm_status
from plugin_calls import Lakes, Plugin

PLAN = "headwater.dev/plan"

Body = dict[str, Any]
Answer = Callable[[Body], bool]


def question_of(found: Body) -> Body | None:
    text = found["metadata"].get("annotations", {}).get(PLAN)
    return None if text is None else dict(json.loads(text))


@pytest.fixture
def answering(lakes: Lakes) -> Callable[..., Answer]:
    """``answering(steps=[...])`` looks at the resource as an operator does, and answers a question that it finds."""

    def make(asked: list[Body] | None = None, **parts: Any) -> Answer:
        def act(found: Body) -> bool:
            question = question_of(found)
            if question is None:
                return False
            if asked is not None:
                asked.append(question)
            empty: Body = {"steps": [], "waits": [], "refused": [], "reports": [], "time": "2026-11-22T12:00:00Z"}
            lakes.set_status(realm_status(plan={**empty, "token": question["token"], **parts}))
            return True

        return act

    return make


def test_operators_plan_is_printed(plugin: Plugin, lakes: Lakes, answering: Callable[..., Answer]) -> None:
    lakes.make_realm()
    with lakes.watched(answering(steps=["would switch realm acme to INACTIVE"], reports=["it drifted"])):
        said = plugin.ok("plan", "acme")

    assert said == "realm/acme:\n  would do: would switch realm acme to INACTIVE\n  would report: it drifted\n"


def test_empty_plan_is_one_sentence(plugin: Plugin, lakes: Lakes, answering: Callable[..., Answer]) -> None:
    lakes.make_realm()
    with lakes.watched(answering()):
        assert plugin.ok("plan", "acme") == "realm/acme: nothing to do\n"


def test_plan_that_would_be_refused_ends_with_8(plugin: Plugin, lakes: Lakes, answering: Callable[..., Answer]) -> None:
    lakes.make_realm()
    with lakes.watched(answering(refused=["realm acme is managed by another"])):
        assert plugin("plan", "acme").exit_code == 8


def test_annotation_alone_is_written_and_does_not_stay(plugin: Plugin, lakes: Lakes, answering: Callable[..., Answer]) -> None:
    before = lakes.make_realm(held=True)
    with lakes.watched(answering()):
        plugin.ok("plan", "acme")

    after = lakes.read()
    assert (after["spec"], after["metadata"]["annotations"]) == (before["spec"], before["metadata"]["annotations"])
    assert (after["metadata"]["generation"], after["metadata"]["finalizers"]) == (1, [FINALIZER])


def test_missing_operator_is_said_and_nothing_stays(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()

    assert "no operator answered within 1 s" in plugin.refused(4, "plan", "acme", "--timeout", "1s")
    assert question_of(lakes.read()) is None


def test_answer_to_another_question_does_not_count(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(status=realm_status(plan={"token": "another", "steps": ["something old"]}))

    assert "no operator answered" in plugin.refused(4, "plan", "acme", "--timeout", "1s")


def test_question_that_another_has_replaced_is_a_conflict(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()

    def replace(found: Body) -> bool:
        if question_of(found) is None:
            return False
        lakes.namespace.kubectl("annotate", "realm", "acme", f"{PLAN}={json.dumps({'token': 'theirs'})}", "--overwrite")
        return True

    with lakes.watched(replace):
        assert "somebody else asked" in plugin.refused(6, "plan", "acme", "--timeout", "2s")
    assert question_of(lakes.read()) == {"token": "theirs"}


def test_file_is_planned_as_the_server_would_store_it(
    plugin: Plugin, lakes: Lakes, answering: Callable[..., Answer], written: Callable[[str], str]
) -> None:
    """With its defaults, without the fields that `kubectl apply` would take away, and without being applied."""
    lakes.make_realm(driftPolicy="Report")
    asked: list[Body] = []
    with lakes.watched(answering(asked)):
        plugin.ok("plan", "acme", "-f", written(yaml.safe_dump(realm_body(state="Inactive"))))

    spec = asked[0]["spec"]
    assert (spec["state"], spec["driftPolicy"], spec["deletionPolicy"]) == ("Inactive", "Correct", "Retain")
    assert lakes.read()["spec"]["driftPolicy"] == "Report"


def test_file_for_a_server_side_applied_resource_is_planned_so(
    plugin: Plugin, lakes: Lakes, answering: Callable[..., Answer], written: Callable[[str], str]
) -> None:
    text = yaml.safe_dump(realm_body(driftPolicy="Report"))
    lakes.namespace.kubectl("apply", "--server-side", "-f", "-", text=text)
    asked: list[Body] = []
    with lakes.watched(answering(asked)):
        plugin.ok("plan", "acme", "-f", written(yaml.safe_dump(realm_body(state="Inactive"))))

    assert (asked[0]["spec"]["state"], asked[0]["spec"]["driftPolicy"]) == ("Inactive", "Correct")


def test_file_that_the_server_refuses_is_refused(plugin: Plugin, lakes: Lakes, written: Callable[[str], str]) -> None:
    lakes.make_realm()

    said = plugin.refused(5, "plan", "acme", "-f", written(yaml.safe_dump(realm_body(state="Asleep"))))
    assert "spec.state" in said
    assert question_of(lakes.read()) is None


def test_file_about_something_else_ends_with_3(plugin: Plugin, lakes: Lakes, written: Callable[[str], str]) -> None:
    lakes.make_realm()

    assert "has no Realm 'acme'" in plugin.refused(3, "plan", "acme", "-f", written(yaml.safe_dump(realm_body("beta"))))


def test_catalog_is_planned_by_its_kind(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_catalog()

    assert "catalog/lake: no operator answered" in plugin.refused(4, "plan", "catalog/lake", "--timeout", "0s")
