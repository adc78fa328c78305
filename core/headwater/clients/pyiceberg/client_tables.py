"""Tables as the client hands them out: the code that their properties name is run only if the client's own properties name it, too.

pyiceberg itself imports what ``write.py-location-provider.impl`` of a table says, in whichever process writes to it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol, cast

from pyiceberg.table import CreateTableTransaction, StagedTable, Table, TableProperties, Transaction
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import SetLocationUpdate, SetPropertiesUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Properties

from headwater.iceberg import PATH_PROPERTIES

if TYPE_CHECKING:
    import pyarrow as pa


_PROVIDER = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL


class ChecksPlaces(Protocol):
    """What these tables ask of their catalog."""

    def check_places(self, table: Table, places: Collection[str]) -> None:
        """Check that a table may have these further places."""


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

    def _apply(self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()) -> Transaction:
        """raises        ValidationException for new places that are taken: what follows writes files there, before the commit"""
        new = _places_in(updates) - set(table_places(self._table.metadata))
        if new:
            cast(ChecksPlaces, self._table.catalog).check_places(self._table, new)
        return super()._apply(updates, requirements)

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


def table_places(metadata: TableMetadata) -> tuple[str, ...]:
    """The places for files of a table: its location first."""
    return (metadata.location, *(metadata.properties[name] for name in PATH_PROPERTIES if metadata.properties.get(name)))


def _places_in(updates: tuple[TableUpdate, ...]) -> set[str]:
    """The places that updates give a table."""
    set_ = [update.updates for update in updates if isinstance(update, SetPropertiesUpdate)]
    paths = {properties[name] for properties in set_ for name in PATH_PROPERTIES if properties.get(name)}
    return paths | {update.location for update in updates if isinstance(update, SetLocationUpdate)}


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
