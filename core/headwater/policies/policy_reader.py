"""The policies of one catalog, read once, and what they come to for its tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from uuid import UUID

import msgspec

from headwater.catalogs import CatalogDefinition
from headwater.iceberg.snapshot_expiry import MetadataLogLimits, SnapshotLimits
from headwater.policies.effective_policies import (
    EffectiveFiles,
    EffectiveMetadataFiles,
    EffectiveSnapshots,
    PolicySource,
    effective_files,
    effective_metadata_files,
    effective_snapshots,
)
from headwater.policies.policy_store import list_policies
from headwater.policies.policy_values import PolicyKind, StoredPolicy
from headwater.store import RealmStore


class PolicyReader:
    """What the policies of a catalog were when this was made."""

    def __init__(self, rows: RealmStore, definition: CatalogDefinition) -> None:
        self._name = definition.name
        self.policies = tuple(list_policies(rows, definition.id))
        self._by_key = {(policy.kind, policy.content_id): policy for policy in self.policies}

    @property
    def rules_digest(self) -> bytes:
        """Other bytes where the policies say anything else."""
        said = sorted(repr(policy.says()) for policy in self.policies)
        return hashlib.blake2b(msgspec.json.encode(said), digest_size=8).digest()

    @property
    def allows_expiry(self) -> bool:
        """Whether a policy says that anything of a table may expire."""
        return any(policy.kind in (PolicyKind.SNAPSHOTS, PolicyKind.METADATA_FILES) for policy in self.policies)

    def snapshots(self, branch: str, content_id: UUID | None, properties: Mapping[str, str]) -> EffectiveSnapshots | None:
        """What a table keeps of its snapshots on a branch; None where no policy says anything about it."""
        sources = [PolicySource(policy.snapshots, name) for policy, name in self._of(PolicyKind.SNAPSHOTS, content_id)]
        return effective_snapshots(sources, branch, properties)

    def metadata_files(self, content_id: UUID | None, properties: Mapping[str, str]) -> EffectiveMetadataFiles | None:
        """What a table's log of metadata files keeps; None where no policy says anything about it."""
        found = self._of(PolicyKind.METADATA_FILES, content_id)
        sources = [PolicySource(policy.metadata_files, name) for policy, name in found if policy.metadata_files is not None]
        return effective_metadata_files(sources, properties)

    def files(self, content_id: UUID | None) -> EffectiveFiles:
        """How a table's dead files are treated; None: those of the catalog's own prefixes."""
        found = self._of(PolicyKind.FILE_COLLECTION, content_id)
        return effective_files([PolicySource(policy.files, name) for policy, name in found if policy.files is not None])

    def snapshot_limits(self, branch: str, content_id: UUID | None, properties: Mapping[str, str]) -> SnapshotLimits | None:
        """What a table keeps of its snapshots on a branch, as limits for an expiry; None where no policy says anything about it."""
        effective = self.snapshots(branch, content_id, properties)
        return None if effective is None else effective.limits()

    def metadata_log_limits(self, content_id: UUID | None, properties: Mapping[str, str]) -> MetadataLogLimits | None:
        """The limits of a table's log, for an expiry."""
        effective = self.metadata_files(content_id, properties)
        return None if effective is None else effective.limits()

    def _of(self, kind: PolicyKind, content_id: UUID | None) -> list[tuple[StoredPolicy, str]]:
        """The table's policy and the catalog's, as far as there are any."""
        found = []
        if content_id is not None and (own := self._by_key.get((kind, content_id))) is not None:
            found.append((own, "policy of the table"))
        if (shared := self._by_key.get((kind, None))) is not None:
            found.append((shared, f"policy of catalog {self._name}"))
        return found
