"""Backup: a realm as it was at one moment in an archive file, and a new realm from such a file, on any backend.

Knows what a realm's references reach and how that is kept. The only things it knows about a task are that it holds pins and can be
taken over.
"""

from headwater.backup.archive_format import ArchiveEnd, ArchiveManifest, CheckedArchive, check_archive, read_archive_manifest
from headwater.backup.realm_export import (
    ExportOrder,
    ExportResult,
    check_exportable,
    export_realm,
)
from headwater.backup.realm_load import LoadResult, check_loadable, delete_load_progress, load_realm
from headwater.backup.realm_snapshot import find_present, is_sweeping, newest_readable, readable_from

__all__ = [
    "ArchiveEnd",
    "ArchiveManifest",
    "CheckedArchive",
    "ExportOrder",
    "ExportResult",
    "LoadResult",
    "check_archive",
    "check_exportable",
    "check_loadable",
    "delete_load_progress",
    "export_realm",
    "find_present",
    "is_sweeping",
    "load_realm",
    "newest_readable",
    "read_archive_manifest",
    "readable_from",
]
