"""The updates of views that tables do not have. The other six are those of ``table_updates``."""

from __future__ import annotations

from headwater.iceberg.changes.table_updates import MetadataUpdate
from headwater.iceberg.spec.document_shape import Int
from headwater.iceberg.spec.view_rules import ViewVersion


class AddViewVersionUpdate(MetadataUpdate, frozen=True, tag="add-view-version"):
    """``schema-id`` of the version may be -1, for the schema that the request added last."""

    view_version: ViewVersion


class SetCurrentViewVersionUpdate(MetadataUpdate, frozen=True, tag="set-current-view-version"):
    view_version_id: Int
