"""Lakes in an object store that has no driver here, so that pyarrow's client reads them: a server that speaks S3's protocol."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable, SurveyScope, divide_location, survey_in_process
from headwater.iceberg.filesystem import STORAGE
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.survey_outcomes import RejectedTable
from servers.s3 import access_to, s3_server

Put = Callable[[str, bytes], None]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A URL."""
    with s3_server() as url:
        yield url


@pytest.fixture
def put(server: str, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Writes an object of the bucket ``lake``."""
    for name, value in access_to(server).items():
        monkeypatch.setenv(name, value)
    system, _ = pyarrow.fs.FileSystem.from_uri("s3://lake?allow_bucket_creation=true")
    system.create_dir("lake")

    def put(path: str, data: bytes) -> None:
        with system.open_output_stream(f"lake/{path}") as stream:
            stream.write(data)

    return put


def sound(document: dict[str, Any], location: str) -> bytes:
    text = json.dumps(document).replace("s3://lake/sales/orders", location)
    return text.encode()


def test_tables_in_a_bucket_are_found_by_either_name(put: Put, document: dict[str, Any]) -> None:
    put("one/sales/orders/metadata/v1.metadata.json", sound(document, "s3a://lake/one/sales/orders"))
    put("one/sales/broken/metadata/v1.metadata.json", b"{")
    put("one/web/views/metadata/v1.gz.metadata.json", gzip.compress(sound(document, "s3://lake/one/web/views")))

    found = {
        ".".join(outcome.key): outcome
        for outcome in survey_in_process(SurveyScope(locations=["s3://lake/one"], allowed=["s3://lake"]).checked())
    }

    assert list(found) == ["sales.broken", "sales.orders", "web.views"]
    assert isinstance(found["sales.broken"], QuarantinedTable)
    assert found["sales.broken"].code is QuarantineCode.CORRUPT
    assert isinstance(found["web.views"], QuarantinedTable)
    assert found["web.views"].code is QuarantineCode.DUPLICATE_UUID


def test_names_that_urls_encode_are_read_in_a_bucket(put: Put, document: dict[str, Any]) -> None:
    for name in ("with space", "50%20", "a#b?c", "<é>"):
        put(f"odd/{name}/metadata/v1.metadata.json", sound(document, f"s3://lake/odd/{name}"))

    outcomes = list(survey_in_process(SurveyScope(locations=["s3://lake/odd"], allowed=["s3://lake"]).checked()))

    assert sorted(outcome.key[-1] for outcome in outcomes) == ["50%20", "<é>", "a#b?c", "with space"]
    assert {outcome.code for outcome in outcomes if isinstance(outcome, QuarantinedTable)} == {QuarantineCode.DUPLICATE_UUID}


def test_missing_bucket_is_told_with_what_to_do(put: Put) -> None:
    with pytest.raises(NotFoundError, match="there is no folder s3://none/t: correct the import's locations"):
        list(survey_in_process(SurveyScope(locations=["s3://none/t"], allowed=["s3://none"]).checked()))


def test_files_in_a_bucket_are_verified(put: Put, document: dict[str, Any]) -> None:
    put("two/t/metadata/v1.metadata.json", sound(document, "s3://lake/two/t"))

    (outcome,) = survey_in_process(
        SurveyScope(locations=["s3://lake/two"], allowed=["s3://lake"], verify="manifests").checked()
    )

    assert isinstance(outcome, QuarantinedTable)
    assert outcome.code is QuarantineCode.MISSING_FILES
    assert "2 of its files are missing" in outcome.message


def test_inventory_in_a_bucket_is_read(put: Put, document: dict[str, Any]) -> None:
    put("three/t/metadata/v1.metadata.json", sound(document, "s3://lake/three/t"))
    put(
        "lists/list.csv",
        b"Bucket,Key,Size\nlake,three/t/metadata/v1.metadata.json,100\nlake,three/u/metadata/v1.metadata.json,100\n",
    )

    found, gone = survey_in_process(
        SurveyScope(locations=["s3://lake/three"], allowed=["s3://lake"], inventory="s3://lake/lists/list.csv").checked()
    )

    assert isinstance(found, AcceptedTable), found
    assert isinstance(gone, QuarantinedTable)
    assert gone.code is QuarantineCode.VANISHED


def test_bucket_is_divided_by_its_folders(put: Put) -> None:
    put("four/a/x", b"")
    put("four/b/c/x", b"")
    put("four/x", b"")

    assert divide_location("s3://lake/four") == ["s3://lake/four/a", "s3://lake/four/b"]


def test_file_that_is_not_in_a_bucket_is_missing(put: Put) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        divide_location("s3://lake/nowhere")
    assert not STORAGE.has_file("s3://lake/nowhere/x")
    assert list(STORAGE.list_files("s3://lake/nowhere")) == []


def test_bucket_that_is_not_there_is_told(put: Put) -> None:
    with pytest.raises((NotFoundError, UnavailableError), match="no-such-bucket"):
        divide_location("s3://no-such-bucket/x")


def test_scheme_that_nothing_reaches_is_refused() -> None:
    with pytest.raises(RefusedError, match="nosuch"):
        divide_location("nosuch://bucket/x")


def test_looking_for_a_driver_does_not_load_pyarrow(tmp_path: Path) -> None:
    code = "import sys; from headwater.iceberg import divide_location; divide_location(sys.argv[1]); print('pyarrow' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", code, tmp_path.as_uri()], check=True, capture_output=True, text=True, env=os.environ
    )

    assert told.stdout == "False\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", QuarantineCode.CORRUPT),
        ("/sales/", QuarantineCode.CORRUPT),
        ("/" + "x" * 2000, QuarantineCode.VANISHED),
        ("/sales//x.avro", QuarantineCode.BAD_LOCATION),
    ],
)
def test_name_of_no_object_is_told_from_an_outage(put: Put, path: str, code: QuarantineCode) -> None:
    put("sales/x.avro", b"")

    with pytest.raises(RejectedTable) as unfit:
        STORAGE.read_file(FileInfo(f"s3://lake{path}", 0))
    assert unfit.value.code is code
