"""Realms: the tenants of a store, their states, their bootstrap, and the handles by which their rows are written.

This package knows nothing of catalogs, of tasks, or of the caller who asks for a change.
"""

from __future__ import annotations

from headwater.realms.client_credentials import (
    Credentials,
    CredentialsHash,
    hash_credentials,
    new_credentials,
    verify_secret,
)
from headwater.realms.principals import (
    BY_CLIENT,
    BY_NAME,
    PRINCIPALS,
    ROOT_PRINCIPAL,
    Principal,
    create_principal,
    disable_principal,
    enable_principal,
    find_principal,
    find_root,
    list_principals,
    log_in,
    reset_principal,
    rotate_principal,
)
from headwater.realms.realm_bootstrap import bootstrap, check_bootstrap
from headwater.realms.realm_definition import (
    DeletionPolicy,
    DriftPolicy,
    HistoryRetention,
    KeptHistory,
    MaintenanceSchedule,
    Realm,
    RealmFields,
    RealmManager,
    RealmState,
    hold_until,
)
from headwater.realms.realm_registry import FILLED_REFERENCES, REALM_REFERENCES, REALMS, RealmClosedError, RealmRegistry
from headwater.store.ids import checked_realm_id

__all__ = [
    "BY_CLIENT",
    "BY_NAME",
    "FILLED_REFERENCES",
    "PRINCIPALS",
    "REALMS",
    "REALM_REFERENCES",
    "ROOT_PRINCIPAL",
    "Credentials",
    "CredentialsHash",
    "DeletionPolicy",
    "DriftPolicy",
    "HistoryRetention",
    "KeptHistory",
    "MaintenanceSchedule",
    "Principal",
    "Realm",
    "RealmClosedError",
    "RealmFields",
    "RealmManager",
    "RealmRegistry",
    "RealmState",
    "bootstrap",
    "check_bootstrap",
    "checked_realm_id",
    "create_principal",
    "disable_principal",
    "enable_principal",
    "find_principal",
    "find_root",
    "hash_credentials",
    "hold_until",
    "list_principals",
    "log_in",
    "new_credentials",
    "reset_principal",
    "rotate_principal",
    "verify_secret",
]
