"""Policies: what a lake keeps, said for a realm's catalogs and tables, and how a table's own properties meet it.

They are stored in the realm's reference ``policy-mappings``. Nothing here looks at a file or changes a table.
"""

from headwater.policies.effective_policies import (
    EffectiveFiles,
    EffectiveMetadataFiles,
    EffectiveSnapshots,
    Sourced,
    effective_files,
    effective_metadata_files,
    effective_snapshots,
)
from headwater.policies.policy_forms import KIND_FIELDS, policy_form, policy_text
from headwater.policies.policy_reader import PolicyReader
from headwater.policies.policy_release import release_policies
from headwater.policies.policy_store import (
    declare_policies,
    find_policy,
    list_policies,
    set_policy,
    set_snapshot_rule,
    unset_policy,
    unset_snapshot_rule,
)
from headwater.policies.policy_values import (
    MOST_RULES,
    MOST_TO_KEEP,
    FileMode,
    FileRule,
    MetadataFileRule,
    PolicyKind,
    SnapshotRule,
    StoredPolicy,
    changed_kinds,
    check_policy,
)
from headwater.policies.stop_switch import (
    MaintenanceStop,
    StopScope,
    check_not_stopped,
    find_stops_around,
    list_stops,
    read_scope,
    resume_maintenance,
    stop_maintenance,
)
from headwater.policies.table_policies import EffectiveValue, TablePolicies, find_policy_table, read_table_policies

__all__ = [
    "KIND_FIELDS",
    "MOST_RULES",
    "MOST_TO_KEEP",
    "EffectiveFiles",
    "EffectiveMetadataFiles",
    "EffectiveSnapshots",
    "EffectiveValue",
    "FileMode",
    "FileRule",
    "MaintenanceStop",
    "MetadataFileRule",
    "PolicyKind",
    "PolicyReader",
    "SnapshotRule",
    "Sourced",
    "StopScope",
    "StoredPolicy",
    "TablePolicies",
    "changed_kinds",
    "check_not_stopped",
    "check_policy",
    "declare_policies",
    "effective_files",
    "effective_metadata_files",
    "effective_snapshots",
    "find_policy",
    "find_policy_table",
    "find_stops_around",
    "list_policies",
    "list_stops",
    "policy_form",
    "policy_text",
    "read_scope",
    "read_table_policies",
    "release_policies",
    "resume_maintenance",
    "set_policy",
    "set_snapshot_rule",
    "stop_maintenance",
    "unset_policy",
    "unset_snapshot_rule",
]
