"""The format of a document, and whether a program that reads only the specification may maintain its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.iceberg.spec.document_shape import FaultError, FaultKind, Int, invalid, is_of, shown_value

Document = Mapping[str, Any]

RAW_VERSION = 4
"""The table format whose specification is a draft: documents of it are kept as they are, and not judged."""


def is_view(document: Document) -> bool:
    """True for a view, even without its required uuid: it has versions, which no table has."""
    return "view-uuid" in document or ("table-uuid" not in document and {"versions", "current-version-id"} <= document.keys())


def version_of(document: Document) -> int:
    """The format version: 1 to 4 for a table, 1 for a view.

    raises        FaultError: it is absent or not supported
    """
    version = document.get("format-version")
    if version is None:
        raise invalid("has no format-version")
    if not is_of(version, Int):
        raise invalid(f"has format-version {shown_value(version)}, which is not an integer")
    most, what = (1, "view") if is_view(document) else (RAW_VERSION, "table")
    if not 1 <= version <= most:
        raise FaultError(FaultKind.UNSUPPORTED, f"has the {what} format version {version}: 1 to {most} are read")
    return int(version)


def is_maintainable(document: Document) -> str | None:
    """Why snapshots of a table must not be expired nor its files collected; None if they may.

    document      one that was read, of any version
    """
    if document.get("format-version") == RAW_VERSION:
        return f"its format version {RAW_VERSION} is a draft: which files it refers to cannot be told yet"
    if document.get("encryption-keys"):
        return "it is encrypted: its manifests cannot be read without its keys"
    snapshots = document.get("snapshots")
    for snapshot in snapshots if isinstance(snapshots, list) else ():
        if isinstance(snapshot, dict) and snapshot.get("key-id") is not None:
            return f"its snapshot {snapshot.get('snapshot-id')} is encrypted: its manifests cannot be read without its key"
    return None
