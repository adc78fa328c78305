"""Reads contents by the values that an index has of them: many at once, also of several commits."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalogs.content import Content, ContentKey, ContentValue, content_type_of, type_text, with_id
from headwater.errors import CorruptionError
from headwater.store import RealmReader, StoredObject, id_text


def read_contents(rows: RealmReader, values: Sequence[tuple[ContentKey, ContentValue]], *, catalog: str) -> list[Content]:
    """Read the contents of some keys, each with its content id, in one bulk read.

    values        what an index of this realm has at a key, or had
    catalog       its name, for messages
    raises        CorruptionError for one that is not there, or of another type than the index says
    """
    objects = rows.read_many([value.object_id for _, value in values], StoredObject)
    where = f"of catalog {catalog!r} in realm {rows.realm!r}"
    return [_checked(f"content {key} {where}", value, stored) for (key, value), stored in zip(values, objects, strict=True)]


def _checked(what: str, value: ContentValue, stored: StoredObject | None) -> Content:
    if stored is None:
        raise CorruptionError(f"{what}: object {id_text(value.object_id)} is not there")
    if not isinstance(stored, Content) or content_type_of(stored) != value.type:
        raise CorruptionError(f"{what}: {type_text(value.type)} in the index, {type(stored).__name__} stored")
    return with_id(stored, value.content_id)
