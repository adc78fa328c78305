"""Manifests, and the reconciliation of a store with them: read, planned by pure functions, executed step by step.

This package knows neither Kubernetes nor the command line, runs no task, and keeps no state of its own: what it needs to
remember is stored in the definitions of realms and catalogs.
"""

from headwater.reconcile.actions import REASONS, Notice, PlannedStep, RefuseManifest, ReportDrift, WaitUntil
from headwater.reconcile.catalog_plan import plan_catalog
from headwater.reconcile.connection_form import ConnectionForm
from headwater.reconcile.convergence import (
    ReconcileOutcome,
    in_turn,
    reconcile,
    reconcile_catalog,
    reconcile_realm,
    release_realm,
)
from headwater.reconcile.credentials_sink import CredentialsSink, FileCredentials, UnwrittenCredentials
from headwater.reconcile.manifest_diff import FieldDifference, ManifestComparison, compare_manifest
from headwater.reconcile.manifest_files import ManifestText, load_manifests, read_manifest
from headwater.reconcile.manifests import (
    CatalogManifest,
    KnownRealms,
    ManagerIdentity,
    Manifest,
    ManifestError,
    RealmManifest,
    as_deletion,
)
from headwater.reconcile.observed_state import (
    READABLE,
    CatalogDescription,
    ContentCounts,
    ImportDescription,
    LakeWorkDescription,
    RealmDescription,
    TaskDescription,
    UncountedContents,
    describe_catalog,
    describe_realm,
    known_realms,
    quarantined_tables,
)
from headwater.reconcile.plan_preview import PlanPreview, preview_catalog, preview_realm
from headwater.reconcile.realm_plan import plan_realm
from headwater.reconcile.schedule import next_time, weekly_schedule

__all__ = [
    "READABLE",
    "REASONS",
    "CatalogDescription",
    "CatalogManifest",
    "ConnectionForm",
    "ContentCounts",
    "CredentialsSink",
    "FieldDifference",
    "FileCredentials",
    "ImportDescription",
    "KnownRealms",
    "LakeWorkDescription",
    "ManagerIdentity",
    "Manifest",
    "ManifestComparison",
    "ManifestError",
    "ManifestText",
    "Notice",
    "PlanPreview",
    "PlannedStep",
    "RealmDescription",
    "RealmManifest",
    "ReconcileOutcome",
    "RefuseManifest",
    "ReportDrift",
    "TaskDescription",
    "UncountedContents",
    "UnwrittenCredentials",
    "WaitUntil",
    "as_deletion",
    "compare_manifest",
    "describe_catalog",
    "describe_realm",
    "in_turn",
    "known_realms",
    "load_manifests",
    "next_time",
    "plan_catalog",
    "plan_realm",
    "preview_catalog",
    "preview_realm",
    "quarantined_tables",
    "read_manifest",
    "reconcile",
    "reconcile_catalog",
    "reconcile_realm",
    "release_realm",
    "weekly_schedule",
]
