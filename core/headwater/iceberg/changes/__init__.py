"""Changes of a table's or view's metadata document, as clients of Iceberg's REST protocol describe them.

A document and decoded updates go in, a new document comes out. Pure: times and uuids are arguments. This package must not know files,
places that a table may have, catalogs, stores or HTTP.
"""

from headwater.iceberg.changes.change_errors import ChangeFormError, RequirementFailedError, StaleSnapshotError

__all__ = ["ChangeFormError", "RequirementFailedError", "StaleSnapshotError"]
