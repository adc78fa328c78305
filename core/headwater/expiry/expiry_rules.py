"""What decides how much of a table stays: the policies, or what a person asks for once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from headwater.iceberg.snapshot_expiry import MetadataLogLimits, SnapshotLimits

ICEBERG_AGE_MS = 5 * 24 * 3600 * 1000
"""How long snapshots stay where neither a person nor the table says anything, by Iceberg's specification."""


class ExpiryRules(Protocol):
    """The limits of tables."""

    @property
    def digest(self) -> bytes:
        """At least 8 bytes that differ where anything but the table itself would decide otherwise."""

    @property
    def has_snapshot_policies(self) -> bool:
        """Whether anything at all says that something of a table may go."""

    def snapshot_limits(self, branch: str, content_id: UUID, properties: Mapping[str, str]) -> SnapshotLimits | None:
        """What a table of a branch keeps; None where nothing says that any of it may go."""

    def metadata_log_limits(self, content_id: UUID, properties: Mapping[str, str]) -> MetadataLogLimits | None:
        """What is asked of a table's log of metadata files; None where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRules:
    """What a person asks for once, as of Iceberg's own procedure: it stands before the table's properties, and no policy is asked.

    max_age_ms    None: the property ``history.expire.max-snapshot-age-ms``, or else five days
    keep          the least number of snapshots; None: the property ``history.expire.min-snapshots-to-keep``, or else one
    """

    max_age_ms: int | None = None
    keep: int | None = None

    @property
    def has_snapshot_policies(self) -> bool:
        return True

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(f"asked {self.max_age_ms} {self.keep}".encode(), digest_size=8).digest()

    def snapshot_limits(self, branch: str, content_id: UUID, properties: Mapping[str, str]) -> SnapshotLimits:
        age = _number(properties, "history.expire.max-snapshot-age-ms") if self.max_age_ms is None else self.max_age_ms
        keep = _number(properties, "history.expire.min-snapshots-to-keep") if self.keep is None else self.keep
        return SnapshotLimits(
            max_snapshot_age_ms=ICEBERG_AGE_MS if age is None else age,
            min_snapshots_to_keep=1 if keep is None else keep,
            max_ref_age_ms=_number(properties, "history.expire.max-ref-age-ms"),
        )

    def metadata_log_limits(self, content_id: UUID, properties: Mapping[str, str]) -> None:
        return None


def _number(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None
