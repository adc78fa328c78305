"""What catalogs hold: definitions, branches and tags, content committed by rules, claims on tables.

Knows commits and what lies below them; must not know realms' states, tasks, Spark or Kubernetes. Which realm it works in is decided by
the handle that it is given.
"""

from headwater.catalogs.branches import NamedReference
from headwater.catalogs.catalog import Catalog
from headwater.catalogs.catalogs import Catalogs
from headwater.catalogs.claims import CLAIMS, PURGING, Claim, ClaimConflict, Claims, Owner, normalise_location
from headwater.catalogs.collecting import (
    ContentVisit,
    ListedReference,
    content_ids,
    reference_names,
    reference_text,
    release_claims,
    release_name,
)
from headwater.catalogs.content.applying import put_copy
from headwater.catalogs.content.counting import TypeCounts, count_types, recount_types
from headwater.catalogs.content.indexes import CONTENT, IDS, ContentEditor, key_of, metadata_of
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Conflict, ConflictKind, Delete, Operation, Plan, Put, Unmodified, Write
from headwater.catalogs.content.pages import Entry, Page
from headwater.catalogs.content.planning import plan_commit
from headwater.catalogs.content.types import (
    Content,
    ContentType,
    ContentValue,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Udf,
    content_digest,
    content_type_of,
)
from headwater.catalogs.definitions import (
    CatalogChanges,
    CatalogDefinition,
    CatalogFields,
    CatalogManager,
    CatalogState,
    ImportSpec,
    checked_catalog_name,
)
from headwater.catalogs.history.comparing import Change, ChangePage
from headwater.catalogs.history.filtering import CatalogLog, LogFilter
from headwater.catalogs.history.following import KeyAction, KeyChange, KeyHistory
from headwater.catalogs.history.log import CommittedOperation, LogEntry
from headwater.catalogs.history.merging import (
    KeyMerge,
    MergeConflictError,
    MergedKey,
    MergeMode,
    MergeOptions,
    MergeOutcome,
    MergeResult,
    MergeStep,
)
from headwater.catalogs.history.meta import HEADWATER, CommitMeta
from headwater.catalogs.history.references import parse_reference_text
from headwater.catalogs.importing.committing import ImportOptions, import_tables, scope_of
from headwater.catalogs.importing.parquet import ParquetReport
from headwater.catalogs.importing.reports import ROWS_SHOWN, ImportReport, ReportRow
from headwater.catalogs.known_metadata import note_all_known
from headwater.catalogs.metadata import read_metadata
from headwater.catalogs.names import CATALOGS, NameKind, checked_name
from headwater.catalogs.stored_places import StoredPlaces, stored_places

__all__ = [
    "CATALOGS",
    "CLAIMS",
    "CONTENT",
    "HEADWATER",
    "IDS",
    "PURGING",
    "ROWS_SHOWN",
    "Catalog",
    "CatalogChanges",
    "CatalogDefinition",
    "CatalogFields",
    "CatalogLog",
    "CatalogManager",
    "CatalogState",
    "Catalogs",
    "Change",
    "ChangePage",
    "Claim",
    "ClaimConflict",
    "Claims",
    "CommitMeta",
    "CommittedOperation",
    "Conflict",
    "ConflictKind",
    "Content",
    "ContentEditor",
    "ContentKey",
    "ContentType",
    "ContentValue",
    "ContentVisit",
    "Delete",
    "DeltaLakeTable",
    "Entry",
    "IcebergTable",
    "IcebergView",
    "ImportOptions",
    "ImportReport",
    "ImportSpec",
    "KeyAction",
    "KeyChange",
    "KeyHistory",
    "KeyMerge",
    "ListedReference",
    "LogEntry",
    "LogFilter",
    "MergeConflictError",
    "MergeMode",
    "MergeOptions",
    "MergeOutcome",
    "MergeResult",
    "MergeStep",
    "MergedKey",
    "NameKind",
    "NamedReference",
    "Namespace",
    "Operation",
    "Owner",
    "Page",
    "ParquetReport",
    "Plan",
    "Put",
    "ReportRow",
    "StoredPlaces",
    "TypeCounts",
    "Udf",
    "Unmodified",
    "Write",
    "checked_catalog_name",
    "checked_name",
    "content_digest",
    "content_ids",
    "content_type_of",
    "count_types",
    "import_tables",
    "key_of",
    "metadata_of",
    "normalise_location",
    "note_all_known",
    "parse_reference_text",
    "plan_commit",
    "put_copy",
    "read_metadata",
    "recount_types",
    "reference_names",
    "reference_text",
    "release_claims",
    "release_name",
    "scope_of",
    "stored_places",
]
