"""Tables as the client hands them out: the code that their properties name is run only if the client's own properties name it, too.

pyiceberg itself imports what ``write.py-location-provider.impl`` of a table says, in whichever process writes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table import CreateTableTransaction, StagedTable, Table, TableProperties, Transaction
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.typedef import EMPTY_DICT, Properties

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LakeCreation", "LakeStagedTable", "LakeTable"]

_PROVIDER = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL


class LakeTable(Table):
    def transaction(self) -> Transaction:
        return _LakeTransaction(self)

    def location_provider(self) -> LocationProvider:
        return _provider(self)


class LakeStagedTable(StagedTable):
    def location_provider(self) -> LocationProvider:
        return _provider(self)


class _LakeTransaction(Transaction):
    """pyiceberg places new files by ``table_metadata``; what is committed are the updates, and they are whole."""

    @property
    def table_metadata(self) -> TableMetadata:
        return _without_foreign_code(super().table_metadata, self._table.catalog.properties)

    def dynamic_partition_overwrite(
        self, df: pa.Table, snapshot_properties: dict[str, str] = EMPTY_DICT, branch: str | None = MAIN_BRANCH
    ) -> None:
        """raises        ValueError if the table names a location provider that the catalog's own properties do not: pyiceberg would load
        it here
        """
        if _names_foreign_code(self._table.metadata, self._table.catalog.properties):
            raise ValueError(
                f"{'.'.join(self._table.name())} has the property {_PROVIDER}, which is not run: give the catalog's own properties the"
                " same value if it is meant, or remove it from the table"
            )
        super().dynamic_partition_overwrite(df, snapshot_properties, branch)


class LakeCreation(_LakeTransaction, CreateTableTransaction):
    """The transaction of a table that is in no catalog yet."""


def _provider(table: Table) -> LocationProvider:
    metadata = _without_foreign_code(table.metadata, table.catalog.properties)
    return load_location_provider(metadata.location, metadata.properties)


def _without_foreign_code(metadata: TableMetadata, own: Properties) -> TableMetadata:
    if not _names_foreign_code(metadata, own):
        return metadata
    kept = {name: value for name, value in metadata.properties.items() if name != _PROVIDER}
    return metadata.model_copy(update={"properties": kept})


def _names_foreign_code(metadata: TableMetadata, own: Properties) -> bool:
    return metadata.properties.get(_PROVIDER) not in (None, "", own.get(_PROVIDER))
