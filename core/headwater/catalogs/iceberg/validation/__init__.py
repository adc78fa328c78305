"""Whether a metadata document is what Iceberg's specification says, and if not, exactly where.

Rules over decoded JSON, judged by the specification and by no other reader. This room must not know files, imports, catalogs or stores.
"""

from headwater.catalogs.iceberg.validation.faults import FaultError, Weight
from headwater.catalogs.iceberg.validation.maintaining import is_maintainable
from headwater.catalogs.iceberg.validation.tables import TableFacts, check_table, told_facts
from headwater.catalogs.iceberg.validation.versions import RAW_VERSION, Document, is_view, version_of
from headwater.catalogs.iceberg.validation.views import ViewFacts, check_view

__all__ = [
    "RAW_VERSION",
    "Document",
    "FaultError",
    "TableFacts",
    "ViewFacts",
    "Weight",
    "check_table",
    "check_view",
    "is_maintainable",
    "is_view",
    "told_facts",
    "version_of",
]
