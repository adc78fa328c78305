"""Files of a lake as the server tells of them: by size, unreferenced ones in pages, and why one is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from reported_lake import ReportedLake, open_reported_lake

from asgi_client import AsgiClient
from fake_clock import FakeClock
from headwater.catalogs import Catalogs, ContentKey, DeltaLakeTable, Put, TableClaim, TableClaims
from headwater.lake_files import explain_lake_file, read_last_report
from headwater.realms import RealmRegistry
from headwater_server.call import ServedStore
from headwater_server.management import management_table
from headwater_server.server_application import ServerApplication

_CATALOG = "/api/v1/realms/acme/catalogs/lake"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReportedLake]:
    """A lake with a report that found the files of expired snapshots; tests only read it."""
    clock, folder = FakeClock(), tmp_path_factory.mktemp("served")
    with open_reported_lake("memory://", clock, folder / "warehouse") as opened:
        opened.make_table("orders").overwrite(pa.table({"id": [3]}))
        opened.report()
        opened.expire("orders")
        opened.report()
        yield opened


@pytest.fixture
def served(lake: ReportedLake) -> Iterator[AsgiClient]:
    application = ServerApplication(
        ServedStore(lake.store), [management_table()], settings=lake.store.settings, clock=lake.clock, version="1"
    )
    yield AsgiClient(application)
    application.close()


def get(served: AsgiClient, path: str, *, status: int = 200) -> Any:
    answer = served.request("GET", f"{_CATALOG}{path}")
    assert answer.status == status, answer.content
    return answer.data


def test_report_tells_what_may_go(lake: ReportedLake, served: AsgiClient) -> None:
    report, read = get(served, "/files/report"), read_last_report(lake.store, "acme", "lake")

    assert (report["report"], report["files"]["InGrace"]["files"]) == (2, len(lake.marks()))
    assert "grace and delay are not over" in report["files"]["InGrace"]["why"]
    assert report["reclaimableBytes"] == sum(mark.size_bytes for mark in read.marks()) > 0
    assert report["tables"][0]["table"] == "sales.orders"


@pytest.mark.parametrize("size", [1, 3, 100])
def test_unreferenced_files_come_in_pages(lake: ReportedLake, served: AsgiClient, size: int) -> None:
    paths, token = list[str](), ""
    while True:
        page = get(served, f"/files?pageSize={size}{token}")
        paths += [each["path"] for each in page["files"]]
        if page["nextPageToken"] is None:
            break
        token = f"&pageToken={page['nextPageToken']}"

    assert paths == [mark.path for mark in read_last_report(lake.store, "acme", "lake").marks()]
    assert len(paths) > 3


def test_unreferenced_files_are_chosen(lake: ReportedLake, served: AsgiClient) -> None:
    place = quote(lake.client.load_table("sales.orders").location())

    assert get(served, "/files?code=Due")["files"] == []
    assert len(get(served, "/files?code=Due&code=InGrace")["files"]) == len(lake.marks())
    assert len(get(served, f"/files?place={place}")["files"]) == len(lake.marks())
    assert get(served, "/files?place=file:///x")["files"] == []


@pytest.mark.parametrize("token", ["x", "1.0", "2.-1", "2." + "9" * 30])
def test_token_of_another_report_is_refused(served: AsgiClient, token: str) -> None:
    assert get(served, f"/files?pageToken={token}", status=400)["error"]["message"].startswith("pageToken: ")


def test_file_is_explained(lake: ReportedLake, served: AsgiClient) -> None:
    [live] = [task.file.file_path for task in lake.client.load_table("sales.orders").scan().plan_files()]
    dead = next(mark.path for mark in lake.marks().values() if mark.path.endswith(".parquet"))
    kept, unused = (get(served, f"/files/explain?url={quote(path)}") for path in (live, dead))

    assert (kept["code"], kept["exists"], kept["referrers"][0]["table"]) == ("Live", True, "sales.orders")
    assert (unused["code"], unused["referrers"], unused["table"]) == ("InGrace", [], "sales.orders")
    assert unused["since"] < unused["due"]
    assert get(served, "/files/explain?url=file:///etc/passwd", status=400)["error"]["message"].startswith("url: ")


def test_folder_does_not_name_the_table_of_another_catalog(lake: ReportedLake, served: AsgiClient) -> None:
    rows = RealmRegistry(lake.store).open_realm("acme")
    Catalogs(rows).create_catalog("other", base_location="file:///elsewhere/")
    other, secret = Catalogs(rows).open_catalog("other"), ContentKey.of("secret")
    content_id = other.commit("main", [Put(secret, DeltaLakeTable())]).result[secret]
    folder = f"{lake.folder.as_uri()}/hers"
    TableClaims(rows).take_claims([TableClaim(other.definition.id, content_id, folder)])
    told = get(served, f"/files/explain?url={quote(folder)}")

    assert (told["code"], told["table"], told["tables"]) == ("NoTable", "", [])
    assert explain_lake_file(lake.store, folder).table == "secret"


def test_snapshot_tells_its_files_by_size(lake: ReportedLake, served: AsgiClient) -> None:
    files = get(served, "/references/main/tables/sales.orders/files")
    [data] = lake.client.load_table("sales.orders").scan().plan_files()

    assert (files["isComplete"], files["why"], files["manifests"]) == (True, None, files["manifestsRead"])
    assert files["data"] == {"files": 1, "bytes": data.file.file_size_in_bytes, "records": 1}
    assert files["sizes"][0]["files"] == 1 and sum(each["files"] for each in files["sizes"]) == 1


def test_snapshot_says_what_it_did_not_read(served: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater_server.management.contents.table_files.MANIFESTS_LIMIT", 0)
    files = get(served, "/references/main/tables/sales.orders/files")

    assert (files["isComplete"], files["manifestsRead"], files["data"]["files"]) == (False, 0, 0)
    assert files["why"].startswith("a request reads 0 manifests")


def test_manifest_of_another_place_is_not_read(lake: ReportedLake, served: AsgiClient, tmp_path: Path) -> None:
    """Otherwise whoever may commit a document could have the server read whatever it reaches."""
    table = lake.client.load_table("sales.orders")
    listed = Path(table.current_snapshot().manifest_list.removeprefix("file://"))
    elsewhere = tmp_path / "secret.avro"
    elsewhere.write_bytes(listed.read_bytes())
    listed.rename(listed.with_suffix(".moved"))
    listed.symlink_to(elsewhere)
    try:
        files = get(served, "/references/main/tables/sales.orders/files")
    finally:
        listed.unlink()
        listed.with_suffix(".moved").rename(listed)

    assert (files["isComplete"], files["manifests"]) == (False, 0)
    assert "is outside the table's own places" in files["why"]
