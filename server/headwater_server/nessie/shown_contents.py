"""What a caller sees of contents that stand in a listing, a log or a comparison: many are judged, and read, at once."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.access import SecurableKind
from headwater.catalogs import Content, ContentEntry, ContentKey, ContentType, ContentValue, Namespace, read_contents
from headwater.iceberg_catalog.lake_privileges import securable_kind
from headwater_server.nessie.nessie_session import SeenReference

KeyedValue = tuple[ContentKey, ContentValue]


def filter_entries(seen: SeenReference, entries: Sequence[ContentEntry]) -> list[ContentEntry | None]:
    """Those of some entries that the caller may list, and None for each other."""
    if seen.access is None:
        return list(entries)
    listed: set[ContentKey] = set()
    for kind in (SecurableKind.NAMESPACE, SecurableKind.TABLE, SecurableKind.VIEW):
        of_kind = [entry for entry in entries if securable_kind(entry.type) is kind]
        # not for namespaces: by their ids alone, one would be hidden on whose way something may be seen
        ids = () if kind is SecurableKind.NAMESPACE else tuple(entry.content_id for entry in of_kind)
        listed.update(seen.access.filter_listed(seen.state, kind, [entry.key for entry in of_kind], content_ids=ids))
    return [entry if entry.key in listed else None for entry in entries]


def read_shown_contents(seen: SeenReference, values: Sequence[KeyedValue]) -> list[Content | None]:
    """Read the contents that the caller may list, as far as it may read them; they may be of other commits than the one that is seen.

    returns       for each the content; a namespace whose properties it may not read has none; None for what is not shown, and for what
                  only a newer release knows
    """
    answers = [True] * len(values) if seen.references is None else seen.references.shows_each(values, seen.rights)
    shown = [pair for pair, answer in zip(values, answers, strict=True) if answer and isinstance(pair[1].type, ContentType)]
    catalog = seen.state.catalog.definition.name
    contents = iter(read_contents(seen.state.rows, shown, catalog=catalog))
    return [
        None if not isinstance(value.type, ContentType) else next(contents) if answer else _hidden(value)
        for (_, value), answer in zip(values, answers, strict=True)
    ]


def _hidden(value: ContentValue) -> Content | None:
    return Namespace(id=value.content_id) if value.type is ContentType.NAMESPACE else None
