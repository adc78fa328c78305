"""What the realm says about a catalog's expiry: its policies, the tables that the catalog is the home of, and the switch that stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from headwater.catalogs import CatalogDefinition
from headwater.expiry.expiry_rules import ExpiryRules
from headwater.iceberg.snapshot_expiry import MetadataLogLimits, SnapshotLimits
from headwater.store import RealmStore, Store


class SilentRules:
    """The rules where no policy says anything: nothing goes."""

    digest = b"no rules"

    def snapshot_limits(self, branch: str, content_id: UUID, properties: Mapping[str, str]) -> SnapshotLimits | None:
        return None

    def metadata_log_limits(self, content_id: UUID, properties: Mapping[str, str]) -> MetadataLogLimits | None:
        return None


def read_policy_rules(rows: RealmStore, definition: CatalogDefinition) -> ExpiryRules:
    """Read what the policies say, once for a run."""
    return SilentRules()


def read_homes(rows: RealmStore, definition: CatalogDefinition) -> Callable[[UUID], bool]:
    """Read which tables the catalog is the home of, once for a run."""
    return lambda content_id: True


def stop_switch_of(store: Store, rows: RealmStore, definition: CatalogDefinition) -> Callable[[], None]:
    """The switch that a run looks at before each step."""
    return lambda: None
