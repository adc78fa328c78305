"""Headwater keeps the catalogs of a data lakehouse in any database that can compare-and-swap one row, and maintains them.

    import headwater

    with headwater.connect("sqlite:///headwater.db") as store:
        for entry in store.realm("acme").catalog("lake").branch("dev").entries():
            print(entry.key)

What is in ``__all__`` is the public API, and docs/reference/python.md says how stable it is. Everything else may change in any release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.api.access_client import (
        AccessInfo,
        PrivilegeInfo,
        RoleClient,
    )
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
    from headwater.api.catalog_client import (
        BranchClient,
        CatalogClient,
        MergeRefusedError,
        RefClient,
        TagClient,
    )
    from headwater.api.catalog_policies import (
        PolicyInfo,
        SnapshotRuleInfo,
    )
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
    from headwater.api.connection import (
        Connection,
        connect,
    )
    from headwater.api.file_table_client import (
        FileTableClient,
        FileTableInfo,
        TableFileInfo,
    )
    from headwater.api.merge_sides import (
        AddedSnapshotInfo,
        ConflictSideInfo,
        ConflictSidesInfo,
        SideCommitInfo,
    )
    from headwater.api.realm_client import (
        RealmClient,
    )
    from headwater.api.repairs import (
        RepairStepInfo,
    )
    from headwater.api.task_client import (
        TaskClient,
    )
    from headwater.errors import (
        CollisionError,
        CommitTimeoutError,
        ConflictError,
        CorruptionError,
        ExpiredError,
        FencedError,
        HeadwaterError,
        MaintenanceStoppedError,
        NotFoundError,
        RefusedError,
        StoreFullError,
        SwapConflictError,
        UnavailableError,
        UnknownCommitError,
        UnknownOutcomeError,
    )
    from headwater.settings import Settings
    from headwater.store import Store, open_store

_HOMES = {
    "headwater.api.access_client": (
        "AccessInfo",
        "PrivilegeInfo",
        "RoleClient",
    ),
    "headwater.api.api_values": (
        "FindingInfo",
        "ManifestInfo",
        "PrincipalInfo",
        "RealmInfo",
        "RoleInfo",
        "RunInfo",
        "StopInfo",
        "TaskInfo",
        "TaskProgressInfo",
    ),
    "headwater.api.catalog_client": (
        "BranchClient",
        "CatalogClient",
        "MergeRefusedError",
        "RefClient",
        "TagClient",
    ),
    "headwater.api.catalog_policies": (
        "PolicyInfo",
        "SnapshotRuleInfo",
    ),
    "headwater.api.catalog_values": (
        "CatalogInfo",
        "CommitInfo",
        "ContentInfo",
        "DifferenceInfo",
        "EntryInfo",
        "KeyHistoryInfo",
        "MergeConflictInfo",
        "MergedKeyInfo",
        "MergeInfo",
        "OperationInfo",
        "RefInfo",
        "TableHomeInfo",
        "UnreferencedFileInfo",
    ),
    "headwater.api.connection": (
        "Connection",
        "connect",
    ),
    "headwater.api.file_table_client": (
        "FileTableClient",
        "FileTableInfo",
        "TableFileInfo",
    ),
    "headwater.api.merge_sides": (
        "AddedSnapshotInfo",
        "ConflictSideInfo",
        "ConflictSidesInfo",
        "SideCommitInfo",
    ),
    "headwater.api.realm_client": ("RealmClient",),
    "headwater.api.repairs": ("RepairStepInfo",),
    "headwater.api.task_client": ("TaskClient",),
    "headwater.errors": (
        "CollisionError",
        "CommitTimeoutError",
        "ConflictError",
        "CorruptionError",
        "ExpiredError",
        "FencedError",
        "HeadwaterError",
        "MaintenanceStoppedError",
        "NotFoundError",
        "RefusedError",
        "StoreFullError",
        "SwapConflictError",
        "UnavailableError",
        "UnknownCommitError",
        "UnknownOutcomeError",
    ),
    "headwater.settings": ("Settings",),
    "headwater.store": (
        "Store",
        "open_store",
    ),
}
"""Where each name is. It is imported when it is asked for: help of the command line, and Ctrl-C in its first second, wait for none."""

__version__: str
__all__ = [
    "AccessInfo",
    "AddedSnapshotInfo",
    "BranchClient",
    "CatalogClient",
    "CatalogInfo",
    "CollisionError",
    "CommitInfo",
    "CommitTimeoutError",
    "ConflictError",
    "ConflictSideInfo",
    "ConflictSidesInfo",
    "Connection",
    "ContentInfo",
    "CorruptionError",
    "DifferenceInfo",
    "EntryInfo",
    "ExpiredError",
    "FencedError",
    "FileTableClient",
    "FileTableInfo",
    "FindingInfo",
    "HeadwaterError",
    "KeyHistoryInfo",
    "MaintenanceStoppedError",
    "ManifestInfo",
    "MergeConflictInfo",
    "MergeInfo",
    "MergeRefusedError",
    "MergedKeyInfo",
    "NotFoundError",
    "OperationInfo",
    "PolicyInfo",
    "PrincipalInfo",
    "PrivilegeInfo",
    "RealmClient",
    "RealmInfo",
    "RefClient",
    "RefInfo",
    "RefusedError",
    "RepairStepInfo",
    "RoleClient",
    "RoleInfo",
    "RunInfo",
    "Settings",
    "SideCommitInfo",
    "SnapshotRuleInfo",
    "StopInfo",
    "Store",
    "StoreFullError",
    "SwapConflictError",
    "TableFileInfo",
    "TableHomeInfo",
    "TagClient",
    "TaskClient",
    "TaskInfo",
    "TaskProgressInfo",
    "UnavailableError",
    "UnknownCommitError",
    "UnknownOutcomeError",
    "UnreferencedFileInfo",
    "__version__",
    "connect",
    "open_store",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("headwater")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
