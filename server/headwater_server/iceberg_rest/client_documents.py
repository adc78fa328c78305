"""Documents of tables and views as clients get them: all that is stored, but for the properties that would command a client.

Engines merge a table's properties into those by which they reach files, so an imported one could have them run a module, or send their
credentials elsewhere. pyiceberg deletes old metadata files itself where a table asks for that, and other branches and tags have them.
The stored document stays as it is: a request can remove such a property by its name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headwater.iceberg.property_rules import is_of_file_access
from headwater.typed_values import json_decoder

_DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
_PROPERTIES = "properties"


class _PropertiedDocument(msgspec.Struct, frozen=True):
    """The part of a document that is looked at."""

    properties: dict[str, Any] = {}


_PROPERTIED = json_decoder(_PropertiedDocument)
_MEMBERS = json_decoder(dict[str, msgspec.Raw])


def client_text(text: bytes) -> bytes:
    """The JSON text of a document without the properties that no client should obey; mostly the text itself."""
    try:
        properties = _PROPERTIED.decode(text).properties
    except msgspec.ValidationError:
        return text  # they are no object, so nobody reads them as properties
    kept = {name: value for name, value in properties.items() if not _is_command(name, value)}
    if len(kept) == len(properties):
        return text
    members = _MEMBERS.decode(text)  # the others are handed on as they are
    return msgspec.json.encode({**members, _PROPERTIES: kept})


def _is_command(name: str, value: object) -> bool:
    """``false`` is seen: a client that wants no deletions can say so, and see that it did."""
    return is_of_file_access(name) or (name.strip().casefold() == _DELETE_AFTER_COMMIT and value != "false")
