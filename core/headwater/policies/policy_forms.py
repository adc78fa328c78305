"""Policies as people write and read them: in manifests, in the management API and on the command line, with durations such as ``5d``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.policies.policy_values import PolicyKind, StoredPolicy
from headwater.settings import duration_text

KIND_FIELDS: Mapping[PolicyKind, str] = {
    PolicyKind.SNAPSHOTS: "snapshots",
    PolicyKind.METADATA_FILES: "metadataFiles",
    PolicyKind.FILE_COLLECTION: "fileCollection",
}
"""By kind: the field that holds what the policy says."""


def policy_form(policy: StoredPolicy) -> dict[str, Any]:
    """What a policy says, under the field of its kind; what says nothing is left out."""
    said: Any
    if policy.kind is PolicyKind.SNAPSHOTS:
        said = [
            _told(
                branches=rule.branches,
                maxAge=_duration(rule.max_age_seconds),
                minToKeep=rule.min_to_keep,
                maxRefAge=_duration(rule.max_ref_age_seconds),
            )
            for rule in policy.snapshots
        ]
    elif policy.kind is PolicyKind.METADATA_FILES:
        of_log = policy.metadata_files
        said = {} if of_log is None else _told(keep=of_log.keep, maxAge=_duration(of_log.max_age_seconds))
    else:
        files = policy.files
        said = (
            {}
            if files is None
            else _told(
                grace=_duration(files.grace_seconds),
                delay=_duration(files.delay_seconds),
                hold=_duration(files.hold_seconds),
                mode=files.mode,
            )
        )
    return {KIND_FIELDS[policy.kind]: said}


def policy_text(policy: StoredPolicy) -> str:
    """What a policy says, in one line."""
    [said] = policy_form(policy).values()
    rules = said if isinstance(said, list) else [said]
    return "; ".join(", ".join(f"{name} {value}" for name, value in rule.items()) for rule in rules)


def _told(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)
