"""The MongoDB backend: references and objects as two collections, and the splitting of scans into parts of about as many rows each.

Also creates the marker document of a store, once for all that open it at the same time.
MongoDB changes one document at a time, so a bulk call is many single changes and may be cut short between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from pymongo import DeleteMany, DeleteOne, ReplaceOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, DuplicateKeyError

from headwater.clock import Micros
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError, UnknownOutcomeError
from headwater.store.backend import (
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
    collision,
    in_chunks,
)
from headwater.store.backends.mongodb.driver_calls import EXAMPLE, OPTIONS, DriverCalls, StoreCollections, calls_of
from headwater.store.backends.mongodb.errors import duplicates
from headwater.store.backends.mongodb.row_documents import (
    OBJECT_KEY_FIELDS,
    REFERENCE_KEY_FIELDS,
    Document,
    is_row,
    object_document,
    object_id,
    object_key,
    object_position,
    object_row,
    objects_of_realm,
    parts_from,
    realm_of_references,
    reference_document,
    reference_id,
    reference_key,
    reference_position,
    reference_row,
)
from headwater.store.ids import ObjectId, RealmKey
from headwater.store.urls import BackendKind, StoreUrl

P = TypeVar("P", bound=tuple[Any, ...])
SCHEMA_VERSION = 1
_MARKER = "headwater"
_OLDEST_WIRE_VERSION = 9
"""MongoDB 4.4, which can compute fields in what a query shows."""
EXACT_ROWS = 1_000_000
"""Up to this many rows in the collection all keys are counted in its index; with more, a sample is drawn."""
_DRAWN_PER_SPLIT = 200
_FEWEST_PER_SPLIT = 20


def split_ends(
    rows: Collection[Document], within: Document, position: Callable[[Any], P], count: int, *, exact_rows: int = EXACT_ROWS
) -> list[P]:
    """The positions of the last rows of all splits but the last, ascending: up to ``count - 1``.

    within        a condition on ``_id``, empty for all rows
    position      what an ``_id`` stands for
    """
    if count < 2:
        return []
    if rows.estimated_document_count() > exact_rows:
        drawn = _drawn(rows, within, position, count)
        if len(drawn) >= _FEWEST_PER_SPLIT * count:
            return [drawn[len(drawn) * number // count] for number in range(1, count)]
    return _counted(rows, within, position, count)


def _counted(rows: Collection[Document], within: Document, position: Callable[[Any], P], count: int) -> list[P]:
    pipeline: list[Document] = [
        {"$match": within},
        {"$project": {"_id": 1}},
        {"$bucketAuto": {"groupBy": "$_id", "buckets": count, "output": {"last": {"$max": "$_id"}}}},
    ]
    return [position(bucket["last"]) for bucket in rows.aggregate(pipeline, allowDiskUse=True)][:-1]


def _drawn(rows: Collection[Document], within: Document, position: Callable[[Any], P], count: int) -> list[P]:
    """Draw positions from the whole collection, and return those that match, ascending.

    As the first stage, and for less than a twentieth of the collection, $sample uses a random cursor and does not scan the collection:
    https://www.mongodb.com/docs/manual/reference/operator/aggregation/sample/
    """
    pipeline: list[Document] = [{"$sample": {"size": _DRAWN_PER_SPLIT * count}}, {"$project": {"_id": 1}}, {"$match": within}]
    return sorted({position(row["_id"]) for row in rows.aggregate(pipeline)})


T = TypeVar("T")
_OPERATION_BYTES = 128
"""About how many bytes an operation takes on the wire in addition to a row's value."""
_TRIES = 5
_MOST = (1 << 31) - 1
"""The largest limit that the server takes."""
_HIDDEN: Document = {"x": True}
"""Marks a document that is not a row."""
_position = attrgetter("realm", "id", "part")


