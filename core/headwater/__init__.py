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
        PrincipalInfo,
        RealmInfo,
        RoleInfo,
        RunInfo,
        StopInfo,
        TaskAttemptInfo,
        TaskInfo,
    )
    from headwater.api.catalog_client import (
        CatalogClient,
    )
    from headwater.api.catalog_policies import (
        EffectivePoliciesInfo,
        PolicyInfo,
        PolicyName,
        PolicyValueInfo,
        SnapshotRuleInfo,
    )
    from headwater.api.catalog_values import (
        CatalogInfo,
        CommitInfo,
        ContentInfo,
        DifferenceInfo,
        EntryInfo,
        ImportedTableInfo,
        Key,
        KeyHistoryInfo,
        MergeConflictInfo,
        MergedKeyInfo,
        MergeInfo,
        OperationInfo,
        RefInfo,
        TableHomeInfo,
        UnreferencedFileInfo,
    )
    from headwater.api.conflict_sides import (
        AddedSnapshotInfo,
        ConflictSideInfo,
        ConflictSidesInfo,
        SideCommitInfo,
    )
    from headwater.api.connection import (
        Connection,
        connect,
    )
    from headwater.api.declared_values import (
        ImportInfo,
        ManagerInfo,
        ReferenceRetentionInfo,
        RetentionInfo,
        ScheduleInfo,
    )
    from headwater.api.engine_infos import (
        ConfigFormInfo,
        EngineInfo,
    )
    from headwater.api.file_table_client import (
        FileTableClient,
        FileTableInfo,
        TableFileInfo,
    )
    from headwater.api.first_manifest import (
        write_first_manifest,
    )
    from headwater.api.kept_objects import (
        KeptObjectInfo,
    )
    from headwater.api.log_iterator import (
        LogIterator,
    )
    from headwater.api.manifest_work import (
        FieldDifferenceInfo,
        ManifestDifferenceInfo,
        ManifestInfo,
    )
    from headwater.api.merges import (
        MergeRefusedError,
    )
    from headwater.api.realm_client import (
        RealmClient,
    )
    from headwater.api.ref_client import (
        BranchClient,
        RefClient,
        TagClient,
    )
    from headwater.api.repairs import (
        RepairStepInfo,
    )
    from headwater.api.task_client import (
        TaskClient,
    )
    from headwater.api.task_figures import (
        TaskFiguresInfo,
    )
    from headwater.api.work_progress import (
        Observe,
        TaskProgressInfo,
    )
    from headwater.errors import (
        CollisionError,
        CommitTimeoutError,
        ConflictError,
        CorruptionError,
        ExpiredError,
        FencedError,
        HeadwaterError,
        InterruptedWorkError,
        MaintenanceStoppedError,
        NotFoundError,
        RefusedError,
        StoreFullError,
        SwapConflictError,
        UnavailableError,
        UnknownCommitError,
        UnknownOutcomeError,
    )
    from headwater.reconcile.manifests import (
        ManifestError,
    )
    from headwater.settings import (
        Settings,
    )
    from headwater.store import (
        Store,
        open_store,
    )

