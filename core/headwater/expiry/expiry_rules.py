"""What decides how much of a table stays: the policies, or what a person asks for once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from headwater.iceberg.snapshot_expiry import MetadataLogLimits, SnapshotLimits
from headwater.policies.effective_policies import AGE, DEFAULT_AGE_MS, NUMBER, REF_AGE, keep_all, property_limits


class ExpiryRules(Protocol):
    """The limits of tables."""

    @property
    def rules_digest(self) -> bytes:
        """At least 8 bytes that differ where anything but the table itself would decide otherwise."""

    @property
    def allows_expiry(self) -> bool:
        """Whether anything at all says that something of a table may go."""

    def snapshot_limits(self, branch: str, content_id: UUID, properties: Mapping[str, str]) -> SnapshotLimits | None:
        """What a table of a branch keeps; None where nothing says that any of it may go."""

    def metadata_log_limits(self, content_id: UUID, properties: Mapping[str, str]) -> MetadataLogLimits | None:
        """What is asked of a table's log of metadata files; None where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRules:
    """What a person asks for once, as of Iceberg's own procedure: it stands before the table's properties, and no policy is asked.
    A table one of whose other limits cannot be read keeps everything.

    max_age_ms    None: the property ``history.expire.max-snapshot-age-ms``, or else five days
    keep          the least number of snapshots; None: the property ``history.expire.min-snapshots-to-keep``, or else one
    """

    max_age_ms: int | None = None
    keep: int | None = None

    @property
    def allows_expiry(self) -> bool:
        return True

    @property
    def rules_digest(self) -> bytes:
        return hashlib.blake2b(f"asked {self.max_age_ms} {self.keep}".encode(), digest_size=8).digest()

    def snapshot_limits(self, branch: str, content_id: UUID, properties: Mapping[str, str]) -> SnapshotLimits:
        own = {AGE: self.max_age_ms, NUMBER: self.keep, REF_AGE: None}
        told = property_limits(properties, [name for name, value in own.items() if value is None])
        if told.broken is not None:
            return keep_all(told.broken).limits()
        limits = {name: limit.value for name, limit in told.limits.items()}
        return SnapshotLimits(
            max_snapshot_age_ms=limits.get(AGE, DEFAULT_AGE_MS) if self.max_age_ms is None else self.max_age_ms,
            min_snapshots_to_keep=limits.get(NUMBER, 1) if self.keep is None else self.keep,
            max_ref_age_ms=limits.get(REF_AGE),
        )

    def metadata_log_limits(self, content_id: UUID, properties: Mapping[str, str]) -> None:
        return None
