"""The store's rows as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.catalogs.names import CatalogPart, NameKind, parse_reference
from headwater.store import ObjectKey, RealmStore, ReferenceKey
from headwater_workers.pipeline.source.batches import ROWS, Makers, Part, batch, batched, each, id_or_none
from headwater_workers.pipeline.source.dividing import catalog_names, is_wanted

__all__ = ["objects", "references"]


def objects(part: Part) -> Iterator[pa.RecordBatch]:
    """Rows of objects, without their values."""
    make: Makers[Sequence[ObjectKey]] = {"realm": _realm(part.rows), **_OBJECT}
    for some in batched(chain.from_iterable(part.rows.scan_objects(part.piece.split)), ROWS):
        yield batch(part.schema, make, some)


_OBJECT: Makers[Sequence[ObjectKey]] = {
    "id": lambda some: [f"{key.id:016x}" for key in some],
    "part": lambda some: [key.part for key in some],
    "parts": lambda some: [key.parts for key in some],
    "type": lambda some: [key.type for key in some],
    "bytes": lambda some: [key.bytes for key in some],
    "created": lambda some: [key.created for key in some],
    "is_updateable": lambda some: [key.token is not None for key in some],
}


class _Referred(NamedTuple):
    """A reference, and what its name says."""

    row: ReferenceKey
    part: CatalogPart | None
    catalog: str | None


def references(part: Part) -> Iterator[pa.RecordBatch]:
    """References, tombstones included, each with its catalog."""
    catalogs = catalog_names(part.rows)
    make: Makers[Sequence[_Referred]] = {"realm": _realm(part.rows), **_REFERENCE}
    is_any = part.request.catalog is None and "catalog" not in part.selection.among
    found = (_referred(row, catalogs) for row in part.rows.scan_references(part.piece.split))
    wanted = (one for one in found if is_any or (one.catalog and is_wanted(part.request, part.selection, one.catalog)))
    for some in batched(wanted, ROWS):
        yield batch(part.schema, make, some)


def _referred(row: ReferenceKey, catalogs: Mapping[str, str]) -> _Referred:
    part = parse_reference(row.name)
    return _Referred(row, part, None if part is None else catalogs.get(part.catalog_id))


def _realm(rows: RealmStore) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda some: pa.repeat(rows.realm, len(some))


_REFERENCE: Makers[Sequence[_Referred]] = {
    "name": each(lambda one: one.row.name),
    "catalog": each(lambda one: one.catalog),
    "kind": each(lambda one: one.part and one.part.part.value),
    "ref": each(lambda one: one.part.name if one.part is not None and isinstance(one.part.part, NameKind) else None),
    "pointer": each(lambda one: id_or_none(one.row.pointer)),
    "version": each(lambda one: one.row.version),
    "created": each(lambda one: one.row.created),
    "deleted": each(lambda one: one.row.deleted),
}
