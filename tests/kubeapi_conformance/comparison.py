"""What a recorded answer and that of another server have in common, and what not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from known_differences import PLACES
from replays import Answer, told
from transcripts import differences, served_here

from kubetest.recordings import Line

__all__ = ["compare", "known_place"]


def compare(line: Line, answer: Answer) -> Iterator[str]:
    there = line.response
    if answer.status != there["status"]:
        yield f"status {there['status']} there, {answer.status} here"
    if (there.get("warning") or []) != answer.warnings:
        yield f"warnings {there.get('warning')} there, {answer.warnings} here"
    if line.is_watch:
        yield from compare_events(there, answer)
    elif not is_protobuf(there) and answer.status == there["status"] != 304:
        yield from compare_bodies(there, answer)


def compare_events(there: dict[str, Any], answer: Answer) -> Iterator[str]:
    """Types and names in their order, as far as they were recorded; what came later came after the program had hung up."""
    wanted, found = (
        [(one["type"], name_of(one["object"])) for one in told(events)] for events in (there["events"], answer.events)
    )
    if found[: len(wanted)] != wanted:
        first = next(number for number in range(len(wanted)) if wanted[number : number + 1] != found[number : number + 1])
        yield f"events from number {first} on: {wanted[first : first + 9]} there, {found[first : first + 9]} here"


def compare_bodies(there: dict[str, Any], answer: Answer) -> Iterator[str]:
    if answer.media != there.get("content-type"):
        yield f"content type {there.get('content-type')} there, {answer.media} here"
    body, here = there.get("body", "<"), answer.body
    if isinstance(body, str) and body.startswith("<"):
        return  # left out of the recording, or never seen whole
    if isinstance(body, dict) and isinstance(here, dict):
        body, here = shortened(body, here)
    yield from differences(served_here(body, here), here)


def shortened(there: dict[str, Any], here: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both without the members of a long list of which the recording has only the first ones."""
    for name in ("items", "rows"):
        if f"{name}-left-out" in there:
            here = here | {name: same_groups(there, here) or here[name][: len(there[name])]}
            there = {key: value for key, value in there.items() if key != f"{name}-left-out"}
    return there, here


def same_groups(there: dict[str, Any], here: dict[str, Any]) -> list[Any]:
    """Of the groups that are served here, those that the recording has; nothing for other lists."""
    if here.get("kind") != "APIGroupDiscoveryList":
        return []
    names = [group["metadata"].get("name") for group in there["items"]]
    return [group for group in here["items"] if group["metadata"].get("name") in names]


def is_protobuf(response: dict[str, Any]) -> bool:
    """Answered as JSON here, which whoever asks for protobuf takes too."""
    return response.get("content-type") == "application/vnd.kubernetes.protobuf"


def name_of(body: dict[str, Any]) -> str:
    rows = [row["object"] for row in body.get("rows") or ()]
    return ",".join(one["metadata"].get("name", "") for one in rows or [body])


def known_place(line: Line, difference: str) -> tuple[str, str] | None:
    return next((place for place in PLACES if place[0] == line.resource and re.match(place[1], difference)), None)
