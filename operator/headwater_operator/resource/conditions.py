"""Conditions as Kubernetes has them, merged so that their times tell when something changed, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.clock import Micros, as_text
from headwater_operator.resource.reasons import CONDITIONS, Standing

MESSAGE_LIMIT = 1024
"""Characters of a message; the API allows 32 KiB."""

_ORDER = {condition.name: place for place, condition in enumerate(CONDITIONS)}
_SENTENCE_END = re.compile(r"[.;:!?](?=\s)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_CUT = " …"


@dataclass(frozen=True, slots=True)
class Condition:
    """What shall be said now."""

    type: str
    status: Standing
    reason: str
    message: str = ""


def merge_conditions(
    former: Sequence[Mapping[str, Any]], wanted: Iterable[Condition], *, generation: int, now: Micros
) -> list[dict[str, Any]]:
    """The conditions of a status, in the order of the catalogue.

    former        those of the status as it was; what is not wanted any more leaves
    generation    of the resource that they are about
    returns       each with the time of its last change of status: the former one while its status stays
    """
    return [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason,
            "message": cut_message(one.message, MESSAGE_LIMIT),
            "observedGeneration": generation,
            "lastTransitionTime": _since(find_condition(former, one.type), one.status) or as_text(now),
        }
        for one in sorted(wanted, key=lambda one: _ORDER[one.type])
    ]


def find_condition(conditions: Iterable[Mapping[str, Any]], type_: str) -> Mapping[str, Any] | None:
    return next((one for one in conditions if one.get("type") == type_), None)


def kept_conditions(former: Iterable[Mapping[str, Any]], type_: str) -> Condition | None:
    """A condition as it was, to be said again because nothing is known that is newer."""
    found = find_condition(former, type_)
    if found is None or found.get("status") not in ("True", "False", "Unknown"):
        return None
    return Condition(type_, found["status"], str(found.get("reason")), str(found.get("message") or ""))


def cut_message(text: str, limit: int) -> str:
    """At most so many characters, ending with a sentence where one ends late enough; without the white space at its ends.

    Half a character, as JSON can write one, becomes a question mark: no API takes it.
    """
    text = text.encode(errors="replace").decode().strip()
    if len(text) <= limit:
        return text
    head = text[: limit - len(_CUT)]
    ends = [found.end() for found in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] >= limit // 2:
        head = head[: ends[-1]]
    return head.rstrip() + _CUT


def _since(former: Mapping[str, Any] | None, status: str) -> str | None:
    if former is None or former.get("status") != status:
        return None
    time = former.get("lastTransitionTime")
    return time if isinstance(time, str) and _TIME.fullmatch(time) else None
