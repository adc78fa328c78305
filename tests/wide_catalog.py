"""A catalog with a namespace of so many tables between small ones, written as one commit; and a backend that counts what is read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from faulty_backend import FaultyBackend
from headwater.catalogs import CONTENT, Catalog, ContentKey, ContentType, ContentValue, Namespace
from headwater.catalogs.registry import RefKind, content_reference
from headwater.commits import Commit
from headwater.index import IndexLimits, NewIndex
from headwater.store import RealmStore

BIG, SMALL = ContentKey.of("m"), ContentKey.of("z")
BESIDE = [ContentKey.of(f"n{number}") for number in range(20)]
UNIQUE = UUID(int=7)


class CountingBackend(FaultyBackend):
    """Counts the objects that are asked for."""

    objects = 0

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        if name == "read_objects":
            self.objects += len(arguments[1])
        return super()._call(name, *arguments, **named)


def fill(rows: RealmStore, catalog: Catalog, tables: int) -> None:
    """Put a namespace with so many tables between others, as one commit without its operations."""
    [object_id] = rows.new_ids(1)
    values = {
        kind: bytes(ContentValue(kind, UNIQUE, bytes(16), object_id).to_value().data)
        for kind in (ContentType.NAMESPACE, ContentType.ICEBERG_TABLE)
    }
    spaces = [BIG, SMALL, *BESIDE]
    data = {key.to_index(): values[ContentType.NAMESPACE] for key in spaces}
    data |= {key.child("t").to_index(): values[ContentType.ICEBERG_TABLE] for key in (SMALL, *BESIDE)}
    prefix = BIG.child_prefix()
    data |= {prefix + b"t%07d" % number: values[ContentType.ICEBERG_TABLE] for number in range(tables)}
    limits = IndexLimits(embedded_bytes=rows.settings.index_embedded_bytes, stripe_bytes=rows.settings.index_stripe_bytes)
    stored = NewIndex(data, dict.fromkeys(data, object_id)).stored(rows.new_ids, limits)
    [commit_id] = rows.new_ids(1)
    commit = Commit(
        seq=1, time=rows.clock.now(), properties={"catalog": catalog.definition.id}, indexes={CONTENT: stored.container}
    )
    rows.write_objects([(object_id, Namespace()), *stored.objects, (commit_id, commit)])
    main = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
    rows.advance_reference(rows.read_reference(main, fresh=True), commit_id)
