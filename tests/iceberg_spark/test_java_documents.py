"""Documents that Headwater writes or stores, read by the parsers of Iceberg's Java library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from spark_sql import SparkSql

from document_recorder import FOLDER_VARIABLE
from headwater.iceberg.changes import ChangeFormError, StaleSnapshotError
from headwater.iceberg.spec import is_view
from headwater.iceberg_catalog.lake_contents import encoded_document
from tiers import IS_SOAK
from whole_documents import REQUESTS, places_in, with_value, without

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]
FOLDERS = ("catalogs_import", "catalogs_metadata", "iceberg_catalog", "iceberg_rest", "nessie", "pipeline")
SAMPLE = (
    "catalogs_import/test_imported_documents.py",
    "catalogs_import/test_imports.py",
    "iceberg_catalog/test_lake_tables.py",
    "iceberg_catalog/test_lake_views.py",
    "iceberg_rest/test_client_documents.py",
    "iceberg_rest/test_rest_changes.py",
    "iceberg_rest/test_rest_pyiceberg.py",
    "iceberg_rest/test_rest_tables.py",
    "iceberg_rest/test_rest_views.py",
    "iceberg_rest/test_table_bodies.py",
    "nessie/test_nessie_commits.py",
    "nessie/test_nessie_contents.py",
)
"""Tests of all ways by which documents come in; a soak takes the folders."""
READ_VERSIONS = (1, 2, 3)
VALUES: list[Any] = [
    None,
    -1,
    0,
    5,
    2**31 - 1,
    2**40,
    1.0,
    True,
    "",
    "x",
    [],
    {},
    [None],
    [1],
    ["x"],
    [{}],
    {"a": None},
    {"a": 1},
]


class JavaParsers:
    def __init__(self, sql: SparkSql) -> None:
        self._tables = sql.java_class("org.apache.iceberg.TableMetadataParser")
        self._views = sql.java_class("org.apache.iceberg.view.ViewMetadataParser")

    def fault_of(self, text: bytes, document: dict[str, Any]) -> str | None:
        """What the library says against a document; None: it reads it."""
        try:
            if is_view(document):
                self._views.fromJson(text.decode())
            else:
                self._tables.fromJson("file:///lake/v1.metadata.json", text.decode())
        except Py4JJavaError as error:
            return str(error.java_exception)
        return None


@pytest.fixture
def parsers(sql: SparkSql) -> JavaParsers:
    return JavaParsers(sql)


@pytest.mark.parametrize("kind", REQUESTS)
def test_java_reads_what_any_accepted_field_leads_to(kind: str, parsers: JavaParsers) -> None:
    make, request = REQUESTS[kind]
    places = [place for place in places_in(request) if place[-1] != "action"]
    requests = [(place, value, with_value(request, place, value)) for place in places for value in VALUES]
    requests += [(place, "absent", without(request, place)) for place in places if kind[:6] == "update" or len(place) > 1]
    faults, accepted = [], 0
    for place, value, changed in requests:
        try:
            document = make(changed)
        except (ChangeFormError, StaleSnapshotError):
            continue
        accepted += 1
        text = encoded_document(document)
        fault = parsers.fault_of(text, document)
        if fault is not None:
            faults.append(f"{'.'.join(map(str, place))} {value!r}: {fault}")

    assert faults == []
    assert accepted > len(places)


@pytest.mark.timeout(1800)
def test_java_reads_every_document_that_tests_write(parsers: JavaParsers, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    options = ["-q", "-p", "no:randomly", "-p", "document_recorder", "-m", "not long", f"--basetemp={tmp_path / 'tests'}"]
    selected = [str(TESTS / name) for name in (FOLDERS if IS_SOAK else SAMPLE)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *selected],
        check=False,
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env={**os.environ, FOLDER_VARIABLE: str(folder), "PYTHONPATH": str(TESTS)},
    )
    assert run.returncode == 0, run.stdout[-3000:]

    texts = [path.read_bytes() for path in sorted(folder.iterdir())]
    documents = [(text, json.loads(text)) for text in texts]
    read = [(text, document) for text, document in documents if document.get("format-version") in READ_VERSIONS]
    faults = [f"{fault}: {text[:300]!r}" for text, document in read if (fault := parsers.fault_of(text, document))]

    assert faults == []
    assert len(read) > 300
