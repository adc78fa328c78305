"""Iceberg tables lying in a file system: finding them, choosing their latest metadata, and telling sound ones from broken ones.

Rules over values: listings and bytes in, outcomes out. This room must not know catalogs, stores, tasks or Spark; only
``systems`` touches a file system (and deletes for ``folders`` alone), and ``spilling`` a temporary file.
"""

from headwater.catalogs.iceberg.folders import Folder
from headwater.catalogs.iceberg.grouping import File, TableFiles, group, is_selected
from headwater.catalogs.iceberg.import_rules import PATH_PROPERTIES
from headwater.catalogs.iceberg.inventory import Part, parts_of, read_part
from headwater.catalogs.iceberg.judging import judge, traits_of
from headwater.catalogs.iceberg.locations import canonical, comparable, is_same_place, is_within, plain_location, same_storage
from headwater.catalogs.iceberg.outcomes import (
    Found,
    Outcome,
    QuarantineCode,
    Quarantined,
    Rule,
    Sketch,
    UnfitError,
    pack,
    sketch_of,
    unpack,
)
from headwater.catalogs.iceberg.reaching import FIRST_TURNS, LAST_TURN, Reached, check_purgeable, purgeable_document, reach
from headwater.catalogs.iceberg.storage import STORAGE, divide
from headwater.catalogs.iceberg.surveying import (
    Progress,
    Scope,
    Surveyed,
    examine,
    examine_without,
    find_tables,
    folder_of,
    list_tables,
    survey_in_process,
    tables_of,
)
from headwater.catalogs.iceberg.systems import is_through_link

__all__ = [
    "FIRST_TURNS",
    "LAST_TURN",
    "PATH_PROPERTIES",
    "STORAGE",
    "File",
    "Folder",
    "Found",
    "Outcome",
    "Part",
    "Progress",
    "QuarantineCode",
    "Quarantined",
    "Reached",
    "Rule",
    "Scope",
    "Sketch",
    "Surveyed",
    "TableFiles",
    "UnfitError",
    "canonical",
    "check_purgeable",
    "comparable",
    "divide",
    "examine",
    "examine_without",
    "find_tables",
    "folder_of",
    "group",
    "is_same_place",
    "is_selected",
    "is_through_link",
    "is_within",
    "judge",
    "list_tables",
    "pack",
    "parts_of",
    "plain_location",
    "purgeable_document",
    "reach",
    "read_part",
    "same_storage",
    "sketch_of",
    "survey_in_process",
    "tables_of",
    "traits_of",
    "unpack",
]