class MongodbBackend:
    """References and objects as two collections.

    The parts of one object are several documents, and MongoDB changes each on its own. So a document may be hidden: it keeps its key,
    but is not a row. A first part stays hidden in its place while other parts of its object may exist; the next writer of the object
    finds it and deletes them. Without it, every insertion would have to search for them.

    For the same reason a commit's objects and its reference are two calls: changing two collections at once takes a transaction, which
    needs a replica set, and a store requires no more of a database than compare-and-swap of a single row.
    """

    capabilities = Capabilities(ordered_keys=True, bulk_realm_deletion=True, parallel_scans=True)

    def __init__(self, calls: DriverCalls, *, exact_rows: int = EXACT_ROWS) -> None:
        self._calls = calls
        self._place = calls.place
        self._exact_rows = exact_rows

    def create_reference(self, row: ReferenceRow) -> None:
        document = reference_document(row)
        if not self._calls.change_one("create a reference", lambda c: _insert(c.refs, document)):
            raise SwapConflictError(f"reference {row.name!r} of realm key {row.realm} is there already")

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        taken: set[Any] = set()

        def create(chunk: Sequence[ReferenceRow]) -> None:
            documents = [reference_document(row) for row in chunk]
            failed = self._calls.change_many("create references", lambda c: _insert_many(c.refs, documents))
            taken.update(documents[at]["_id"] for at in failed)

        in_chunks(create, rows, size=_reference_bytes)
        return [reference_id(row.realm, row.name) not in taken for row in rows]

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        ids = [reference_id(realm, name) for name in names]
        documents = self._read("read references", lambda c: c.refs, ids) if ids else {}
        rows = {key: reference_row(document, self._place) for key, document in documents.items()}
        return [rows.get(key) for key in ids]

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        condition, document = _as_seen(seen), reference_document(new)
        if not self._calls.change_one("swap a reference", lambda c: c.refs.replace_one(condition, document).matched_count):
            raise _beaten(seen)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        # Objects first: MongoDB does these as separate changes, and a reference must never point to objects that are not written.
        # After a lost swap or a crash in between, unreferenced objects remain, which a collection deletes.
        self.write_objects(rows, are_new=True)
        self.swap_reference(seen, new)

    def remove_reference(self, seen: ReferenceRow) -> None:
        condition = _as_seen(seen)
        if not self._calls.change_one("remove a reference", lambda c: c.refs.delete_one(condition).deleted_count):
            raise _beaten(seen)

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        ids = [object_id(realm, number, part) for number, part in keys]
        documents = self._read("read objects", lambda c: c.objs, ids) if ids else {}
        rows = {key: object_row(document, self._place) for key, document in documents.items() if is_row(document)}
        return [rows.get(key) for key in ids]

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        # First parts come first: if the call is cut short, no other part exists without its first part, by which a later write
        # of the object, or a deletion, learns of it.
        ordered = sorted(rows, key=_position)
        write = partial(self._write_objects, are_new=are_new)
        in_chunks(write, ordered, size=_object_bytes, group=lambda row: (row.realm, row.id))

    def _write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool) -> None:
        documents = [object_document(row) for row in rows]

        def write(collections: StoreCollections) -> None:
            taken = _insert_many(collections.objs, documents)
            # Before any replacement: after a CollisionError, no row of another process was replaced.
            if taken and are_new:
                _check_equal(collections.objs, [documents[at] for at in taken], [rows[at] for at in taken])
            if taken:
                _replace(collections.objs, [rows[at] for at in taken])

        self._calls.change_many("write objects", write)

    def insert_object(self, row: ObjectRow) -> None:
        document = object_document(row)

        def insert(collections: StoreCollections) -> bool:
            if _insert(collections.objs, document):
                return True
            # A hidden document holds the key but is not a row, so it may be replaced. The condition excludes real rows.
            return bool(collections.objs.replace_one({"_id": document["_id"], **_HIDDEN}, document).matched_count)

        if not self._calls.change_one("insert an object", insert):
            raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} is there already")

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        document = object_document(row)
        condition = {"_id": document["_id"], "v": seen_token}
        if not self._calls.change_one("update an object", lambda c: c.objs.replace_one(condition, document).matched_count):
            raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} was changed by another")

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        deleted = 0

        def delete(chunk: Sequence[ObjectKey]) -> None:
            nonlocal deleted
            deleted += self._calls.change_many("delete objects", lambda c: _delete(c.objs, chunk))

        in_chunks(delete, keys, size=lambda _: _OPERATION_BYTES)
        return deleted

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        condition = _within(split, after, lambda position: reference_id(*position))
        if split.realm is not None:
            first, behind = realm_of_references(split.realm)
            condition |= {"$gte": first, "$lt": behind}
        return self._page("scan references", lambda c: c.refs, condition, REFERENCE_KEY_FIELDS, limit, reference_key)

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        condition = _within(split, after, lambda position: object_id(*position))
        if split.realm is not None:
            first, last = objects_of_realm(split.realm)
            condition |= {"$gte": first}
            condition["$lte"] = min(last, condition.get("$lte", last))
        return self._page("scan objects", lambda c: c.objs, condition, OBJECT_KEY_FIELDS, limit, object_key)

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        within = {} if realm is None else _references_of(realm)
        return self._splits("split a scan of references", lambda c: c.refs, realm, within, reference_position, count)

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        within = {} if realm is None else _objects_of(realm)
        return self._splits("split a scan of objects", lambda c: c.objs, realm, within, object_position, count)

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        def delete(collections: StoreCollections) -> int:
            # References first, so that none of them points to objects that are already deleted.
            gone = _delete_some(collections.refs, _references_of(realm), limit)
            # Hidden documents are not rows and are not counted; they are deleted with the last rows.
            rows = _objects_of(realm) | {"x": None}
            gone += _delete_some(collections.objs, rows, limit - gone) if gone < limit else 0
            if gone < limit:
                _delete_some(collections.objs, _objects_of(realm) | _HIDDEN, limit)
            return gone

        return self._calls.change_many("delete a realm's rows", delete)

    def server_time(self) -> Micros | None:
        now = self._calls.run_read("read the server's clock", lambda c: c.client.admin.command("hello").get("localTime"))
        return None if now is None else Micros(round(now.replace(tzinfo=UTC).timestamp() * 1_000_000))

    def before_fork(self) -> None:
        """Do nothing: calls of other threads go on in the parent, and do not exist in a child, which has connections of its own."""

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._calls.begin_in_child()

    def close(self) -> None:
        self._calls.close()

    def _read(
        self, what: str, place: Callable[[StoreCollections], Collection[Document]], ids: Sequence[Any]
    ) -> dict[Any, Document]:
        """Read the documents with these ids. The batch size exceeds the number of ids, so that one answer holds all of them."""

        def read(collections: StoreCollections) -> dict[Any, Document]:
            wanted = {"_id": {"$in": list(dict.fromkeys(ids))}} if len(ids) > 1 else {"_id": ids[0]}
            return {document["_id"]: document for document in place(collections).find(wanted, batch_size=len(ids) + 1)}

        return self._calls.run_read(what, read)

    def _page(
        self,
        what: str,
        place: Callable[[StoreCollections], Collection[Document]],
        condition: Document,
        fields: Any,
        limit: int,
        key: Callable[[Document, str], T],
    ) -> list[T]:
        limit = min(limit, _MOST - 1)

        def read(collections: StoreCollections) -> list[Document]:
            rows = place(collections)
            wanted: Document = {"_id": condition} if condition else {}
            if rows is collections.objs:
                wanted["x"] = None
            return list(rows.find(wanted, fields, sort=[("_id", 1)], limit=limit, batch_size=limit + 1))

        return [key(document, self._place) for document in self._calls.run_read(what, read)]

    def _splits(
        self,
        what: str,
        place: Callable[[StoreCollections], Collection[Document]],
        realm: RealmKey | None,
        within: Document,
        position: Callable[[Any, str], Any],
        count: int,
    ) -> list[ScanSplit[Any]]:
        def cut(collections: StoreCollections) -> list[Any]:
            rows, decode = place(collections), lambda key: position(key, self._place)
            return split_ends(rows, within, decode, count, exact_rows=self._exact_rows)

        ends = self._calls.run_read(what, cut)
        return [ScanSplit(realm, after, until) for after, until in zip([None, *ends], [*ends, None], strict=True)]


