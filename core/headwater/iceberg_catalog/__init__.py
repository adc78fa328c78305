"""Iceberg's catalog operations on one reference of a catalog: the rules that every door shares.

Keys and JSON values come in; JSON texts and Headwater's own errors come out. This package must not know HTTP, pyiceberg or any other
client library, nor workers, Spark and Kubernetes.
"""

from headwater.iceberg_catalog.branch_session import allow_all
from headwater.iceberg_catalog.lake_access import LakeAccess, hidden_catalog_error
from headwater.iceberg_catalog.lake_catalog import IcebergCatalog, LakeOptions
from headwater.iceberg_catalog.lake_commits import LakeCommits, ResolvedMerge
from headwater.iceberg_catalog.lake_contents import VersionMark
from headwater.iceberg_catalog.lake_errors import (
    AlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    PropertyClashError,
    ReadOnlyReferenceError,
)
from headwater.iceberg_catalog.lake_values import (
    KeyPage,
    LoadedTable,
    LoadedView,
    PropertyChanges,
    StagedTable,
    TableCommit,
    TableCreation,
    ViewCommit,
    ViewCreation,
)
from headwater.iceberg_catalog.reference_access import ReferenceAccess
from headwater.iceberg_catalog.table_adoption import TableAdoption, TableHome, adopt_guests, list_table_homes

__all__ = [
    "AlreadyExistsError",
    "IcebergCatalog",
    "KeyPage",
    "LakeAccess",
    "LakeCommits",
    "LakeOptions",
    "LoadedTable",
    "LoadedView",
    "NamespaceNotEmptyError",
    "NoSuchNamespaceError",
    "NoSuchTableError",
    "NoSuchViewError",
    "PropertyChanges",
    "PropertyClashError",
    "ReadOnlyReferenceError",
    "ReferenceAccess",
    "ResolvedMerge",
    "StagedTable",
    "TableAdoption",
    "TableCommit",
    "TableCreation",
    "TableHome",
    "VersionMark",
    "ViewCommit",
    "ViewCreation",
    "adopt_guests",
    "allow_all",
    "hidden_catalog_error",
    "list_table_homes",
]
