"""Credentials by which clients reach the files of one table: made for a caller, for places, for a while.

This package knows storages and how each makes credentials. It knows nothing of tables, of who may do what, nor of any protocol.
"""

from headwater_server.storage_credentials.credential_vendor import CredentialVendor, credential_vendor
from headwater_server.storage_credentials.session_policy import session_policy
from headwater_server.storage_credentials.storage_grant import (
    CredentialIssuer,
    IssuedCredentials,
    RoleRefusedError,
    StorageGrant,
    session_name,
)
from headwater_server.storage_credentials.sts_issuer import StsIssuer, check_botocore

__all__ = [
    "CredentialIssuer",
    "CredentialVendor",
    "IssuedCredentials",
    "RoleRefusedError",
    "StorageGrant",
    "StsIssuer",
    "check_botocore",
    "credential_vendor",
    "session_name",
    "session_policy",
]