def _insert(rows: Collection[Document], document: Document) -> bool:
    """Insert a document. Returns False when its key is taken."""
    try:
        rows.insert_one(document)
    except DuplicateKeyError:
        return False
    return True


def _insert_many(rows: Collection[Document], documents: Sequence[Document]) -> list[int]:
    """Insert the documents whose key is free. Returns the positions of the others.

    An insertion costs the server a fraction of what a replacement with ``upsert`` does, and nearly every row is a new one.
    """
    try:
        rows.insert_many(documents, ordered=False)
    except BulkWriteError as fault:
        taken = duplicates(fault)
        if taken is None:
            raise
        return taken
    return []


def _check_equal(objs: Collection[Document], documents: Sequence[Document], rows: Sequence[ObjectRow]) -> None:
    """Raise CollisionError if a row exists under one of these keys with another type or value."""
    stored = {
        document["_id"]: document for document in objs.find({"_id": {"$in": [document["_id"] for document in documents]}})
    }
    for document, row in zip(documents, rows, strict=True):
        present = stored.get(document["_id"])
        if present is not None and is_row(present) and (present["t"], bytes(present["d"])) != (row.type, row.value):
            raise collision(row)


def _replace(objs: Collection[Document], rows: Sequence[ObjectRow]) -> None:
    """Replace rows whose keys are taken, and delete the surplus parts of their objects.

    A first part is replaced on condition that it records no more parts than the new one. If it records more, or is hidden, the upsert
    hits its key and fails: so we learn which few objects have surplus parts to delete.
    """
    failed = _upsert(objs, rows, is_first_try=True)
    for _ in range(_TRIES):
        if not failed:
            return
        rows = [rows[at] for at in failed]
        failed = _upsert(objs, rows, is_first_try=False)
        # Deleted after the replacement: a failure in between leaves surplus parts, which no reader asks for, and loses none.
        beyond = dict.fromkeys((row.realm, row.id, row.parts) for row in rows)
        objs.bulk_write([DeleteMany(parts_from(realm, number, parts)) for realm, number, parts in beyond], ordered=False)
    if failed:
        row = rows[failed[0]]
        raise UnknownOutcomeError(
            f"write objects: others write object {row.id:016x} of realm key {row.realm} all the time; some rows may be written"
        )


