"""What holds for every status, whatever a pass came to: it fits the definition of its kind, and stands still by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from bodies import later
from hypothesis import given
from passes import either, status_of

from headwater.reconcile import ReconcileOutcome
from headwater_operator.resource.conditions import MESSAGE_LIMIT
from headwater_operator.resource.events import events_for
from headwater_operator.resource.reasons import REASONS
from headwater_operator.resource.resource_status import is_written
from headwater_operator.runtime.informer_cache import CachedResource
from kubeapi.admission import CompiledKind

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def kinds() -> dict[str, CompiledKind]:
    """The definitions as the API server has them."""
    found = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in FOLDER.glob("*.yaml")]
    return {crd["spec"]["names"]["kind"]: CompiledKind(crd, "v1alpha1") for crd in found}


@given(one=either, other=either)
def test_status_fed_back_gives_itself_whatever_stood_there_before(one: Any, other: Any) -> None:
    made, brought = one
    before = status_of(*other, now=later(-60)) if other[0]["kind"] == made["kind"] else {}
    first = status_of({**made, "status": before}, brought, now=later(0))

    second = status_of({**made, "status": first}, brought, now=later(0))

    assert second == first
    assert is_written(CachedResource.from_body({**made, "status": first}), second)
    assert events_for(CachedResource.from_body(made), first, second, ()) == []


@given(one=either, other=either)
def test_time_changes_only_with_the_status_of_its_condition(one: Any, other: Any) -> None:
    made, brought = one
    first = status_of(made, brought, now=later(0))
    made_later, brought_later = other if other[0]["kind"] == made["kind"] else one

    second = status_of({**made_later, "status": first}, brought_later, now=later(200_000))

    before = {condition["type"]: condition for condition in first["conditions"]}
    for condition in second["conditions"]:
        former = before.get(condition["type"])
        is_same = former is not None and former["status"] == condition["status"]
        assert is_same == (former is not None and former["lastTransitionTime"] == condition["lastTransitionTime"])


@given(one=either)
def test_every_reason_stands_where_the_catalogue_says(one: Any) -> None:
    for condition in status_of(*one, now=later(0))["conditions"]:
        assert condition["type"] in REASONS[condition["reason"]].conditions, condition
        assert len(condition["message"]) <= MESSAGE_LIMIT


@given(one=either)
def test_every_status_fits_the_definition_of_its_kind(kinds: dict[str, CompiledKind], one: Any) -> None:
    made, brought = one
    status = status_of(made, brought, now=later(0))
    stored = {**made, "status": status}
    kind = kinds[made["kind"]]

    unknown = kind.decode(stored)
    kind.default(stored)

    assert unknown == []
    assert stored["status"] == status
    assert kind.validate(stored, None, is_status=True) == []


@given(one=either)
def test_ready_resource_is_one_that_nothing_stands_against(one: Any) -> None:
    made, brought = one
    status = status_of(made, brought, now=later(0))
    outcome = brought["outcome"]

    ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
    if ready["status"] == "True":
        assert isinstance(outcome, ReconcileOutcome)
        assert outcome.is_settled
