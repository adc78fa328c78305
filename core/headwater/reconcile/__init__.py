"""Manifests, and what has to be done so that a store is as they say: read, planned by pure functions, carried out step by step.

This room knows neither Kubernetes nor the command line, runs no task, and keeps no state of its own: what it needs to
remember stands in the definitions of realms and catalogs.
"""

from headwater.reconcile.actions import REASONS, Notice, Refuse, Report, Step, Wait
from headwater.reconcile.catalog_planning import plan_catalog
from headwater.reconcile.credentials import CredentialsSink, FileCredentials, write_once
from headwater.reconcile.describing import (
    CatalogDescription,
    ContentCounts,
    ImportDescription,
    RealmDescription,
    TaskDescription,
    describe_catalog,
    describe_realm,
)
from headwater.reconcile.loading import KnownRealms, load_manifests, read_manifest
from headwater.reconcile.manifests import CatalogManifest, Manifest, RealmManifest
from headwater.reconcile.observing import known_realms
from headwater.reconcile.owning import ManagerIdentity, release_realm
from headwater.reconcile.previewing import Preview, plan_of_catalog, plan_of_realm
from headwater.reconcile.reading import ManifestError
from headwater.reconcile.realm_planning import plan_realm
from headwater.reconcile.reconciling import Outcome, reconcile, reconcile_catalog, reconcile_realm
from headwater.reconcile.schedule import next_time, weekly_schedule

__all__ = [
    "REASONS",
    "CatalogDescription",
    "CatalogManifest",
    "ContentCounts",
    "CredentialsSink",
    "FileCredentials",
    "ImportDescription",
    "KnownRealms",
    "ManagerIdentity",
    "Manifest",
    "ManifestError",
    "Notice",
    "Outcome",
    "Preview",
    "RealmDescription",
    "RealmManifest",
    "Refuse",
    "Report",
    "Step",
    "TaskDescription",
    "Wait",
    "describe_catalog",
    "describe_realm",
    "known_realms",
    "load_manifests",
    "next_time",
    "plan_catalog",
    "plan_of_catalog",
    "plan_of_realm",
    "plan_realm",
    "read_manifest",
    "reconcile",
    "reconcile_catalog",
    "reconcile_realm",
    "release_realm",
    "weekly_schedule",
    "write_once",
]
