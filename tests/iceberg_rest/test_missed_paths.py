"""What a client is told whose URI or prefix is almost right."""

from __future__ import annotations

import pytest

from headwater_server.iceberg_rest.iceberg_routes import iceberg_table
from headwater_server.request_target import path_segments


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/config", "ends in /iceberg"),
        ("/iceberg/v1/v1/config", "ends in /iceberg"),
        ("/iceberg/iceberg/v1/config", "ends in /iceberg"),
        ("/iceberg//v1/config", "ends in /iceberg"),
        ("/iceberg/v1/config/", "ends in /iceberg"),
        ("/v1/acme~lake/namespaces/sales/tables/orders", "ends in /iceberg"),
        ("/", "ends in /iceberg"),
        ("/iceberg", "ends in /iceberg"),
        ("/iceberg/v1/namespaces", "REALM~CATALOG"),
        ("/v1/namespaces/sales/tables", "REALM~CATALOG"),
        ("/iceberg/v1/acme/lake/namespaces/sales", "REALM~CATALOG"),
    ],
)
def test_path_that_is_almost_right_is_explained(path: str, words: str) -> None:
    segments = path_segments(path.encode())
    table = iceberg_table()

    assert table.find(segments) is None
    assert words in (table.advice(segments) or "")


@pytest.mark.parametrize(
    "path", ["*", "/favicon.ico", "/nessie/acme/lake/api/v2", "/iceberg/v1/acme~lake/namespaces/a/tables/t/plan"]
)
def test_path_of_something_else_is_not_explained(path: str) -> None:
    assert iceberg_table().advice(path_segments(path.encode())) is None
