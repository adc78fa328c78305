"""Schemathesis, which makes requests from the OpenAPI document that the server serves, valid ones and others, and judges the answers.

No request may be answered 5xx, nor with a status, a type of content, a header or a body that the document does not declare. Each run
sends the same requests. Chains of operations are not tried: there Schemathesis 4.32 writes a ``?`` from an answer into the next path
as it is. A long run takes the number of requests for each operation, and a seed, from the environment:

    HEADWATER_CONTRACT_EXAMPLES=500 HEADWATER_CONTRACT_SEED=7 pytest tests/iceberg_rest/test_rest_contract.py -m long -s --timeout 0
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rest_caller import RestCaller

from headwater import Store
from rest_server import serve_store

pytestmark = pytest.mark.long

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    "default-namespace": ["sales"],
}
NAMES = """
[dictionaries.prefixes]
values = ["acme~lake", "acme~lake~main", "acme~lake~main~0"]
[dictionaries.namespaces]
values = ["sales", "sales\\u001feu"]
[dictionaries.names]
values = ["orders", "recent"]
[dictionaries.warehouses]
values = ["acme/lake", "acme/lake@main"]
[parameters]
"path.prefix" = { dictionary = "prefixes", probability = 0.9 }
"path.namespace" = { dictionary = "namespaces", probability = 0.8 }
"path.table" = { dictionary = "names", probability = 0.8 }
"path.view" = { dictionary = "names", probability = 0.8 }
"query.warehouse" = { dictionary = "warehouses", probability = 0.7 }
"""
"""Names of what is there, so that most paths lead somewhere."""


@pytest.fixture
def filled(sales: RestCaller) -> RestCaller:
    for path, body in (
        ("namespaces", {"namespace": ["sales", "eu"]}),
        ("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}),
        ("namespaces/sales%1Feu/tables", {"name": "orders", "schema": SCHEMA}),
        ("namespaces/sales/views", {"name": "recent", "schema": SCHEMA, "view-version": VERSION}),
    ):
        assert sales.post(path, body).status == 200
    return sales


@pytest.mark.rare(3)
@pytest.mark.usefixtures("filled")
def test_server_answers_as_its_document_says(store: Store, tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text(NAMES, encoding="utf-8")
    examples, seed = os.environ.get("HEADWATER_CONTRACT_EXAMPLES"), os.environ.get("HEADWATER_CONTRACT_SEED", "1")
    chance = ["--seed", seed, "--generation-database", "none"] if examples else ["--generation-deterministic"]
    with serve_store(store) as url:
        run = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("st")), "--config-file", str(tmp_path / "names.toml")),
                *("run", f"{url}/openapi.json", "--phases", "coverage,fuzzing", "--max-examples", examples or "2"),
                *(*chance, "--checks", ",".join(CHECKS), "--no-shrink", "--continue-on-failure"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"Selected: (\d+)/\1\s+Tested: \1\s", run.stdout), run.stdout
