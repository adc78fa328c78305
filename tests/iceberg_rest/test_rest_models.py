"""Which bodies and queries are understood, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import RefusedError
from headwater_server.iceberg_rest.models import (
    CommitTableRequest,
    CommitTransactionRequest,
    CreateTableRequest,
    DropTableQuery,
    LoadTableQuery,
    NamespacesQuery,
    RenameTableRequest,
)
from headwater_server.json_body import convert_body, convert_query

IDENTIFIER = {"namespace": ["sales"], "name": "orders"}


def test_unknown_fields_are_ignored() -> None:
    body = {"name": "t", "schema": {"type": "struct", "fields": []}, "stage-create": True, "from-the-future": {"x": 1}}

    assert convert_body(body, CreateTableRequest).stage_create is True


def test_field_that_is_null_is_a_field_left_out() -> None:
    body = {"name": "t", "schema": {}, "location": None, "partition-spec": None, "write-order": None, "properties": None}

    assert convert_body(body, CreateTableRequest) == convert_body({"name": "t", "schema": {}}, CreateTableRequest)


@pytest.mark.parametrize(
    ("body", "kind", "path"),
    [
        ({"updates": []}, CommitTableRequest, "requirements"),
        ({"updates": [], "requirements": None}, CommitTableRequest, "requirements"),
        ({"updates": [1], "requirements": []}, CommitTableRequest, "updates[0]"),
        ({"table-changes": []}, CommitTransactionRequest, "table-changes"),
        ({"table-changes": [{"updates": [], "requirements": []}]}, CommitTransactionRequest, "table-changes[0]"),
        ({"source": IDENTIFIER, "destination": {"namespace": [], "name": "t"}}, RenameTableRequest, "destination.namespace"),
    ],
)
def test_wrong_element_is_named_with_its_path(body: Any, kind: Any, path: str) -> None:
    with pytest.raises(RefusedError) as fault:
        convert_body(body, kind)

    assert path in str(fault.value)


def test_queries_are_read_from_text() -> None:
    assert convert_query({"purgeRequested": "True"}, DropTableQuery).purge_requested is True
    assert convert_query({"pageToken": "", "pageSize": "7"}, NamespacesQuery) == NamespacesQuery(page_token="", page_size=7)
    assert convert_query({"referenced-by": "a,b"}, LoadTableQuery).snapshots == "all"


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ({"pageSize": "0"}, NamespacesQuery),
        ({"snapshots": "some"}, LoadTableQuery),
        ({"purgeRequested": "maybe"}, DropTableQuery),
    ],
)
def test_impossible_query_names_its_parameter(query: dict[str, str], kind: Any) -> None:
    with pytest.raises(RefusedError, match=next(iter(query))):
        convert_query(query, kind)
