"""The public API for Python: ``headwater.connect(url)``, and the objects that it leads to.

Knows everything of the core but the command line, and keeps nothing of its own: each method is one call of the core, with ids, times and
errors as people see them. What this package exports is public, and changes only as docs/reference/python.md says.
"""

from headwater.api.access_client import RoleClient
from headwater.api.api_values import (
    FindingInfo,
    ManifestInfo,
    PrincipalInfo,
    RealmInfo,
    RoleInfo,
    RunInfo,
    StopInfo,
    TaskInfo,
    TaskProgressInfo,
)
from headwater.api.catalog_client import BranchClient, CatalogClient, MergeRefusedError, RefClient, TagClient
from headwater.api.catalog_values import (
    CatalogInfo,
    CommitInfo,
    ContentInfo,
    DifferenceInfo,
    EntryInfo,
    KeyHistoryInfo,
    MergeConflictInfo,
    MergedKeyInfo,
    MergeInfo,
    OperationInfo,
    RefInfo,
    TableHomeInfo,
    UnreferencedFileInfo,
)
from headwater.api.connection import Connection, connect
from headwater.api.file_table_client import FileTableClient
from headwater.api.realm_client import RealmClient
from headwater.api.task_client import TaskClient

__all__ = [
    "BranchClient",
    "CatalogClient",
    "CatalogInfo",
    "CommitInfo",
    "Connection",
    "ContentInfo",
    "DifferenceInfo",
    "EntryInfo",
    "FileTableClient",
    "FindingInfo",
    "KeyHistoryInfo",
    "ManifestInfo",
    "MergeConflictInfo",
    "MergeInfo",
    "MergeRefusedError",
    "MergedKeyInfo",
    "OperationInfo",
    "PrincipalInfo",
    "RealmClient",
    "RealmInfo",
    "RefClient",
    "RefInfo",
    "RoleClient",
    "RoleInfo",
    "RunInfo",
    "StopInfo",
    "TableHomeInfo",
    "TagClient",
    "TaskClient",
    "TaskInfo",
    "TaskProgressInfo",
    "UnreferencedFileInfo",
    "connect",
]
