"""The rows of a piece. Runs in the executors, and writes nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from headwater.commits import read_commit
from headwater.errors import ExpiredError, HeadwaterError, MissingError, UnreadableError
from headwater.realms import Realms
from headwater.store import Store
from headwater_workers.pipeline.source.batches import Part
from headwater_workers.pipeline.source.columns import arrow_schema
from headwater_workers.pipeline.source.conditions import Selection
from headwater_workers.pipeline.source.dividing import Piece
from headwater_workers.pipeline.source.entries import contents, entries
from headwater_workers.pipeline.source.histories import changes, commits
from headwater_workers.pipeline.source.options import Request, open_for_reading
from headwater_workers.pipeline.source.pinning import check_served, expired, read_only
from headwater_workers.pipeline.source.scans import objects, references

__all__ = ["read", "read_from"]

_TABLES = {
    "objects": objects,
    "references": references,
    "commits": commits,
    "changes": changes,
    "entries": entries,
    "contents": contents,
}


def read(request: Request, selection: Selection, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """As ``read_from``, through a connection of its own that is closed at the end."""
    if not pieces:
        return
    with open_for_reading(request.url) as store, _without_collector():
        yield from read_from(store, request, selection, pieces)


def read_from(store: Store, request: Request, selection: Selection, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """The rows of some pieces, in the columns that were asked for.

    raises        ExpiredError when a state was collected since it was pinned; MissingError and RefusedError when its realm is gone
    """
    schema = arrow_schema(request.columns)
    for piece in pieces:
        try:
            yield from _TABLES[request.table](Part(read_only(store, piece.tenant), piece, request, selection, schema))
        except (MissingError, UnreadableError) as fault:
            raise _meaning(store, piece, fault) from None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Rows are millions of small tuples and no circles: looking for circles among them takes more time than reading them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _meaning(store: Store, piece: Piece, fault: HeadwaterError) -> HeadwaterError:
    """What happened to a state that could not be read."""
    if piece.pin is None:
        return fault
    realm = Realms(store).find(piece.tenant.realm)
    if realm is None or realm.key != piece.tenant.key:
        return MissingError(f"realm {piece.tenant.realm!r} was deleted since this data frame or view was made")
    try:
        check_served(realm)
        head = read_commit(read_only(store, piece.tenant).without_cache(), piece.pin.commit)
    except ExpiredError:
        return expired(piece.pin)
    except HeadwaterError as found:
        return found
    return expired(piece.pin) if isinstance(fault, UnreadableError) and head.is_collected() else fault
