"""Conflicts in the details of errors."""

import json

import msgspec

from headwater.catalogs import Conflict, ConflictKind, ContentKey
from headwater_server.nessie.conflict_bodies import ErrorDetailsBody, conflicts_body, content_key_details

KEY = ContentKey.of("a", "b.c")


def _json(body):
    return json.loads(msgspec.json.encode(body))


def test_conflicts_are_told_by_kind_and_key():
    body = conflicts_body(
        [Conflict(ConflictKind.KEY_EXISTS, KEY, "is taken"), Conflict(ConflictKind.UNEXPECTED_HASH, None, "main has moved")]
    )

    assert _json(body) == {
        "type": "REFERENCE_CONFLICTS",
        "conflicts": [
            {"conflictType": "KEY_EXISTS", "key": {"elements": ["a", "b.c"]}, "message": "a.b\\.c: is taken"},
            {"conflictType": "UNEXPECTED_HASH", "key": None, "message": "main has moved"},
        ],
    }
    assert msgspec.convert(_json(body), ErrorDetailsBody) == body


def test_details_of_other_kinds_are_no_conflicts():
    assert conflicts_body(["a line", 1]) is None
    assert conflicts_body([]) is None


def test_missing_content_is_told_by_its_key():
    assert _json(content_key_details(KEY)) == {"type": "CONTENT_KEY", "contentKey": {"elements": ["a", "b.c"]}}
