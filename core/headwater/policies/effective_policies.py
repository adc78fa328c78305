"""What policies come to for one table. Pure: policies and the table's properties in, values with their sources out.

    a table's policy stands before its catalog's, field by field; of a policy of snapshots the first rule counts that covers the branch
    where the table's own properties say something, too, whoever asks to keep more wins
    who says nothing does not count; Iceberg's default counts only where nobody says anything

A property that is no number, or a negative one, asks to keep everything: of history.expire.* all snapshots, branches and tags of the
table, whatever limits of their own these have (Iceberg's own expiry fails where it is no number); of write.metadata.* all of its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from headwater.iceberg.snapshot_expiry import LOG_LENGTH, MetadataLogLimits, RefLimits, SnapshotLimits
from headwater.policies.policy_values import (
    DAY_SECONDS,
    GRACE_FLOOR_SECONDS,
    FileMode,
    FileRule,
    MetadataFileRule,
    SnapshotRule,
)

AGE, NUMBER, REF_AGE = (
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "history.expire.max-ref-age-ms",
)
LOG_NUMBER = "write.metadata.previous-versions-max"
DEFAULT_AGE_MS = 5 * 24 * 3600 * 1000
"""Apache Iceberg, table specification, "Snapshot Retention Policy"."""
FOREVER = (1 << 62) - 1
GRACE_SECONDS, DELAY_SECONDS, HOLD_SECONDS = 7 * DAY_SECONDS, DAY_SECONDS, 7 * DAY_SECONDS
DEFAULT = "default"
T = TypeVar("T")


class Sourced(NamedTuple, Generic[T]):
    """A value, and where it comes from, for people."""

    value: T
    source: str


class PolicySource(NamedTuple, Generic[T]):
    """What one policy says, and whose it is, for people."""

    says: T
    name: str


class PropertyLimits(NamedTuple):
    """What a table's properties say of some limits.

    limits        by the property's name
    broken        the first that cannot be read, as a limit that keeps everything; then there are no ``limits``
    """

    limits: Mapping[str, Sourced[int]]
    broken: Sourced[Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSnapshots:
    """What a table keeps of its snapshots on a branch.

    least         what the policies alone ask for: a table's own branches and tags may not keep less
    """

    max_snapshot_age_ms: Sourced[int]
    min_snapshots_to_keep: Sourced[int]
    max_ref_age_ms: Sourced[int | None]
    least: RefLimits

    def limits(self) -> SnapshotLimits:
        return SnapshotLimits(
            max_snapshot_age_ms=self.max_snapshot_age_ms.value,
            min_snapshots_to_keep=self.min_snapshots_to_keep.value,
            max_ref_age_ms=self.max_ref_age_ms.value,
            least=self.least,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveMetadataFiles:
    """What a table's log of earlier metadata files keeps; ``max_age_ms`` None: for good."""

    keep: Sourced[int]
    max_age_ms: Sourced[int | None]

    def limits(self) -> MetadataLogLimits:
        return MetadataLogLimits(keep=self.keep.value, max_age_ms=self.max_age_ms.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveFiles:
    """How a table's dead files are treated."""

    grace_seconds: Sourced[float]
    delay_seconds: Sourced[float]
    hold_seconds: Sourced[float]
    mode: Sourced[FileMode]


def effective_snapshots(
    policies: Sequence[PolicySource[tuple[SnapshotRule, ...]]], branch: str, properties: Mapping[str, str]
) -> EffectiveSnapshots | None:
    """What policies of snapshots come to, the table's first; None where none says anything about the branch."""
    rules = [
        PolicySource(rule, f"{name}, branches {rule.branches}")
        for policy, name in policies
        if (rule := next((rule for rule in policy if rule.covers(branch)), None)) is not None
    ]
    if not rules:
        return None
    told = property_limits(properties, (AGE, NUMBER, REF_AGE))
    if told.broken is not None:
        return keep_all(told.broken)
    age = _milliseconds(_first(rules, "max_age_seconds"))
    number = _first(rules, "min_to_keep")
    ref_age = _milliseconds(_first(rules, "max_ref_age_seconds"))
    return EffectiveSnapshots(
        max_snapshot_age_ms=_met(age, told.limits.get(AGE), DEFAULT_AGE_MS),
        min_snapshots_to_keep=_met(number, told.limits.get(NUMBER), 1),
        max_ref_age_ms=_met(ref_age, told.limits.get(REF_AGE), None),
        least=RefLimits(
            max_snapshot_age_ms=None if age is None else age.value,
            min_snapshots_to_keep=None if number is None else number.value,
            max_ref_age_ms=None if ref_age is None else ref_age.value,
        ),
    )


def effective_metadata_files(
    policies: Sequence[PolicySource[MetadataFileRule]], properties: Mapping[str, str]
) -> EffectiveMetadataFiles | None:
    """What policies of metadata files come to, the table's first; None where there is none."""
    if not policies:
        return None
    told = property_limits(properties, (LOG_NUMBER,))
    if told.broken is not None:
        return EffectiveMetadataFiles(keep=told.broken, max_age_ms=told.broken)
    age = _milliseconds(_first(policies, "max_age_seconds"))
    return EffectiveMetadataFiles(
        keep=_met(_first(policies, "keep"), told.limits.get(LOG_NUMBER), LOG_LENGTH),
        max_age_ms=Sourced(None, DEFAULT) if age is None else Sourced(age.value, age.source),
    )


def effective_files(policies: Sequence[PolicySource[FileRule]]) -> EffectiveFiles:
    """What policies of files come to, the table's first."""
    grace = _first(policies, "grace_seconds") or Sourced(GRACE_SECONDS, DEFAULT)
    return EffectiveFiles(
        grace_seconds=Sourced(max(grace.value, GRACE_FLOOR_SECONDS), grace.source),
        delay_seconds=_first(policies, "delay_seconds") or Sourced(DELAY_SECONDS, DEFAULT),
        hold_seconds=_first(policies, "hold_seconds") or Sourced(HOLD_SECONDS, DEFAULT),
        mode=_first(policies, "mode") or Sourced("report", DEFAULT),
    )


def _first(policies: Iterable[PolicySource[Any]], name: str) -> Sourced[Any] | None:
    """What the first policy says that says anything about a field."""
    told = ((getattr(policy.says, name), policy.name) for policy in policies)
    return next((Sourced(value, source) for value, source in told if value is not None), None)


def _met(policy: Sourced[int] | None, own: Sourced[int] | None, default: int | None) -> Sourced[Any]:
    """The value by which more stays: a policy's, or the table's own."""
    if policy is None and own is None:
        return Sourced(default, DEFAULT)
    if policy is None or (own is not None and own.value > policy.value):
        assert own is not None
        return own
    return policy


def property_limits(properties: Mapping[str, str], names: Iterable[str]) -> PropertyLimits:
    """Read what a table's own properties say of some limits."""
    limits: dict[str, Sourced[int]] = {}
    for name in names:
        text = properties.get(name)
        if text is None:
            continue
        if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 19):
            source = f"property {name}, which is no number that can be read ({str(text)[:40]!r}): everything is kept"
            return PropertyLimits({}, Sourced(FOREVER, source))
        limits[name] = Sourced(min(int(text), FOREVER), f"property {name}")
    return PropertyLimits(limits, None)


def keep_all(broken: Sourced[Any]) -> EffectiveSnapshots:
    """What a table keeps of which a limit is broken: all, whatever limits its own branches and tags have."""
    forever = RefLimits(max_snapshot_age_ms=FOREVER, min_snapshots_to_keep=FOREVER, max_ref_age_ms=FOREVER)
    return EffectiveSnapshots(max_snapshot_age_ms=broken, min_snapshots_to_keep=broken, max_ref_age_ms=broken, least=forever)


def _milliseconds(told: Sourced[float] | None) -> Sourced[int] | None:
    return None if told is None else Sourced(round(told.value * 1000), told.source)
