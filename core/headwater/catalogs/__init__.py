"""Catalogs: their definitions, branches and tags, content, and claims on tables.

This package knows commits and what lies below them; it must not know realms' states, tasks, Spark or Kubernetes. The handle
that it is given decides which realm it works in.
"""

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.catalog_definition import (
    CatalogChanges,
    CatalogDefinition,
    CatalogFields,
    CatalogGrant,
    CatalogManager,
    CatalogRole,
    CatalogState,
    ImportSpec,
    checked_catalog_name,
)
from headwater.catalogs.catalog_gc import (
    ContentVisit,
    content_ids,
    drop_old_requests,
    finish_deletions,
    reference_names,
    reference_text,
    release_claims,
    release_name,
)
from headwater.catalogs.catalog_lifecycle import Catalogs
from headwater.catalogs.catalog_roles import CatalogAccess, CatalogRoles
from headwater.catalogs.content import (
    Content,
    ContentKey,
    ContentType,
    ContentValue,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Udf,
    content_digest,
    content_type_of,
    derive_content_id,
)
from headwater.catalogs.content_operations import (
    CONTENT,
    IDS,
    CommitPlan,
    Conflict,
    ConflictKind,
    ContentEditor,
    ContentOperation,
    Delete,
    Put,
    Unmodified,
    find_content_key,
    find_content_keys,
    plan_commit,
    stored_metadata_of,
)
from headwater.catalogs.content_pages import ContentEntry, ContentPage, TypeCounts, count_types, recount_types, token_behind
from headwater.catalogs.entry_filter import EntryExpression
from headwater.catalogs.filter_program import FilterExpression
from headwater.catalogs.history.catalog_log import CatalogLog, KeyAction, KeyChange, KeyHistory, LogFilter
from headwater.catalogs.history.catalog_merge import ContentCopies, MergeConflictError, MergeGuard, MergeResult, MergeStep
from headwater.catalogs.history.commit_meta import HEADWATER, CommitMeta, CommittedOperation, LogEntry
from headwater.catalogs.history.content_diff import ChangePage, ContentChange, DiffExpression
from headwater.catalogs.history.log_expression import LogExpression
from headwater.catalogs.history.recent_pointers import PointerState, RecentPointer, RecentPointers
from headwater.catalogs.history.ref_relation import ReferenceExpression, RefRelation
from headwater.catalogs.history.revspec import RefTarget, parse_revspec
from headwater.catalogs.history.three_way import KeyMerge, MergedKey, MergeMode, MergeOptions, MergeOutcome
from headwater.catalogs.importer.import_commit import ImportOptions, import_tables, survey_scope
from headwater.catalogs.importer.import_report import ROWS_SHOWN, ImportReport, ParquetReport, ReportRow
from headwater.catalogs.known_metadata import note_all_known
from headwater.catalogs.ref_pages import RefPage
from headwater.catalogs.registry import CATALOGS, NamedRef, RefKind, checked_ref_name, listed_definitions
from headwater.catalogs.request_log import REQUESTS, AppliedRequest, RequestKey, RequestKeyReusedError
from headwater.catalogs.stored_contents import read_contents
from headwater.catalogs.stored_metadata import read_metadata
from headwater.catalogs.table_claims import (
    CLAIMS,
    HOMES,
    PURGING,
    ClaimConflict,
    ClaimOwner,
    StoredPlaces,
    TableClaim,
    TableClaims,
    find_homes,
    normalise_location,
    stored_places,
)

__all__ = [
    "CATALOGS",
    "CLAIMS",
    "CONTENT",
    "HEADWATER",
    "HOMES",
    "IDS",
    "PURGING",
    "REQUESTS",
    "ROWS_SHOWN",
    "AppliedRequest",
    "Catalog",
    "CatalogAccess",
    "CatalogChanges",
    "CatalogDefinition",
    "CatalogFields",
    "CatalogGrant",
    "CatalogLog",
    "CatalogManager",
    "CatalogRole",
    "CatalogRoles",
    "CatalogState",
    "Catalogs",
    "ChangePage",
    "ClaimConflict",
    "ClaimOwner",
    "CommitMeta",
    "CommitPlan",
    "CommittedOperation",
    "Conflict",
    "ConflictKind",
    "Content",
    "ContentChange",
    "ContentCopies",
    "ContentEditor",
    "ContentEntry",
    "ContentKey",
    "ContentOperation",
    "ContentPage",
    "ContentType",
    "ContentValue",
    "ContentVisit",
    "Delete",
    "DeltaLakeTable",
    "DiffExpression",
    "EntryExpression",
    "FilterExpression",
    "IcebergTable",
    "IcebergView",
    "ImportOptions",
    "ImportReport",
    "ImportSpec",
    "KeyAction",
    "KeyChange",
    "KeyHistory",
    "KeyMerge",
    "LogEntry",
    "LogExpression",
    "LogFilter",
    "MergeConflictError",
    "MergeGuard",
    "MergeMode",
    "MergeOptions",
    "MergeOutcome",
    "MergeResult",
    "MergeStep",
    "MergedKey",
    "NamedRef",
    "Namespace",
    "ParquetReport",
    "PointerState",
    "Put",
    "RecentPointer",
    "RecentPointers",
    "RefKind",
    "RefPage",
    "RefRelation",
    "RefTarget",
    "ReferenceExpression",
    "ReportRow",
    "RequestKey",
    "RequestKeyReusedError",
    "StoredPlaces",
    "TableClaim",
    "TableClaims",
    "TypeCounts",
    "Udf",
    "Unmodified",
    "checked_catalog_name",
    "checked_ref_name",
    "content_digest",
    "content_ids",
    "content_type_of",
    "count_types",
    "derive_content_id",
    "drop_old_requests",
    "find_content_key",
    "find_content_keys",
    "find_homes",
    "finish_deletions",
    "import_tables",
    "listed_definitions",
    "normalise_location",
    "note_all_known",
    "parse_revspec",
    "plan_commit",
    "read_contents",
    "read_metadata",
    "recount_types",
    "reference_names",
    "reference_text",
    "release_claims",
    "release_name",
    "stored_metadata_of",
    "stored_places",
    "survey_scope",
    "token_behind",
]
