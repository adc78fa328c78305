"""Archives: a realm as it was at one moment in a file, and a new realm from such a file, on any backend.

Knows what a realm's references reach and how that is kept; knows nothing of tasks but that one holds pins and can be taken over.
"""

from headwater.maintenance.archives.export_window import newest_readable, readable_from
from headwater.maintenance.archives.exporting import Exported, Order, check_order, export
from headwater.maintenance.archives.loading import Loaded, check_importable, forget_progress, load
from headwater.maintenance.archives.manifests import Checked, End, Manifest, check_archive, check_head
from headwater.maintenance.archives.snapshots import is_swept

__all__ = [
    "Checked",
    "End",
    "Exported",
    "Loaded",
    "Manifest",
    "Order",
    "check_archive",
    "check_head",
    "check_importable",
    "check_order",
    "export",
    "forget_progress",
    "is_swept",
    "load",
    "newest_readable",
    "readable_from",
]