def _upsert(objs: Collection[Document], rows: Sequence[ObjectRow], *, is_first_try: bool) -> list[int]:
    """Upsert rows. Returns the positions that failed on a duplicate key: by their condition, or by concurrent upserts of one key.

    source        https://www.mongodb.com/docs/manual/reference/method/db.collection.update/ (Upsert with Unique Index)
    """
    documents = [object_document(row) for row in rows]
    has_condition = [is_first_try and row.part == 0 for row in rows]
    operations = [
        ReplaceOne({"_id": document["_id"]} | ({"n": {"$lte": document["n"]}} if conditional else {}), document, upsert=True)
        for document, conditional in zip(documents, has_condition, strict=True)
    ]
    try:
        objs.bulk_write(operations, ordered=False)
    except BulkWriteError as fault:
        failed = duplicates(fault)
        if failed is None:
            raise
        return failed
    return []


def _delete(objs: Collection[Document], keys: Sequence[ObjectKey]) -> int:
    """Delete rows that are unchanged. The first part of an object of several parts is hidden, and deleted when no other is left."""
    firsts = [key for key in keys if key.part == 0]
    # The condition on creation time and token keeps a row that was rewritten after the scan. ``n`` keeps the first part of an object
    # of several: it must be the last to go, because writers learn from it of the others.
    deleted = objs.bulk_write(
        [DeleteOne(_key_as_seen(key) | ({"n": 1} if key.part == 0 else {})) for key in keys], ordered=False
    ).deleted_count
    hidden = 0
    if firsts and deleted < len(keys):
        hiding = [ReplaceOne(_key_as_seen(key) | {"n": {"$gt": 1}}, _HIDDEN) for key in firsts]
        hidden = objs.bulk_write(hiding, ordered=False).matched_count
    if hidden or len(firsts) < len(keys):
        _delete_hidden(objs, dict.fromkeys((key.realm, key.id) for key in keys))
    return deleted + hidden


def _delete_hidden(objs: Collection[Document], objects: dict[tuple[RealmKey, ObjectId], None]) -> None:
    """Delete hidden first parts of objects without other parts. A concurrent writer of such an object finds and replaces it."""
    first = {object_id(realm, number, 0): parts_from(realm, number, 1) for realm, number in objects}
    hidden = [document["_id"] for document in objs.find({"_id": {"$in": list(first)}, **_HIDDEN}, {"_id": 1})]
    if not hidden:
        return
    rest = objs.find({"$or": [first[key] for key in hidden]}, {"_id": 1})
    kept = {object_id(realm, number, 0) for realm, number, _ in (object_position(row["_id"], "") for row in rest)}
    # Only if still hidden: the object may have been written again since the query above.
    gone = [DeleteOne({"_id": key, **_HIDDEN}) for key in hidden if key not in kept]
    if gone:
        objs.bulk_write(gone, ordered=False)


