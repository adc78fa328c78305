"""Bodies of requests: JSON, YAML, protobuf, and the kinds of patches."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import yaml

from kubeapi import protobuf
from kubeapi.failures import Failure
from kubeapi.gotexts import first_wrong, summary
from kubeapi.requests import Asked

__all__ = ["parsed", "parsed_patch"]

Body = dict[str, Any]


def parsed(asked: Asked, raw: bytes, media: str) -> tuple[Any, list[str]]:
    """The body of a request, and the fields that stand twice in it."""
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(raw), []
    if media == "application/yaml":
        return _yaml(raw), []
    if media not in ("application/json", "", "*/*"):
        raise Failure.unsupported_media(["application/json", "application/yaml", protobuf.MEDIA_TYPE])
    doubles: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> Body:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            doubles.extend(dict.fromkeys(name for name in names if names.count(name) > 1))
        return found

    try:
        return json.loads(raw, object_pairs_hook=unique), doubles
    except (ValueError, RecursionError):
        raise Failure.bad_request(
            f"the object provided is unrecognized (must be of type {asked.kind.kind}): couldn't get version/kind; json parse error: "
            f"{first_wrong(raw)} ({summary(raw)})"
        ) from None


def parsed_patch(raw: bytes, media: str) -> Any:
    if media.endswith("+yaml"):
        return _yaml(raw)
    try:
        return json.loads(raw)
    except ValueError as error:
        raise Failure.bad_request(f"error decoding patch: {error}") from None


def _yaml(raw: bytes) -> Any:
    if raw.lstrip().startswith(b"{"):
        with contextlib.suppress(ValueError):
            return json.loads(raw)
    try:
        return yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise Failure.bad_request(f"error decoding YAML: {error}") from None
