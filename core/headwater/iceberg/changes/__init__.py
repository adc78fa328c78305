"""Changes of a table's or view's metadata document, as clients of Iceberg's REST protocol describe them.

A document and decoded updates go in, a new document comes out. Pure: times and uuids are arguments. This package must not know files,
places that a table may have, catalogs, stores or HTTP.
"""

from headwater.iceberg.changes.change_errors import ChangeFormError, RequirementFailedError, StaleSnapshotError
from headwater.iceberg.changes.commit_requirements import (
    TABLE_REQUIREMENTS,
    VIEW_REQUIREMENTS,
    TableRequirement,
    ViewRequirement,
    check_requirements,
)
from headwater.iceberg.changes.table_change import TABLE_SHAPES, TableUpdate, change_table
from headwater.iceberg.changes.table_creation import RESERVED_PROPERTIES, new_table
from headwater.iceberg.changes.update_facts import NamedPath, added_files, added_snapshots, claimed_places, moved_refs
from headwater.iceberg.changes.view_change import VIEW_SHAPES, ViewUpdate, change_view, new_view

__all__ = [
    "RESERVED_PROPERTIES",
    "TABLE_REQUIREMENTS",
    "TABLE_SHAPES",
    "VIEW_REQUIREMENTS",
    "VIEW_SHAPES",
    "ChangeFormError",
    "NamedPath",
    "RequirementFailedError",
    "StaleSnapshotError",
    "TableRequirement",
    "TableUpdate",
    "ViewRequirement",
    "ViewUpdate",
    "added_files",
    "added_snapshots",
    "change_table",
    "change_view",
    "check_requirements",
    "claimed_places",
    "moved_refs",
    "new_table",
    "new_view",
]