_HOMES = {
    "headwater.api.access_client": (
        "AccessInfo",
        "PrivilegeInfo",
        "RoleClient",
    ),
    "headwater.api.api_values": (
        "FindingInfo",
        "PrincipalInfo",
        "RealmInfo",
        "RoleInfo",
        "RunInfo",
        "StopInfo",
        "TaskAttemptInfo",
        "TaskInfo",
    ),
    "headwater.api.catalog_client": ("CatalogClient",),
    "headwater.api.catalog_policies": (
        "EffectivePoliciesInfo",
        "PolicyInfo",
        "PolicyName",
        "PolicyValueInfo",
        "SnapshotRuleInfo",
    ),
    "headwater.api.catalog_values": (
        "CatalogInfo",
        "CommitInfo",
        "ContentInfo",
        "DifferenceInfo",
        "EntryInfo",
        "ImportedTableInfo",
        "Key",
        "KeyHistoryInfo",
        "MergeConflictInfo",
        "MergeInfo",
        "MergedKeyInfo",
        "OperationInfo",
        "RefInfo",
        "TableHomeInfo",
        "UnreferencedFileInfo",
    ),
    "headwater.api.conflict_sides": (
        "AddedSnapshotInfo",
        "ConflictSideInfo",
        "ConflictSidesInfo",
        "SideCommitInfo",
    ),
    "headwater.api.connection": (
        "Connection",
        "connect",
    ),
    "headwater.api.declared_values": (
        "ImportInfo",
        "ManagerInfo",
        "ReferenceRetentionInfo",
        "RetentionInfo",
        "ScheduleInfo",
    ),
    "headwater.api.engine_infos": (
        "ConfigFormInfo",
        "EngineInfo",
    ),
    "headwater.api.file_table_client": (
        "FileTableClient",
        "FileTableInfo",
        "TableFileInfo",
    ),
    "headwater.api.first_manifest": ("write_first_manifest",),
    "headwater.api.kept_objects": ("KeptObjectInfo",),
    "headwater.api.log_iterator": ("LogIterator",),
    "headwater.api.manifest_work": (
        "FieldDifferenceInfo",
        "ManifestDifferenceInfo",
        "ManifestInfo",
    ),
    "headwater.api.merges": ("MergeRefusedError",),
    "headwater.api.realm_client": ("RealmClient",),
    "headwater.api.ref_client": (
        "BranchClient",
        "RefClient",
        "TagClient",
    ),
    "headwater.api.repairs": ("RepairStepInfo",),
    "headwater.api.task_client": ("TaskClient",),
    "headwater.api.task_figures": ("TaskFiguresInfo",),
    "headwater.api.work_progress": (
        "Observe",
        "TaskProgressInfo",
    ),
    "headwater.errors": (
        "CollisionError",
        "CommitTimeoutError",
        "ConflictError",
        "CorruptionError",
        "ExpiredError",
        "FencedError",
        "HeadwaterError",
        "InterruptedWorkError",
        "MaintenanceStoppedError",
        "NotFoundError",
        "RefusedError",
        "StoreFullError",
        "SwapConflictError",
        "UnavailableError",
        "UnknownCommitError",
        "UnknownOutcomeError",
    ),
    "headwater.reconcile.manifests": ("ManifestError",),
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
    "ConfigFormInfo",
    "ConflictError",
    "ConflictSideInfo",
    "ConflictSidesInfo",
    "Connection",
    "ContentInfo",
    "CorruptionError",
    "DifferenceInfo",
    "EffectivePoliciesInfo",
    "EngineInfo",
    "EntryInfo",
    "ExpiredError",
    "FencedError",
    "FieldDifferenceInfo",
    "FileTableClient",
    "FileTableInfo",
    "FindingInfo",
    "HeadwaterError",
    "ImportInfo",
    "ImportedTableInfo",
    "InterruptedWorkError",
    "KeptObjectInfo",
    "Key",
    "KeyHistoryInfo",
    "LogIterator",
    "MaintenanceStoppedError",
    "ManagerInfo",
    "ManifestDifferenceInfo",
    "ManifestError",
    "ManifestInfo",
    "MergeConflictInfo",
    "MergeInfo",
    "MergeRefusedError",
    "MergedKeyInfo",
    "NotFoundError",
    "Observe",
    "OperationInfo",
    "PolicyInfo",
    "PolicyName",
    "PolicyValueInfo",
    "PrincipalInfo",
    "PrivilegeInfo",
    "RealmClient",
    "RealmInfo",
    "RefClient",
    "RefInfo",
    "ReferenceRetentionInfo",
    "RefusedError",
    "RepairStepInfo",
    "RetentionInfo",
    "RoleClient",
    "RoleInfo",
    "RunInfo",
    "ScheduleInfo",
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
    "TaskAttemptInfo",
    "TaskClient",
    "TaskFiguresInfo",
    "TaskInfo",
    "TaskProgressInfo",
    "UnavailableError",
    "UnknownCommitError",
    "UnknownOutcomeError",
    "UnreferencedFileInfo",
    "__version__",
    "connect",
    "open_store",
    "write_first_manifest",
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
