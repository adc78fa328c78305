"""Iceberg tables in a file system: find them, choose their latest metadata, and separate sound tables from broken ones.

These are rules over values: listings and bytes go in, outcomes come out. This package must not know stores, indexes, commits,
catalogs, tasks or Spark. Only ``filesystem`` and ``table_storage`` touch file systems, through ``file_drivers``; ``LakeFolder``
alone deletes tables' files, ``storage_options`` reads what the owner of the process configured, and ``survey_outcomes`` has a
temporary file.
"""

from headwater.iceberg.file_drivers import is_through_link
from headwater.iceberg.file_graph import (
    FIRST_TURNS,
    LAST_TURN,
    ReachedFile,
    check_purgeable,
    purgeable_document,
    reachable_files,
)
from headwater.iceberg.filesystem import STORAGE, LakeFolder, divide_location
from headwater.iceberg.import_rules import PATH_PROPERTIES
from headwater.iceberg.inventory import InventoryPart, inventory_parts, read_inventory_part
from headwater.iceberg.layout import FileInfo, TableFiles, group_tables, is_selected
from headwater.iceberg.location import (
    canonical_location,
    comparable_location,
    is_same_place,
    is_within,
    plain_location,
    same_storage,
)
from headwater.iceberg.property_rules import check_properties, is_of_file_access
from headwater.iceberg.storage_options import ClientKey, ClientRole, StorageFile, StorageOptions, closest_options
from headwater.iceberg.survey_outcomes import (
    AcceptedTable,
    ChoiceRule,
    QuarantineCode,
    QuarantinedTable,
    RejectedTable,
    SurveyOutcome,
    TableIdentity,
    exclusive_keys,
    find_conflicts,
    identity_of,
    pack_outcome,
    unpack_outcome,
)
from headwater.iceberg.table_places import check_allowed, check_change, check_files_inside, stated_files, stated_places
from headwater.iceberg.table_storage import MissingFileError, TableStorage
from headwater.iceberg.table_survey import (
    SurveyProgress,
    SurveyResult,
    SurveyScope,
    examine_table,
    examine_table_without,
    find_tables,
    list_tables,
    survey_folder_of,
    survey_in_process,
    tables_of,
)
from headwater.iceberg.untrusted_document import parse_untrusted_table, parse_untrusted_view

__all__ = [
    "FIRST_TURNS",
    "LAST_TURN",
    "PATH_PROPERTIES",
    "STORAGE",
    "AcceptedTable",
    "ChoiceRule",
    "ClientKey",
    "ClientRole",
    "FileInfo",
    "InventoryPart",
    "LakeFolder",
    "MissingFileError",
    "QuarantineCode",
    "QuarantinedTable",
    "ReachedFile",
    "RejectedTable",
    "StorageFile",
    "StorageOptions",
    "SurveyOutcome",
    "SurveyProgress",
    "SurveyResult",
    "SurveyScope",
    "TableFiles",
    "TableIdentity",
    "TableStorage",
    "canonical_location",
    "check_allowed",
    "check_change",
    "check_files_inside",
    "check_properties",
    "check_purgeable",
    "closest_options",
    "comparable_location",
    "divide_location",
    "examine_table",
    "examine_table_without",
    "exclusive_keys",
    "find_conflicts",
    "find_tables",
    "group_tables",
    "identity_of",
    "inventory_parts",
    "is_of_file_access",
    "is_same_place",
    "is_selected",
    "is_through_link",
    "is_within",
    "list_tables",
    "pack_outcome",
    "parse_untrusted_table",
    "parse_untrusted_view",
    "plain_location",
    "purgeable_document",
    "reachable_files",
    "read_inventory_part",
    "same_storage",
    "stated_files",
    "stated_places",
    "survey_folder_of",
    "survey_in_process",
    "tables_of",
    "unpack_outcome",
]
