"""What exports and imports of realms look like from outside."""

from __future__ import annotations

from typing import Any

from headwater.cli.fields import Field, View

__all__ = ["ARCHIVE", "LOADED"]

_HELD: tuple[Field[dict[str, Any]], ...] = (
    Field("references", "references that it has", lambda a: a["references"]),
    Field("objects", "objects that it has", lambda a: a["objects"]),
    Field(
        "types",
        "the same by type",
        lambda a: a["types"],
        inside={".<type>": "objects of this type"},
    ),
    Field("objectBytes", "bytes of these objects as they lie in a store", lambda a: a["objectBytes"]),
    Field("digest", "of all that; equal for equal realms, whatever their ids and wherever they lie", lambda a: a["digest"]),
)

ARCHIVE: View[dict[str, Any]] = View(
    "archive",
    "archives",
    (
        Field("file", "where it was written to", lambda a: a["file"]),
        Field("realm", "the realm's id", lambda a: a["realm"]),
        Field("asOf", "the moment that it shows", lambda a: a["asOf"]),
        *_HELD,
        Field("fileBytes", "size of the file", lambda a: a["fileBytes"]),
    ),
)

LOADED: View[dict[str, Any]] = View(
    "imported realm",
    "imported realms",
    (
        Field("realm", "the realm that was made", lambda a: a["realm"]),
        Field("state", "ACTIVE or INACTIVE", lambda a: a["state"]),
        Field("file", "the archive", lambda a: a["file"]),
        Field("exportedRealm", "the realm that it was made of", lambda a: a["exportedRealm"]),
        Field("asOf", "the moment that it shows", lambda a: a["asOf"]),
        *_HELD,
    ),
)
