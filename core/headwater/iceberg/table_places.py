"""The places of tables and views: where a document says that files lie, and whether it may say so. By their text, before a byte is read.

A document is the decoded JSON of a table's or view's metadata. Texts of refusals name what was asked for, and nothing of others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headwater.errors import RefusedError
from headwater.iceberg.file_drivers import is_through_link
from headwater.iceberg.import_rules import PATH_PROPERTIES
from headwater.iceberg.location import is_within, plain_location
from headwater.iceberg.metadata_json import named_files


def stated_places(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The places of a table or view as its document has them, each once: its location first, then where it writes besides.

    All of them are claimed. A text that is empty, or no text, is no place.
    """
    properties = document.get("properties")
    named = properties if isinstance(properties, Mapping) else {}
    texts = (document.get("location"), *(named.get(name) for name in PATH_PROPERTIES))
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str) and text))


def stated_files(document: Mapping[str, Any]) -> set[str]:
    """The files that a document itself names: manifest lists, manifests of version 1, and statistics; no earlier metadata files."""
    return {path for _, path in named_files(document)}


def check_allowed(places: Iterable[str], allowed: Sequence[str], *, of: str, catalog: str) -> None:
    """Check that a catalog allows these places, because a collector may one day delete files there.

    allowed       the locations of the catalog (``CatalogDefinition.places``)
    of            what is to have files there, for the message: ``table sales.orders``
    catalog       its name, for the message
    raises        RefusedError for a place that is elsewhere, is spelled in a way that drivers read differently, or is reached through
                  a link below an allowed location
    """
    for place in places:
        spelled = plain_location(place)
        if not any(is_within(spelled, outer) and not is_through_link(spelled, outer) for outer in allowed):
            raise RefusedError(
                f"{of} cannot have files at {place}: it is outside the locations that catalog {catalog!r} allows"
                f" ({', '.join(allowed) or 'none'}), or is reached through a symbolic link. Add the location to the catalog's allowed"
                " locations, or use the path without the link"
            )


def check_files_inside(files: Iterable[str], places: Collection[str], *, of: str) -> None:
    """Check that files lie in a table's own, allowed places; raises RefusedError as ``check_allowed`` does."""
    own = sorted(places)
    for file in files:
        if not any(_lies_plainly_in(file, place) for place in own):
            raise RefusedError(
                f"{of} cannot have {file}: it is outside the table's own places ({', '.join(own)}), or is reached through a symbolic"
                " link. Write it to one of them, without a link"
            )


def check_change(
    before: Mapping[str, Any] | None, after: Mapping[str, Any], allowed: Sequence[str], *, of: str, catalog: str
) -> None:
    """Check what a change brings: new places are allowed ones, and new files lie in the table's own places.

    What was there before stays: an import may have taken it from elsewhere. The places of ``after`` have to be claimed, too.

    before        the document that is changed; None: the table or view is created
    raises        RefusedError
    """
    places, files = (set(), set()) if before is None else (set(stated_places(before)), stated_files(before))
    check_allowed([place for place in stated_places(after) if place not in places], allowed, of=of, catalog=catalog)
    check_files_inside(sorted(stated_files(after) - files), {*stated_places(after), *places}, of=of)


def _lies_plainly_in(file: str, place: str) -> bool:
    """True if a file lies below a place by a plain path; the place itself, taken by an import, may have unusual spelling."""
    stem = place.rstrip("/") + "/"
    try:
        plain_location(f"s3://own/{file.removeprefix(stem)}" if file.startswith(stem) else file)
    except RefusedError:
        return False
    return is_within(file, place) and not is_through_link(file, place)
