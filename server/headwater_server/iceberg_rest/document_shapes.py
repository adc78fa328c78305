"""The parts of Iceberg's own documents by name, for the OpenAPI document: the same declarations by which ``headwater.iceberg`` checks them.

Handlers pass these parts through as they came, so the models of requests and answers name them, and do not decode them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from headwater.iceberg.changes import TableRequirement, TableUpdate, ViewRequirement, ViewUpdate
from headwater.iceberg.changes.table_updates import UnboundOrder, UnboundSpec
from headwater.iceberg.spec import RAW_VERSION
from headwater.iceberg.spec.schema_rules import SingleSchema
from headwater.iceberg.spec.table_rules import TableV1, TableV2, TableV3
from headwater.iceberg.spec.view_rules import ViewMetadata, ViewVersion
from headwater_server.iceberg_rest.models import shape_of

_TABLES: Final = {1: TableV1, 2: TableV2, 3: TableV3}


def _table_metadata() -> Mapping[str, Any]:
    """A document of each version that is read; of what is a draft yet nothing is said."""
    versions = [{"allOf": [shape_of(table.__name__), _stated_version(version)]} for version, table in _TABLES.items()]
    return {"anyOf": [*versions, _stated_version(RAW_VERSION)]}


def _stated_version(version: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"format-version": {"const": version}}, "required": ["format-version"]}


DOCUMENT_SHAPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "SingleSchema": SingleSchema,
        "UnboundSpec": UnboundSpec,
        "UnboundOrder": UnboundOrder,
        "TableUpdate": TableUpdate,
        "TableRequirement": TableRequirement,
        "TableMetadata": _table_metadata(),
        **{table.__name__: table for table in _TABLES.values()},
        "ViewVersion": ViewVersion,
        "ViewUpdate": ViewUpdate,
        "ViewRequirement": ViewRequirement,
        "ViewMetadata": ViewMetadata,
    }
)
