"""The rules of Iceberg's specification for metadata documents, each violation with its exact place.

``document_shape`` checks values against declared records: each record stands once, with the rules about its fields beside it. The
rules judge decoded JSON by the specification alone. This package must not know files, imports, catalogs or stores.
"""

from headwater.iceberg.spec.document_shape import (
    RAW_VERSION,
    Document,
    FaultError,
    FaultKind,
    is_maintainable,
    is_view,
    version_of,
)
from headwater.iceberg.spec.table_rules import TableFacts, check_table, stated_facts
from headwater.iceberg.spec.view_rules import ViewFacts, check_view

__all__ = [
    "RAW_VERSION",
    "Document",
    "FaultError",
    "FaultKind",
    "TableFacts",
    "ViewFacts",
    "check_table",
    "check_view",
    "is_maintainable",
    "is_view",
    "stated_facts",
    "version_of",
]
