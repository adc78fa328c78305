"""Iceberg metadata as objects: what a version of a table consists of, and how the next one shares it.

Knows commits and indexes; must not know catalogs, branches, nor where the documents come from.
"""

from headwater.catalogs.metadata.layout import piece_text
from headwater.catalogs.metadata.objects import IcebergMetadata, IcebergPiece
from headwater.catalogs.metadata.storing import read_fields, read_metadata, store_metadata

__all__ = ["IcebergMetadata", "IcebergPiece", "piece_text", "read_fields", "read_metadata", "store_metadata"]
