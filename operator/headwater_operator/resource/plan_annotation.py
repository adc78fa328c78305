"""Answers the annotation `headwater.dev/plan`: what would be done, for the spec as it is or for another one, once for each token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from headwater.errors import FencedError, HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.reconcile import ManifestError, PlanPreview, RefuseManifest
from headwater.reconcile.manifests import PLAN
from headwater_operator.resource.resource_status import PlanMade, asked_plan
from headwater_operator.runtime.informer_cache import CachedResource

log = structlog.get_logger(__name__)


def make_plan(resource: CachedResource, preview: Callable[[dict[str, Any]], PlanPreview]) -> PlanMade | None:
    """The plan that is asked for and was not made yet; None when there is none to make, or the store does not answer.

    preview       makes a plan of a body, and writes nothing
    """
    token = asked_plan(resource)
    if token is None:
        return None
    body = _asked_body(resource)
    made = PlanPreview(refused=(body,)) if isinstance(body, RefuseManifest) else _previewed(body, preview)
    return None if made is None else PlanMade(token, made)


def _asked_body(resource: CachedResource) -> dict[str, Any] | RefuseManifest:
    try:
        question = json.loads(resource.annotations[PLAN])
    except (ValueError, RecursionError):
        question = None
    spec = question.get("spec") if isinstance(question, Mapping) else None
    if not isinstance(question, Mapping) or not isinstance(spec, Mapping | None):
        return RefuseManifest(
            "SpecInvalid", f'the annotation {PLAN} must be JSON such as {{"token": "a1", "spec": {{}}}}, with or without spec'
        )
    return resource.body() if spec is None else {**resource.body(), "spec": dict(spec)}


def _previewed(body: dict[str, Any], preview: Callable[[dict[str, Any]], PlanPreview]) -> PlanPreview | None:
    try:
        return preview(body)
    except (FencedError, UnavailableError, UnknownOutcomeError):
        return None
    except ManifestError as fault:
        faults = (f"{one.path}: {one.message}" if one.path else one.message for one in fault.faults)
        return PlanPreview(refused=tuple(RefuseManifest("SpecInvalid", told) for told in faults))
    except HeadwaterError as fault:
        return PlanPreview(refused=(RefuseManifest("Refused", str(fault)),))
    except RecursionError:
        return PlanPreview(refused=(RefuseManifest("SpecInvalid", "the spec of the plan is nested too deeply"),))
    except Exception as fault:
        log.exception("a plan ended in a bug")
        return PlanPreview(refused=(RefuseManifest("InternalError", f"{type(fault).__name__}: a bug in Headwater"),))