def _delete_some(rows: Collection[Document], condition: Document, limit: int) -> int:
    """Delete up to ``limit`` rows from the end: no part may outlive its object's first part, from which writers learn of the others."""
    count = min(limit, _MOST - 1)
    found = [row["_id"] for row in rows.find(condition, {"_id": 1}, sort=[("_id", -1)], limit=count, batch_size=count + 1)]
    return rows.delete_many({"_id": {"$in": found}}).deleted_count if found else 0


def _as_seen(seen: ReferenceRow) -> Document:
    """The condition that a reference is unchanged. In MongoDB a missing field matches None, as an absent pointer must."""
    return {"_id": reference_id(seen.realm, seen.name), "v": seen.version, "p": seen.pointer}


def _key_as_seen(key: ObjectKey) -> Document:
    return {"_id": object_id(key.realm, key.id, key.part), "c": key.created, "v": key.token}


def _beaten(seen: ReferenceRow) -> SwapConflictError:
    return SwapConflictError(f"reference {seen.name!r} of realm key {seen.realm} is not at version {seen.version} any more")


def _references_of(realm: RealmKey) -> Document:
    first, behind = realm_of_references(realm)
    return {"_id": {"$gte": first, "$lt": behind}}


def _objects_of(realm: RealmKey) -> Document:
    first, last = objects_of_realm(realm)
    return {"_id": {"$gte": first, "$lte": last}}


def _within(split: ScanSplit[Any], after: Any, key: Callable[[Any], Any]) -> Document:
    """The condition on ``_id`` for a split and a start position."""
    starts = [key(start) for start in (split.after, after) if start is not None]
    condition = {"$gt": max(starts)} if starts else {}
    return condition | ({} if split.until is None else {"$lte": key(split.until)})


def _reference_bytes(row: ReferenceRow) -> int:
    return _OPERATION_BYTES + len(row.name) * 4 + 8 * len(row.recent) + 16 * len(row.moves)


def _object_bytes(row: ObjectRow) -> int:
    return _OPERATION_BYTES + len(row.value)


def _open(url: StoreUrl, options: Mapping[str, Any], create: bool) -> MongodbBackend:
    calls = calls_of(url, options)
    try:
        calls.run_read("set up", partial(_set_up, url.shown, create))
    except BaseException:
        calls.close()
        raise
    return MongodbBackend(calls)


def _set_up(place: str, create: bool, collections: StoreCollections) -> None:
    """Check the server's version, and insert the marker if it is missing. MongoDB creates collections with their first documents."""
    hello = collections.client.admin.command("hello")
    if hello.get("maxWireVersion", 0) < _OLDEST_WIRE_VERSION:
        raise RefusedError(f"{place}: the server is too old: it has to be MongoDB 4.4 or newer")
    marker = collections.meta.find_one({"_id": _MARKER})
    if marker is None and not create:
        raise NotFoundError(f"there is no store at {place}: its database holds no Headwater collections")
    if marker is None:
        # The unique _id decides between concurrent openers: one inserts the marker, the others read it.
        try:
            collections.meta.insert_one({"_id": _MARKER, "version": SCHEMA_VERSION})
        except DuplicateKeyError:  # another process was faster
            marker = collections.meta.find_one({"_id": _MARKER})
    version = SCHEMA_VERSION if marker is None else marker.get("version")
    if type(version) is not int or version < 1:
        raise CorruptionError(
            f"{place}: the marker in collection meta has the version {version!r}, which no Headwater ever wrote"
        )
    if version > SCHEMA_VERSION:
        raise RefusedError(
            f"{place}: the database was set up by a newer Headwater (version {version}, this one knows {SCHEMA_VERSION}):"
            " upgrade this one"
        )


KIND = BackendKind(example=EXAMPLE, open=_open, options=OPTIONS)
