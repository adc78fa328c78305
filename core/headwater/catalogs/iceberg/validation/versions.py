"""Which format a document is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.catalogs.iceberg.validation.faults import FaultError, Weight, invalid, shown
from headwater.catalogs.iceberg.validation.fields import is_int

__all__ = ["RAW_VERSION", "Document", "is_view", "version_of"]

Document = Mapping[str, Any]

RAW_VERSION = 4
"""The table format whose specification is a draft: documents of it are kept as they are, and not judged."""


def is_view(document: Document) -> bool:
    """Also one that lacks the uuid it must have: it has versions, which no table has."""
    return "view-uuid" in document or ("table-uuid" not in document and {"versions", "current-version-id"} <= document.keys())


def version_of(document: Document) -> int:
    """The format version: 1 to 4 of a table, 1 of a view.

    raises        FaultError: there is none, or it is not read
    """
    version = document.get("format-version")
    if version is None:
        raise invalid("has no format-version")
    if not is_int(version):
        raise invalid(f"has format-version {shown(version)}, which is no integer")
    most, what = (1, "view") if is_view(document) else (RAW_VERSION, "table")
    if not 1 <= version <= most:
        raise FaultError(Weight.UNSUPPORTED, f"has the {what} format version {version}: 1 to {most} are read")
    return int(version)
