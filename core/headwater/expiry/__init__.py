"""Expiry of snapshots: commits of metadata without the snapshots, references and log entries that policies let go. Deletes no file.

Other branches, tags and kept history still have the versions that they had. Tables that another system may write are left alone.
"""

from headwater.expiry.catalog_expiry import CatalogExpiry, ExpiryWish
from headwater.expiry.expiry_counts import ExpiryCounts
from headwater.expiry.expiry_rules import AskedRules, ExpiryRules
from headwater.expiry.expiry_task import ExpiryRequest, dry_expiry, read_expiry_request, run_expiry, submit_expiry

__all__ = [
    "AskedRules",
    "CatalogExpiry",
    "ExpiryCounts",
    "ExpiryRequest",
    "ExpiryRules",
    "ExpiryWish",
    "dry_expiry",
    "read_expiry_request",
    "run_expiry",
    "submit_expiry",
]
