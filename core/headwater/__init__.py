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
    from headwater.api import (
        BranchClient,
        CatalogClient,
        CatalogInfo,
        CommitInfo,
        Connection,
        ContentInfo,
        DifferenceInfo,
        EntryInfo,
        FileTableClient,
        FindingInfo,
        KeyHistoryInfo,
        ManifestInfo,
        MergeConflictInfo,
        MergedKeyInfo,
        MergeInfo,
        MergeRefusedError,
        OperationInfo,
        PrincipalInfo,
        RealmClient,
        RealmInfo,
        RefClient,
        RefInfo,
        RoleClient,
        RoleInfo,
        RunInfo,
        StopInfo,
        TableHomeInfo,
        TagClient,
        TaskClient,
        TaskInfo,
        TaskProgressInfo,
        UnreferencedFileInfo,
        connect,
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
    "headwater.api": (
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
    ),
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
    "headwater.store": ("Store", "open_store"),
}
"""Where each name is. It is imported when it is asked for: help of the command line, and Ctrl-C in its first second, wait for none."""

__version__: str
__all__ = [
    "BranchClient",
    "CatalogClient",
    "CatalogInfo",
    "CollisionError",
    "CommitInfo",
    "CommitTimeoutError",
    "ConflictError",
    "Connection",
    "ContentInfo",
    "CorruptionError",
    "DifferenceInfo",
    "EntryInfo",
    "ExpiredError",
    "FencedError",
    "FileTableClient",
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
    "PrincipalInfo",
    "RealmClient",
    "RealmInfo",
    "RefClient",
    "RefInfo",
    "RefusedError",
    "RoleClient",
    "RoleInfo",
    "RunInfo",
    "Settings",
    "StopInfo",
    "Store",
    "StoreFullError",
    "SwapConflictError",
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
