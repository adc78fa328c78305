"""Metadata documents that somebody names by their place: read in full, judged by the specification, and told of without their content.

Whoever names a file need not be allowed to read it. So a refusal says which field of the format is at fault, and never what is there.
"""

from __future__ import annotations

import re

from headwater.errors import RefusedError
from headwater.iceberg.metadata_json import parse_metadata
from headwater.iceberg.spec import Document, FaultError, check_table, check_view, is_view
from headwater.iceberg.spec.table_rules import TableV3
from headwater.iceberg.spec.view_rules import ViewMetadata
from headwater.iceberg.survey_outcomes import RejectedTable

_FIELD = re.compile(r"has (?:no )?([a-z][a-z-]*)")
_FIELDS = frozenset(
    [*TableV3.__struct_encode_fields__, *ViewMetadata.__struct_encode_fields__, "snapshot", "ref", "schema", "format-version"]
)
"""The names at the top of both formats: what else a message begins with may be the document's own."""


def parse_untrusted_table(text: bytes, *, location: str) -> Document:
    """Parse and check a table's metadata.

    text          as ``TableStorage.read_metadata`` returns it
    raises        RefusedError that names the file and the field at fault, with nothing of the text
    """
    document = _parsed(text, location)
    if is_view(document):
        raise RefusedError(f"{location} is metadata of a view, and not of a table")
    try:
        check_table(document)
    except FaultError as fault:
        raise _refusal(fault, location, "table") from None
    return document


def parse_untrusted_view(text: bytes, *, location: str) -> Document:
    """Parse and check a view's metadata; raises as ``parse_untrusted_table`` does."""
    document = _parsed(text, location)
    if not is_view(document):
        raise RefusedError(f"{location} is no metadata of a view")
    try:
        check_view(document)
    except FaultError as fault:
        raise _refusal(fault, location, "view") from None
    return document


def _parsed(text: bytes, location: str) -> Document:
    try:
        return parse_metadata(text, path=location, size=len(text))
    except RejectedTable:  # no cause: a log would show it
        raise RefusedError(f"{location} is no JSON object, and so no metadata of a table or view") from None


def _refusal(fault: FaultError, location: str, noun: str) -> RefusedError:
    match = _FIELD.match(str(fault))
    where = f"; look at {match[1]}" if match and match[1] in _FIELDS else ""
    return RefusedError(f"{location} is no sound metadata of a {noun}: it is {fault.kind.value}{where}")
