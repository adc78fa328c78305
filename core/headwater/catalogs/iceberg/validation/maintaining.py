"""Whether what a document describes can be maintained by who reads only the specification."""

from __future__ import annotations

from headwater.catalogs.iceberg.validation.versions import RAW_VERSION, Document

__all__ = ["is_maintainable"]


def is_maintainable(document: Document) -> str | None:
    """Why snapshots of a table must not be expired nor its files collected; None: they may.

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
