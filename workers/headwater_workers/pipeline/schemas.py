"""The columns of the data frames of an import."""

from __future__ import annotations

__all__ = ["FOLDERS", "OUTCOME", "TABLES"]

FILE = "struct<path: string, size: bigint, mtime: bigint>"

FOLDERS = "location string, folder string"
"""Where to look; one row per folder that can be surveyed on its own."""

TABLES = (
    "array<struct<directory: string, key: array<string>, metadata: array<" + FILE + ">, hint: " + FILE + ","
    " leftovers: bigint, has_delta_log: boolean>>"
)
"""What lies in the table directories of one folder (``TableFiles``); ``hint`` may be null. Unique by ``directory`` over all folders."""

OUTCOME = (
    "struct<directory: string, key: array<string>, metadata_location: string, uuid: string, format_version: int, snapshot_id: bigint,"
    " schema_id: bigint, spec_id: bigint, sort_order_id: bigint, log: array<string>, rule: string, evidence: array<string>,"
    " code: string, message: string>"
)
"""One outcome: ``code`` and ``message`` for a quarantined table, the other columns for one that was found."""
