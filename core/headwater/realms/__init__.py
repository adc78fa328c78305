"""Realms: the tenants of a store, their states, their bootstrap, and the handles by which their rows are written.

This room knows nothing of what users keep in a realm (catalogs), of tasks, or of who asks for a change.
"""

from __future__ import annotations

from headwater.realms.bootstrap import bootstrap, check_bootstrap
from headwater.realms.credentials import Credentials, CredentialsHash, hash_credentials, new_credentials, verify
from headwater.realms.definitions import (
    DeletionPolicy,
    DriftPolicy,
    KeptHistory,
    Maintenance,
    Manager,
    Realm,
    RealmFields,
    Retention,
    checked_realm_id,
    hold_until,
)
from headwater.realms.entities import Principal
from headwater.realms.principals import BY_CLIENT, BY_NAME, PRINCIPALS, find_root, log_in, reset_root, rotate_root
from headwater.realms.realms import FILLED_REFERENCES, REALM_REFERENCES, REALMS, Realms
from headwater.realms.states import RealmState

__all__ = [
    "BY_CLIENT",
    "BY_NAME",
    "FILLED_REFERENCES",
    "PRINCIPALS",
    "REALMS",
    "REALM_REFERENCES",
    "Credentials",
    "CredentialsHash",
    "DeletionPolicy",
    "DriftPolicy",
    "KeptHistory",
    "Maintenance",
    "Manager",
    "Principal",
    "Realm",
    "RealmFields",
    "RealmState",
    "Realms",
    "Retention",
    "bootstrap",
    "check_bootstrap",
    "checked_realm_id",
    "find_root",
    "hash_credentials",
    "hold_until",
    "log_in",
    "new_credentials",
    "reset_root",
    "rotate_root",
    "verify",
]
